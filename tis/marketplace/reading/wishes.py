"""Words that wish for something beside the goods: an order of the list, their condition, stock, delivery or pickup.

Also which goods come first by an attribute: `yang paling ringan`, `which of them is lighter?`, `baterai paling besar`.
"""

from typing import Any

from tis.marketplace.reading.sentence import Sentence, any_of
from tis.marketplace.reading.structured_query import AttributeOrder, Measured, QueryContext

_ANY = "any"  # sets the field to what it is without any wish
_NOT = "(?:tidak|tdk|ga|gak|gk|ngga|nggak|enggak|kagak|jangan|jgn|bukan|not|no|isn'?t|don'?t want(?: it)?)"
_VERY = "(?:terlalu |too |so |yang |yg |usah |mau |begitu |very |that )*"
_USED = "(?:bekas|(?:second|2nd)(?:[ -]?hand)?|seken|sekon|used|preloved)"
_NEW = "(?:baru|new)"
_OR = "(?: maupun | ataupun | atau | or |/)"
_SOLD_OUT = "(?:habis|kosong|sold out|out of stock|unavailable|tidak tersedia)"
_THOSE = "(?: yang| yg| the| those| barang)*"
_IS, _FINE = "(?: sudah| lagi| stok(?:nya)?)?", "(?:gapapa|gpp|boleh|oke?|is fine|fine)"
_SAVED = "(?:listrik|energi|daya|tempat|bensin|tinta|air|baterai)"  # hemat listrik says nothing of the price
_LOW, _HIGH = "(?:low(?:est)?|(?:ter)?rendah|(?:ter)?murah)", "(?:high(?:est)?|(?:ter)?tinggi|(?:ter)?mahal)"
_OF_PRICE = "(?:by )?(?:harga |price )?(?:from |dari )?(?:the |yang )?"
_MINE = "(?:ku| saya| aku| gue| gw)?"
_HERE = f"(?:sini|saya|ku|aku|gue|gw|kami|kita|(?:rumah|lokasi|kantor|kos(?:t|an)?){_MINE}|tempat(?:ku| saya))"
_MY_PLACE = "(?:me|here|my (?:home|house|place|location|area|office))"
_NEAR = "(?:(?:dekat|deket|dkt|dket)(?:2|[ -]?(?:dekat|deket))?|sekitar(?:an)?|seputar(?:an)?|skitar)"
_OF = "(?: dari| dr| dengan| dgn| sama| ama| di| lokasi| tempat| tempat tinggal)*"
_CAN = "(?:bisa |mau |bs |yang |yg |harus )*"
_STOCK = "(?:ketersediaan|stok|sto[ck]{1,2}|stcok)(?:nya)?"
_STILL = "(?:masih |masi |msh |ada |yang |yg |lagi |harus |must be )*"
_PROMOTION = "(?:promo(?:si|nya|an)?|di ?diskon|diskon(?:an|nya)?|potongan harga|harga coret|obral(?:an)?|cuci gudang)"
_ON_SALE = "(?:(?:on|in) (?:sale|promo(?:tion)?|discount|offer)|discounted|with (?:a )?discount)"
# Fields, the values that words set them to, and forms of these words. What one has taken the next does not see.
_FORMS: tuple[tuple[str, Any, str], ...] = (
    (
        "condition",
        _ANY,
        f"{_NEW}{_OR}{_USED}\n{_USED}{_OR}{_NEW}\n{_NOT} (?:harus|perlu|mesti|have to be) {_NEW}"
        f"\n(?:yang |yg )?(?:{_USED}|{_NEW}) (?:juga|jg|pun|too|also|(?:is |are )?{_FINE})"
        f"(?: (?:{_FINE}|mau|ok))*\n(?:boleh|gapapa|gpp) (?:yang |yg )?{_USED}|also {_USED}|{_USED} or {_NEW}",
    ),
    ("condition", "new", f"(?:{_NOT}|selain|kecuali|tanpa|non) {_VERY}{_USED}"),
    ("condition", "used", f"{_NOT} {_VERY}{_NEW}"),
    (
        "sort",
        "price_asc",
        rf"""
        {_NOT} {_VERY}(?:mahal(?:[ -]mahal|2)?|expensive|pricey|costly)(?: amat| banget| bgt)?
        (?:kurang|less) mahal
        """,
    ),
    ("near_user", True, f"{_NOT} {_VERY}(?:jauh(?:[ -]jauh|2)?|far)(?: (?:dari|from) (?:{_HERE}|{_MY_PLACE}))?"),
    (
        "in_stock",
        False,
        rf"""
        (?:termasuk|include|including|beserta|sekalian|even|juga){_THOSE}{_IS} {_SOLD_OUT}(?: ones)?
        (?:yang |yg )?(?:sudah |lagi |stok )?{_SOLD_OUT} (?:juga|jg|pun)(?: (?:{_FINE}|(?:di)?tampilkan))?
        (?:walau|meski|biar)(?:pun)?(?: stok(?:nya)?)?(?: sedang| lagi| sudah)? {_SOLD_OUT}
        (?:pre ?order|po|inden[t]?)(?: juga| pun)? {_FINE}
        (?:show|tampilkan|lihatkan)(?: me)?(?: also)? (?:{_SOLD_OUT})(?: ones| items)?
        """,
    ),
    (
        "on_promotion",
        False,
        rf"{_NOT} (?:(?:harus|perlu|mesti|usah|have to be|yang|yg|lagi|sedang) )*(?:{_PROMOTION}|{_ON_SALE})",
    ),
    (
        "on_promotion",
        True,
        rf"""
        (?:yang |yg |lagi |sedang |lg |sdg |ada |kena |dapat |dengan |harga |barang )*{_PROMOTION}(?: aja| saja)?
        (?:that (?:is|are) |which (?:is|are) |currently |now )*{_ON_SALE}(?: now| only)?
        """,
    ),
    (
        "sort",
        "newest",
        """
        terbaru|paling baru|baru masuk|baru datang|keluaran (?:baru|terakhir)
        newest|latest|new arrivals?|most recent
        """,
    ),
    ("sort", "price_asc", f"{_OF_PRICE}{_LOW} (?:to|ke) (?:the |yang )?{_HIGH}"),
    ("sort", "price_desc", f"{_OF_PRICE}{_HIGH} (?:to|ke) (?:the |yang )?{_LOW}"),
    (
        "sort",
        "price_asc",
        """
        (?:harga )?(?:paling |ter)(?:murah|rendah)(?: dulu| duluan)?
        harga (?:dari )?(?:yang )?(?:terendah|rendah|murah)(?: dulu| duluan)?
        (?:by|berdasarkan) (?:price|harga)
        (?:the )?cheapest|(?:the )?lowest[ -]priced?|(?:the )?least expensive
        """,
    ),
    (
        "sort",
        "price_desc",
        """
        (?:harga )?(?:paling |ter)mahal(?: dulu| duluan)?|harga tertinggi|mahal dulu(?:an)?
        (?:most|more) expensive|highest[ -]priced?
        """,
    ),
    (
        "sort",
        "rating",
        """
        (?:rating|ulasan|review|bintang|nilai)(?:nya)? (?:paling |ter)(?:tinggi|baik|bagus|atas)
        (?:rating|ulasan|review)(?:nya)? (?:yang )?(?:bagus|tinggi|baik|oke)
        (?:best|highest|top)[ -](?:rated|rating|reviewed|reviews)(?: ones?)?|(?:good|great) (?:reviews?|ratings?)
        terbaik|paling bagus|paling baik|terfavorit|(?:the )?best(?! buy| seller)
        (?:by|berdasarkan) (?:rating|review|ulasan)
        """,
    ),
    (
        "sort",
        "distance",
        rf"""
        (?:yang )?(?:paling |ter)(?:dekat|deket)(?: (?:dari|dr|dengan|dgn|sama|di))?(?: {_HERE})?
        (?:nearest|closest)(?: (?:to|from) {_MY_PLACE})?(?: first)?
        urut(?:kan)? (?:dari )?(?:yang )?(?:jarak|terdekat)|jarak terdekat|by distance
        """,
    ),
    (
        "near_user",
        True,
        rf"""
        (?:di |yang |yg )*{_NEAR}(?:nya)?{_OF} ?{_HERE}
        (?:near|nearby|close to|around|next to)(?: to)? {_MY_PLACE}|near ?by|nearme|in my (?:area|city|neighbou?rhood)
        di (?:daerah|kota|area|wilayah) (?:saya|ku|aku|gue|gw)|daerahku|kotaku
        dari (?:rumah{_MINE}|sini|tempat(?:ku| saya)|lokasi{_MINE}|kantor{_MINE}|posisi{_MINE})|from {_MY_PLACE}
        (?:dekat|deket)(?: aja| saja)
        """,
    ),
    (
        "fulfilment",
        "pickup",
        r"""
        (?:bisa |mau |bs |di)?(?:ambil|jemput)(?:nya)? (?:sendiri|di (?:toko|tempat|lokasi|gerai)(?:nya)?|langsung)
        (?:self[ -]?)?pick[ -]?up(?: sendiri)?|(?:pick|collect) (?:it |them )?(?:up )?(?:myself|in store|at the store)
        (?:datang|beli|dtg) (?:langsung )?(?:ke|di) (?:toko|tempat)(?:nya)?|cod di toko|in[ -]store|diambil
        """,
    ),
    (
        "fulfilment",
        "delivery",
        rf"""
        {_CAN}(?:di|ny|me|men|ng)?(?:kirim|antar|anter|antr)(?:in|kan|an|nya)?(?: (?:ke|sampai) rumah{_MINE})?
        pengiriman|kurir|ekspedisi|gosend|gojek|grab ?express|(?:gratis|free|bebas) ongkir|free (?:shipping|delivery)
        (?:home )?deliver(?:y|ed|s|able)?(?: to my (?:home|house|place|door))?|ship(?:s|ped|ping)?(?: to me)?|sent to me
        """,
    ),
    (
        "in_stock",
        True,
        rf"""
        (?:yang |yg |harus )*(?:{_STOCK}|barang(?:nya)?) (?:masih |yang |harus )*(?:ada|ready|tersedia)
        {_STILL}(?:ready(?: ?{_STOCK})?|redi|redy|tersedia|in[ -]stock|available(?: now| today)?)
        (?:masih )?ada {_STOCK}|(?:masih|masi|msh) ada|(?:sisa|tinggal) berapa|{_STOCK} (?:berapa|brp|sisa)
        how many (?:are |is )?(?:left|available|in stock)|left in stock|have (?:it |any )?in stock|still have
        any .{{0,30}} ?left
        (?:cek |check )?{_STOCK}
        """,
    ),
    ("condition", "used", f"(?:kondisi )?(?:{_USED}|bekasan|pre-?loved|pre-?owned)(?: (?:pakai|aja|saja|ones?))?"),
    (
        "condition",
        "new",
        r"""
        (?:kondisi |barang |yang |yg )(?:masih )?(?:baru|new)(?: segel| gress?)?|brand[ -]?new|bnib
        segel(?:an)?|gres{1,2}|new ones?|(?:in )?new condition|baru gress?
        (?<!rumah )(?<!kantor )(?<!tahun )(?<!kos )baru(?! (?:pindah|lulus|nikah|mulai|beli|punya|bangun|belajar))
        new(?! balance| era| york)
        """,
    ),
    (
        "sort",
        "price_asc",
        rf"""
        murah(?: meriah|-murah|2| murah)?|murmer|murce|hemat(?! {_SAVED})|terjangkau|ekonomis|ramah (?:di )?kantong
        cheap|affordable|inexpensive|(?:low|on a|tight) budget|budget (?=laptop|phone|hp|smartphone)
        """,
    ),
    ("sort", "relevance", "paling relevan|most relevant"),
)
_WISHES = [(field, value, any_of(forms)) for field, value, forms in _FORMS]
STOCK_QUESTION = any_of(
    rf"""
    {_STOCK}|(?:masih|masi|msh) ada|(?:ready|tersedia|available|in stock)|any left|left|sisa|berapa lagi|still have
    """
)
RECOMMEND = any_of(
    r"""
    rekomendasi(?:kan|in|nya)?|rekomen(?:din)?|rekom|saran(?:kan|in|nya)?|menyarankan|advice|advise
    recommend(?:ed|ation|ations)?|suggest(?:ion|ions)?|(?:what|which) .{0,40}(?:should|good|best)
    pilih(?:kan|in)|bagusnya|sebaiknya|enaknya|mending|bagus apa
    (?:apa|mana) (?:ya )?(?:yang|yg) (?:bagus|cocok|oke|paling)|(?:yang|yg) (?:bagus|cocok|oke) apa
    """
)


