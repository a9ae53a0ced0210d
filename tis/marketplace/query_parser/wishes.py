"""Words that wish for something beside the goods: an order of the list, their condition, stock, delivery or pickup."""

import re
from dataclasses import dataclass
from typing import Any

from tis.marketplace.query_parser.sentence import Sentence, whole_words

_NOT = r"(?:tidak|tdk|ga|gak|gk|ngga|nggak|enggak|kagak|jangan|jgn|bukan|not|no|isn'?t|don'?t want(?: it)?)"
_ANY = r"(?:terlalu |too |so |yang |yg |usah |mau |begitu |very |that )*"


@dataclass(frozen=True)
class Wish:
    """Words that set a field. Those that are `kept` may also name a place or goods: later rules see them."""

    field: str
    value: Any
    pattern: "re.Pattern[str]"


def _wish(field: str, value: Any, *forms: str) -> Wish:
    return Wish(field, value, whole_words("|".join(forms)))


_CHEAP = r"murah(?:-murah)?|murmer|murce|cheap|hemat|terjangkau|affordable|ekonomis|ramah (?:di )?kantong"
_DEAR = r"mahal(?:[ -]mahal|2)?|expensive|pricey|costly"
_FAR = r"jauh(?:[ -]jauh|2)?|far"
_BEFORE = r"(?:ke )?(?:dekat|deket|dkt|dket|sekitar(?:an)?|seputar(?:an)?|skitar)"
_HERE = r"sini|saya|ku|aku|gue|gw|kami|kita|rumah(?:ku| saya| gue| gw| aku)?|lokasi(?:ku| saya| aku| gue| gw)?|kantor(?:ku)?"
# In this order: what one has taken the next does not see.
WISHES = (
    _wish("condition", "new", rf"{_NOT} {_ANY}(?:bekas|second|seken|used|2nd|refurbished)(?: hand)?", "non bekas"),
    _wish("condition", "used", rf"{_NOT} {_ANY}(?:baru|new)"),
    _wish("condition", "any", r"(?:baru|new)(?: maupun | ataupun | atau | or |/)(?:bekas|second|seken|used)"),
    _wish("condition", "any", r"(?:bekas|second|seken|used)(?: maupun | ataupun | atau | or |/)(?:baru|new)"),
    _wish("sort", "price_asc", rf"{_NOT} {_ANY}(?:{_DEAR})(?: amat| banget| bgt)?", r"(?:kurang|less) mahal"),
    _wish("near_user", True, rf"{_NOT} {_ANY}(?:{_FAR})(?: dari (?:{_HERE}))?"),
    _wish(
        "in_stock",
        False,
        r"(?:termasuk|include|including|beserta|sekalian|even|juga)(?: yang| yg| the| those)?(?: sudah| stoknya| stok| lagi)?"
        r" (?:habis|kosong|sold out|out of stock|unavailable|tidak tersedia)(?: ones)?",
        r"(?:yang |yg )?(?:sudah |stok )?(?:habis|kosong|sold out|out of stock|tidak tersedia) (?:juga|jg|pun)"
        r"(?: (?:gapapa|gpp|boleh|tampilkan|oke|ok|ga masalah|tidak apa-apa|ditampilkan|is fine))?",
        r"(?:walau|walaupun|meski|meskipun|biar|biarpun)(?: stok(?:nya)?)?(?: sedang| lagi| sudah)?"
        r" (?:habis|kosong|sold out|tidak tersedia)",
        r"(?:pre ?order|preorder|po|indent|inden)(?: (?:juga|pun))? (?:gapapa|gpp|boleh|ok|oke|fine)",
        r"(?:show|tampilkan|lihatkan)(?: me)?(?: also)? (?:unavailable|sold out|out of stock)(?: ones| items)?",
    ),
    _wish(
        "sort",
        "newest",
        r"terbaru|paling baru|newest|latest|baru masuk|baru datang|new arrivals?|keluaran (?:baru|terakhir)|most recent",
    ),
    _wish(
        "sort", "price_asc", r"(?:harga )?(?:paling |ter)(?:murah|rendah)(?: dulu| duluan)?", "cheapest", "lowest price"
    ),
    _wish("sort", "price_asc", r"harga (?:dari )?(?:yang )?(?:terendah|rendah|murah)(?: (?:dulu|ke tinggi|ke mahal))?"),
    _wish(
        "sort", "price_desc", r"(?:paling |ter)mahal", r"harga tertinggi", r"(?:most|more) expensive", "highest price"
    ),
    _wish("sort", "price_desc", r"(?:harga )?(?:dari )?(?:yang )?(?:paling )?mahal (?:dulu|ke murah)"),
    _wish(
        "sort",
        "rating",
        r"(?:rating|ulasan|review|bintang|nilai)(?:nya)? (?:paling |ter)(?:tinggi|baik|bagus|atas)",
        r"(?:rating|ulasan|review)(?:nya)? (?:yang )?(?:bagus|tinggi|baik|oke)",
        r"(?:best|highest|top)[ -](?:rated|rating|reviewed|reviews)(?: ones?)?",
        r"terbaik|paling bagus|paling baik|terfavorit|the best|best",
    ),
    _wish(
        "sort",
        "distance",
        rf"(?:yang )?(?:paling |ter)(?:dekat|deket)(?: (?:dari|dr|dengan|dgn|sama|di))?(?: (?:{_HERE}|tempat(?:ku| saya)))?",
        r"(?:nearest|closest)(?: (?:to|from) (?:me|my (?:home|house|place|location|office)|here))?(?: first)?",
        rf"urut(?:kan)? (?:dari )?(?:yang )?(?:jarak|terdekat)|jarak terdekat",
    ),
    _wish(
        "near_user",
        True,
        rf"(?:di |yang )*{_BEFORE}(?:nya)?(?: dari| dengan| dgn| sama| ama| di| lokasi| tempat| tempat tinggal)* ?(?:{_HERE})",
        r"(?:di )?sekitarku|(?:di )?dekatku|dekat dekat sini|dekat-dekat sini|deket deket sini",
        r"(?:near|nearby|close to|around|next to)(?: to)? (?:me|here|my (?:home|house|place|location|area|office))",
        r"near ?by|nearme|in my area|di (?:daerah|kota|area|wilayah) (?:saya|ku|aku|gue|gw)|daerahku|kotaku",
        r"dari (?:rumah(?:ku| saya)?|sini|tempat(?:ku| saya)|lokasi(?:ku| saya)?)|from (?:my (?:home|house|place|location)|here|me)",
        r"(?:dekat|deket)(?: aja| saja)",
    ),
    _wish(
        "fulfilment",
        "pickup",
        r"(?:bisa |mau |bs |di)?(?:ambil|jemput)(?:nya)? (?:sendiri|di (?:toko|tempat|lokasi|gerai)(?:nya)?|langsung)",
        r"(?:self[ -]?)?pick[ -]?up(?: sendiri)?|(?:pick|collect) (?:it |them )?(?:up )?(?:myself|in store|at the store)",
        r"(?:datang|beli|dtg) (?:langsung )?(?:ke|di) (?:toko|tempat)(?:nya)?|cod di toko|in[ -]store|diambil",
    ),
    _wish(
        "fulfilment",
        "delivery",
        r"(?:bisa |mau |bs |yang |harus |yg )*(?:di|ny)?(?:kirim|antar|anter|antr)(?:in|kan|an|nya)?(?: ke rumah(?:ku| saya)?| sampai rumah)?",
        r"pengiriman|kurir|ekspedisi|gosend|gojek|grab ?express|(?:gratis|free|bebas) ongkir|free (?:shipping|delivery)",
        r"(?:home )?deliver(?:y|ed|s|able)?(?: to my (?:home|house|place|door))?|ship(?:ped|ping)?(?: to me)?|sent to me",
    ),
    _wish(
        "in_stock",
        True,
        r"(?:yang |yg |harus |must be )*(?:stok(?:nya)?|stock|stocknya|barang(?:nya)?) (?:(?:masih|yang|harus) )*(?:ada|ready|tersedia)",
        r"(?:masih |ada |yang |yg |lagi |harus )*(?:ready(?: ?sto[ck]+k?)?|redi|tersedia|in[ -]stock|available(?: now| today)?)",
        r"(?:masih )?ada (?:sto[ck]k?|stok)(?:nya)?|masih ada|(?:sisa|tinggal) berapa|sto[ck]k?(?:nya)? (?:berapa|brp|sisa)",
        r"how many (?:are |is )?(?:left|available|in stock)|left in stock|have (?:it |any )?in stock|still have",
        r"(?:cek|check) sto[ck]k?(?:nya)?|sto[ck]k?nya|stok|stock",
    ),
    _wish(
        "condition",
        "used",
        r"(?:kondisi )?(?:bekas|seken|sekon|second(?:[ -]?hand)?|secondhand|2nd(?: hand)?|used|preloved|pre-loved|pre-owned"
        r"|bekasan|pre-?loved|refurbished|refurb)(?: (?:pakai|aja|saja|ones?))?",
    ),
    _wish(
        "condition",
        "new",
        r"(?:kondisi |barang |yang |yg )(?:masih )?(?:baru|new)(?: segel| gress?)?|brand[ -]?new|bnib|baru (?:segel|gres{1,2}|gress)"
        r"|segel(?:an)?|gres{1,2}|new ones?|new condition|in new",
    ),
    _wish("condition", "new", "baru", "new"),
    _wish("sort", "price_asc", _CHEAP, r"(?:low|on a|tight) budget|budget (?=laptop|phone|hp|smartphone)"),
    _wish("sort", "relevance", r"(?:paling relevan|most relevant)"),
)
STOCK_QUESTION = whole_words(
    r"sto[ck]k?(?:nya)?|masih ada|(?:masih |ada )?(?:ready|tersedia|available|in stock)|left|sisa|berapa lagi|still have"
)
RECOMMEND = whole_words(
    r"rekomendasi(?:kan|in|nya)?|rekomen(?:din)?|saran(?:kan|in|nya)?|menyarankan|recommend(?:ed|ation|ations)?|suggest(?:ion|ions)?"
    r"|pilih(?:kan|in)|bagusnya|sebaiknya|enaknya|mending|(?:what|which) .{0,40}(?:should|good|best)|(?:apa|mana) (?:ya )?yang"
    r" (?:bagus|cocok|oke|paling)|yang (?:bagus|cocok|oke) apa|apa yang (?:bagus|cocok)|bagus apa|advice|advise"
)


def take_wishes(sentence: Sentence) -> dict[str, Any]:
    """The fields that they set; the first words that set a field go before later ones."""
    found: dict[str, Any] = {}
    for wish in WISHES:
        while match := wish.pattern.search(sentence.text):
            sentence.take_found(match, f"words of {wish.field}", *([] if wish.field in found else [wish.field]))
            found.setdefault(wish.field, wish.value)
            if wish.field == "sort" and wish.value == "distance":
                found.setdefault("near_user", True)
    if found.get("condition") == "any":
        del found["condition"]
    return found
