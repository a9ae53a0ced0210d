"""Checks what a sentence says of an offer: superlatives, promises, whether it is in stock, how it gets to the buyer."""

import re
from collections.abc import Callable, Sequence

from tis.marketplace.assistant.card_words import CardWords, Meant, Token, keys_of, says_in
from tis.marketplace.assistant.goods import ProductCard
from tis.marketplace.reading.structured_query import StructuredQuery


def _says(*spellings: str) -> "re.Pattern[str]":
    return re.compile("|".join(rf"\b(?:{spelling})" for spelling in spellings), re.IGNORECASE)


# A promise of the seller, by the beginnings of its words; the card must have a word that begins so, too.
_PROMISES = re.compile(
    r"\b(garansi|bergaransi|warrant|guarante|jaminan|terjamin|dijamin|diskon|discount|promo|cashback|gratis|free\b|ongkir"
    r"|bonus|hadiah|voucher|kupon|coupon|cicil|angsuran|installment|refund|retur|dikembalikan|return\b|cod\b|obral|flash"
    r"|official|resmi|authorized|original|ori\b|orisinal|asli|genuine|authentic|bersertifikat|certified|sni\b|bpom|halal"
    r"|hemat|potongan|rebate|gift|uang kembali|money.back|best.?seller|limited|edisi terbatas|exclusive|eksklusif"
    r"|tanpa biaya|bebas biaya|no (?:extra )?(?:cost|fee)|biaya kirim|shipping|pelanggan|customer|testimoni|pembeli)",
    re.IGNORECASE,
)
_SHORT_PROMISES = {"bergaransi": "garansi", "dijamin": "jamin", "terjamin": "jamin"}
_MARKET = _says(
    r"(?:se|di )(?:luruh )?-?(?:indonesia|nusantara|jagat|dunia|pasaran|kelasnya|internet)|sepanjang masa|mana ?pun",
    r"anywhere|(?:in|on|of) the (?:world|market|internet|country)|in (?:indonesia|town)|of all time|online|nationwide",
    r"terlaris|terpopuler|terpercaya|terlengkap|tak tertandingi|nomor satu|number one|unbeatable|harga terbaik",
    r"(?:no\.? ?|nomor |number |#)1 (?:di|in)\b|best.?selling|most (?:popular|trusted)|best (?:price|deal)",
    r"dijamin termurah",
)
_Value = Callable[[CardWords], float | None]
# What a superlative counts: the least is the first.
_SUPERLATIVES: tuple[tuple["re.Pattern[str]", _Value], ...] = (
    (
        _says("(?:ter|paling )murah", "cheapest|lowest.priced?|least expensive|most affordable"),
        lambda one: one.card.price,
    ),
    (_says("(?:ter|paling )mahal", "most expensive"), lambda one: -one.card.price),
    (_says("(?:ter|paling )dekat", "nearest|closest"), lambda one: one.card.distance_km),
    (
        re.compile(
            r"(?:nilai|rating|ulasan)\w* (?:ter|paling )(?:tinggi|bagus|baik)|\b(?:best|highest|top).rated", re.I
        ),
        lambda one: None if one.card.rating is None else -one.card.rating,
    ),
    (
        re.compile(r"stok\w* (?:ter|paling )banyak|\bmost stock", re.IGNORECASE),
        lambda one: -one.card.available_quantity,
    ),
)
_COMPARATIVES = _says("lebih (?:murah|mahal|dekat|jauh)|cheaper|nearer|closer|farther|more expensive")
_SOLD_OUT = _says("stok(?:nya)? (?:habis|kosong)|habis terjual|sold out|out of stock|tidak tersedia|not available")
_IN_STOCK = _says(r"(?:tersedia|ready(?: stock| stok)?|in stock|available|masih ada)\b")
_PICK_UP = _says(r"(?:diambil|ambil sendiri|pick(?:ed)?[ -]?up|collect)\b")
_COURIER = _says(r"(?:kurir|diantar|courier|same[ -]day|hari ini|today|besok|tomorrow|instan|instant)\b")
_VAGUE_STOCK = _says(
    r"stok\w*\b(?!.{0,60}paling)[^.]{0,60}\b(?:banyak|melimpah|terbatas|menipis)\b",
    "(?:limited|plenty of|lots of) stock",
)
_NEAR_KM = 15.0
_GOOD_RATING = 4.0
# What a sentence says of goods in words that the columns of a product decide.
_FACTS: tuple[tuple[str, "re.Pattern[str]", Callable[[ProductCard], bool]], ...] = (
    (
        "condition",
        _says(r"(?:bekas|second|used|preloved|refurbished)\b(?! to\b)"),
        lambda card: card.condition == "used",
    ),
    (
        "condition",
        _says(r"(?:kondisi baru|barang baru|masih baru|brand.new|bnib|segel)\b"),
        lambda card: card.condition == "new",
    ),
    (
        "distance",
        _says("dekat (?:dengan|dari|sama) (?:anda|lokasi|rumah)", "(?:near|close to) (?:you|your)"),
        lambda card: card.distance_km is not None and card.distance_km <= _NEAR_KM,
    ),
    (
        "rating",
        _says(
            "(?:rating|nilai|ulasan|penilaian)(?:nya)? (?:sangat )?(?:tinggi|bagus|baik)",
            "(?:highly|well).rated",
            "good reviews",
        ),
        lambda card: card.rating is not None and card.rating >= _GOOD_RATING,
    ),
)
_NUMBER_WORDS = re.compile(
    r"\b(?:dua|tiga|empat|lima|enam|tujuh|delapan|sembilan|sepuluh|sebelas|\w+ belas|\w+ puluh|ratus\w*|seratus"
    r"|seribu|sejuta|miliar|setengah|separuh|selusin|(?<!\d )(?<!\d)(?:ribu|juta|million|thousand)|ribuan|jutaan"
    r"|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\w+teen|twenty|thirty|forty|fifty|hundred\w*"
    r"|millions|thousands|half|dozen|double|twice|triple)\b(?:\s+(\w+))?",
    re.IGNORECASE,
)
_COUNTS = {"dua": 2, "tiga": 3, "empat": 4, "lima": 5, "enam": 6, "tujuh": 7, "delapan": 8, "two": 2, "three": 3}
_COUNTS |= {"four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8}
_COUNTED = {"pilihan", "produk", "barang", "opsi", "options", "products", "choices", "items", "toko", "shops", "hasil"}
_TIMES = {"ini", "today", "besok", "tomorrow", "instan", "instant", "day"}


class OfferClaims:
    """`reason` is why a sentence must go, or None."""

    def __init__(self, cards: Sequence[CardWords], query: StructuredQuery) -> None:
        self._cards = cards
        self._query = query

    def reason(self, sentence: str, tokens: Sequence[Token], meant: Meant) -> str | None:
        if self._is_too_high(sentence, meant):
            return "superlative"
        if self._is_promise(sentence, meant):
            return "promise"
        if self._is_wrong_stock(sentence, tokens, meant):
            return "stock"
        for reason, pattern, is_so in _FACTS:
            for found in pattern.finditer(sentence):
                if not all(is_so(one.card) for one in meant.at(_position(tokens, found.start()))):
                    return reason
        if self._is_wrong_delivery(sentence, tokens, meant):
            return "delivery"
        return "number" if self._has_number_words(sentence) else None

    def _is_too_high(self, sentence: str, meant: Meant) -> bool:
        if _MARKET.search(sentence):
            return True
        for pattern, value in _SUPERLATIVES:
            if pattern.search(sentence) and not self._is_first(meant, value):
                return True
        if not _COMPARATIVES.search(sentence):
            return False
        is_asked = self._query.max_price is not None or self._query.sort in ("price_asc", "price_desc", "distance")
        return bool(meant.named) or not (is_asked or self._query.near_user)

    def _is_first(self, meant: Meant, value: _Value) -> bool:
        """One product is named, and it has the best value of all."""
        if len(meant.named) != 1 or len(meant.named[0]) != 1 or len(self._cards) < 2:
            return False
        values = [value(card) for card in self._cards]
        known = [one for one in values if one is not None]
        return bool(known) and value(meant.named[0][0]) == min(known)

    def _is_promise(self, sentence: str, meant: Meant) -> bool:
        cards = [card for cards in meant.named for card in cards] or list(self._cards)
        for found in _PROMISES.finditer(sentence):
            begin = found[1].casefold()
            begin = _SHORT_PROMISES.get(begin, begin)
            if not any(word.startswith(begin[:6]) for card in cards for word in card.words):
                return True
        return False

    def _is_wrong_stock(self, sentence: str, tokens: Sequence[Token], meant: Meant) -> bool:
        if _VAGUE_STOCK.search(sentence):
            return True
        for pattern, is_there in ((_SOLD_OUT, False), (_IN_STOCK, True)):
            for found in pattern.finditer(sentence):
                if is_there and _SOLD_OUT.search(sentence):
                    continue
                cards = meant.at(_position(tokens, found.start()))
                if not cards or any((card.card.available_quantity > 0) != is_there for card in cards):
                    return True
        return False

    def _is_wrong_delivery(self, sentence: str, tokens: Sequence[Token], meant: Meant) -> bool:
        """What the card advises may be said, or what its seller writes."""
        for pattern, suggestion in ((_PICK_UP, "pickup"), (_COURIER, "courier")):
            for found in pattern.finditer(sentence):
                keys = tuple(found[0].casefold().replace("-", " ").split())
                for card in meant.at(_position(tokens, found.start())):
                    advice = card.card.fulfilment
                    if not card.says(keys) and (
                        advice is None or advice.suggestion != suggestion or keys[-1] in _TIMES
                    ):
                        return True
        return False

    def _has_number_words(self, sentence: str) -> bool:
        for found in _NUMBER_WORDS.finditer(sentence):
            if found[1] and any(says_in(keys_of(found[0]), card.labels) for card in self._cards):
                continue  # the name of a fridge of `dua pintu`
            count = _COUNTS.get(found[0].split()[0].casefold())
            if count is None or count > len(self._cards) or (found[1] or "").casefold() not in _COUNTED:
                return True
        return False


def _position(tokens: Sequence[Token], character: int) -> int:
    return sum(token.start < character for token in tokens)