def take_wishes(sentence: Sentence) -> dict[str, Any]:
    """The fields that they set; the first words that set a field go before later ones."""
    found: dict[str, Any] = {}
    for field, value, pattern in _WISHES:
        while match := pattern.search(sentence.text):
            sentence.take_found(match, f"words of {field}", *([] if field in found else [field]))
            found.setdefault(field, value)
            if value == "distance":
                found.setdefault("near_user", True)
    return {name: None if value == _ANY else value for name, value in found.items()}


_MOST = r"(?:paling |ter|lebih |lbh )"
_BIG, _SMALL = "(?:besar|gede|lebar|luas|tinggi|banyak|panjang)", "(?:kecil|sempit|rendah|sedikit|pendek)"
_BIGGER, _SMALLER = "(?:biggest|bigger|largest|larger|most|more|highest|higher|longest|longer)", "(?:smallest|smaller)"


def _named(words: str, *, big: str = "") -> dict[bool, str]:
    """Patterns of an attribute that is said by its name, by whether the least is wanted."""
    more, less = rf"{_MOST}(?:{_BIG}{big})", rf"{_MOST}{_SMALL}"
    return {
        False: f"{words}(?:nya)? (?:yang |yg )?{more}\n(?:the |with )*{_BIGGER} (?:{words})(?: life| capacity)?",
        True: f"{words}(?:nya)? (?:yang |yg )?{less}\n(?:the |with )*{_SMALLER} (?:{words})",
    }


