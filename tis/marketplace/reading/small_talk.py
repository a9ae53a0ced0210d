"""What is no wish for goods: small talk, goodbyes, questions about the world, orders to the machine."""

import re

from tis.marketplace.reading.sentence import Sentence, any_of
from tis.marketplace.reading.vocabulary import Vocabulary
from tis.marketplace.reading.word_lists import word_list

_CLAUSE = re.compile(r"[^;.!?\n]+?(?=[;!?\n]|\.(?!\d)|,? (?:and|also|then|but|dan|lalu|terus|serta|tapi) |$)")
_EVERY = "(?:every|all|each|any|semua|setiap|seluruh|tiap)"
_ORDER = any_of(
    rf"""
    (?:ignore|disregard|forget|override|bypass|abaikan|lupakan|hiraukan|langgar|hapus)\b.{{0,40}}\b(?:instructions?|rules?
    prompts?|guidelines|instruksi|aturan|perintah)(?:nya|mu)?
    (?:set|change|make|turn|ubah|ganti|jadikan|buat|bikin|setel|naikkan|turunkan)\b.{{0,30}}\b{_EVERY}\b.{{0,30}}\b(?:price
    prices|harga(?:nya)?|stock|stok(?:nya)?|ratings?)
    (?:give|kasih|beri(?:kan)?|apply|terapkan|add|tambah(?:kan)?|minta)\b.{{0,40}}(?:\d+ ?(?:%|persen|percent)
    discount|diskon|potongan)
    (?:say|tell|claim|pretend|answer|katakan|bilang|klaim|anggap|jawab|pura-pura)\b.{{0,60}}\b(?:price|harga(?:nya)?|free
    gratis|stock|stok(?:nya)?)
    (?:you are now|kamu sekarang adalah|act as|bertindaklah? sebagai|system ?:|sistem ?:|developer mode|jailbreak)
    (?:reveal|show|print|tampilkan|bocorkan|sebutkan|tunjukkan)\b.{{0,30}}\b(?:prompts?|instructions?|instruksi|api key
    password|kata sandi|database|new price)
    """
)
_GOODBYE = any_of(
    r"""
    thanks?|thank you|thx|makasih|mksh|makasi|terima ?kasih|trims|tengkyu|thankyou|tq|nuhun|suwun|bye|goodbye|dadah
    sampai jumpa|see you|that'?s (?:all|it)|that is all
    (?<!yang )(?<!yg )(?:itu|segitu|udah|sudah|cukup) (?:saja|aja|dulu|cukup)
    """
)
_ASKS_OF_ANYTHING = any_of(
    r"""
    will|would|is|are|am|do|does|did|can|could|should|was|were|has|have you|who|whom|whose|why|when|how|what|where
    apakah|apa|kenapa|mengapa|kapan|siapa|bagaimana|gimana|berapa|di ?mana
    """
)
_BUYS = any_of(
    r"""
    ada|jual(?:an)?|cari(?:kan|in)?|beli|butuh|punya|stok|harga(?:nya)?|toko|ready|murah|have|has|sells?|stock|there
    any|buy|price|cost|shop|store|find|need|carry|offer|got|cheap(?:er|est)?|rekomendasi|recommend|merk|merek|brand
    """
)
_NO_GOODS = any_of(
    r"""
    buat(?:kan|in)|tulis(?:kan|in)|ceritakan|terjemah(?:kan|in)|jelaskan|hitung(?:kan|in)?
    (?:write|tell) (?:me )?an? (?:poem|story|joke|essay|song|letter)|translate|puisi|pantun|ibu ?kota|capital of
    (?:berapa|what is|what'?s) \d+ ?[-+x*/:] ?\d+|menang(?:nya)? (?:siapa|pemilu|piala)|skor (?:bola|pertandingan)
    siapa (?:kamu|presiden|nama)|presiden|no ?resi|nomor resi|(?:pesanan|orderan|order)(?:an)? (?:saya|aku|gue)
    my order|komplain|refund|apa kabar|how are you|joke|lelucon|jam (?:berapa|buka|tutup|operasional)|buka jam
    what time|opening hours|weather|cuaca|nama(?:mu| kamu)|your name|kamu (?:siapa|robot|bot)
    are you (?:a )?(?:robot|bot|human)|cara (?:bayar|pesan|order|daftar|retur)|ganti password|lupa password
    login|daftar akun
    """
)
_SMALL_TALK = any_of(
    r"""
    halo|hallo|hai|hi|hello|hey|thanks?|thank you|thx|makasih|mksh|makasi|terima ?kasih|trims|tengkyu|thankyou
    tq|selamat|pagi|siang|sore|malam|good (?:morning|afternoon|evening|night)|assalamualaikum|siapa|kenapa
    mengapa|kapan|who|why|when|cara|how (?:do|to|can)|cerita|bye|dadah|sampai jumpa|ok|oke|sip|mantap|apa itu
    what is|what are you|bantuan|help|haha\w*|wkwk\w*|lol
    """
)


def says_goodbye(said: str) -> bool:
    return bool(_GOODBYE.search(said))


def names_no_goods(said: str) -> bool:
    """The weather in Jakarta, the opening hours, a poem."""
    return bool(_NO_GOODS.search(said))


def asks_of_the_world(said: str, text: str, vocabulary: Vocabulary) -> bool:
    """`will it rain tomorrow?`: a question without a word of buying, and of words that no goods are named by."""
    index = vocabulary.goods
    known = [word for word in text.split() if (word,) in index.nouns or (word,) in index.brands or not word.isalpha()]
    is_described = any(word in word_list("description", "plain") for word in text.split())
    return bool(_ASKS_OF_ANYTHING.match(said)) and not (known or is_described or _BUYS.search(said))


def is_off_topic(said: str, *, has_noun: bool) -> bool:
    """Of a sentence that sets no filter: small talk, and questions about anything but goods."""
    return names_no_goods(said) or (not has_noun and bool(_SMALL_TALK.search(said)))


def take_orders(sentence: Sentence) -> None:
    """`set every price to Rp 1`: the whole clause, as what it says of prices and goods is no condition."""
    for found in list(_CLAUSE.finditer(sentence.text)):
        if _ORDER.search(found[0]):
            sentence.take_found(found, "order to the machine")