_WEIGHT = {
    True: f"(?:yang |yg )?{_MOST}(?:ringan|enteng)(?: lagi)?\n(?:the )?(?:lightest|lighter)(?: ones?)?\nless heavy",
    False: f"(?:yang |yg )?{_MOST}berat(?: lagi)?\n(?:the )?(?:heaviest|heavier)(?: ones?)?",
}
_SIZE = {
    True: rf"(?:ukuran(?:nya)? )?(?:yang |yg )?{_MOST}(?:kecil|mungil|ringkas)(?: lagi)?"
    "\n(?:the )?(?:smallest|smaller|more compact)(?: ones?)?",
    False: rf"(?:ukuran(?:nya)? )?(?:yang |yg )?{_MOST}(?:besar|gede)(?: lagi)?"
    "\n(?:the )?(?:biggest|bigger|largest|larger)(?: ones?)?",
}
# The first that is found counts: sizes without a name come last.
_ATTRIBUTE_FORMS: dict[Measured, dict[bool, str]] = {
    "battery": _named("(?:baterai|batere|batre|battery)", big="|awet|tahan lama|kuat"),
    "screen": _named("(?:layar|screen|display)"),
    "ram": _named("(?:ram|memori|memory)"),
    "storage": _named("(?:penyimpanan|storage|ssd|internal|hard ?disk)", big="|lega"),
    "camera": _named("(?:kamera|camera)", big="|bagus|tajam|jernih"),
    "capacity": _named("(?:kapasitas|capacity|muatan)"),
    "power": _named("(?:daya|watt|listrik|power)"),
    "weight": _WEIGHT,
    "size": _SIZE,
}
_ATTRIBUTE_ORDERS = [
    (name, is_least, any_of(form)) for name, forms in _ATTRIBUTE_FORMS.items() for is_least, form in forms.items()
]
_THRIFTY = any_of(rf"(?:yang |yg )?{_MOST}(?:hemat|irit) (?:listrik|daya|watt)|least power(?:ful)?|lowest wattage")
_AMONG = any_of(
    """
    mana|which|di ?antara (?:itu|ini|mereka|keduanya|semua(?:nya)?)|(?:of|among) (?:them|these|those)
    (?:ke)?dua-?duanya|keduanya|both
    """
)
_FURTHER = any_of("lebih|lbh|lighter|heavier|smaller|bigger|larger|more|higher|longer|less")


def take_attribute_order(sentence: Sentence, context: QueryContext, pointed: list[int]) -> AttributeOrder | None:
    """What is lighter than what was shown, unless one of these is asked for."""
    candidates = [("power", True, _THRIFTY), *_ATTRIBUTE_ORDERS]
    matches = ((name, is_least, pattern.search(sentence.text)) for name, is_least, pattern in candidates)
    attribute, is_least, found = next((one for one in matches if one[2]), ("", False, None))
    if found is None:
        return None
    shown = [one.id for one in context.last_results]
    among, beyond = list[int](), list[int]()
    if pointed or (shown and _AMONG.search(sentence.text)):
        among = pointed or shown
    elif shown and _FURTHER.search(found[0]):
        beyond = shown
    sentence.take_found(found, "order by an attribute", "order_by")
    if among and (said := _AMONG.search(sentence.text)):
        sentence.take_found(said, "of what was shown", "order_by")
    fields = {"attribute": attribute, "least": is_least, "among": among, "beyond": beyond}
    return AttributeOrder.model_validate(fields)
