"""Texts of sellers as answers show them and as models read them: one line of plain words, nothing to open or to call.

A text that nobody meant harm with stays as it is.
"""

import re
import unicodedata

MAX_READ_CHARS = 5_000  # of a text; the rest is not looked at
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn"})
_DISGUISES = re.compile("[\uff01-\uff5e\U0001d400-\U0001d7ff]")  # wide and mathematical letters, which models read

_IMAGE = re.compile(r"!\[[^\[\]]{0,200}\]\([^()]{0,500}\)")
_LINK = re.compile(r"\[([^\[\]]{0,200})\]\([^()]{0,500}\)")
_EMAIL = re.compile(r"[\w.+-]{1,64}\s?(?:@|\(at\)|\[at\])\s?[\w-]{1,63}(?:\.[\w-]{1,63}){1,4}", re.IGNORECASE)
_ADDRESS = re.compile(
    r"\b(?:[a-z][a-z0-9+.-]{1,20}://|(?:mailto|javascript|tel|whatsapp):(?=\S)|data:[a-z]+/|www\.)\S{0,500}"
    r"|(?<![\w@.])(?:[a-z0-9-]{1,63}\.){1,4}(?:com|net|org|info|biz|io|me|ly|gg|app|dev|shop|store|site|online|xyz|link|id)"
    r"(?![\w.-]*\w@)\b(?:[/?#]\S{0,500})?",
    re.IGNORECASE,
)
_PHONE = re.compile(
    r"(?<![\w.,])(?:"
    r"(?:\+|00)\d(?:[\s().-]{0,2}\d){7,13}"  # international
    r"|(?:62|0)[\s.-]?8\d{1,2}(?:[\s.-]?\d{2,5}){2,3}"  # mobile numbers of Indonesia
    r"|\(0\d{2,3}\)[\s.-]?\d{3,4}[\s.-]?\d{3,5}|0\d{2,3}-\d{5,8}"
    r")(?![\w])"
)
_ROLE_MARKERS = re.compile(
    r"<[|｜][^<>]{0,60}[|｜]>|<</?sys>>|\[/?inst\]|</?s>"
    r"|#{2,}[ \t]{0,3}(?:system|instruction|user|assistant|human)\b[ \t]{0,3}:?"
    r"|(?-i:\b(?:SYSTEM|ASSISTANT|USER|HUMAN|DEVELOPER|SISTEM|ASISTEN)\b[ \t]{0,3}(?:PROMPT|MESSAGE|PESAN)?[ \t]{0,3}:)"
    # "Operating system: Windows" says nothing of who speaks
    r"|(?:^|(?<=[.!?;>\"'(])|(?<=[.!?;>] ))[ \t]{0,3}(?:system|assistant|user|human|developer|asisten)\s{0,3}"
    r"(?:prompt|message)?[ \t]{0,3}:",
    re.IGNORECASE | re.MULTILINE,
)
_TAG = re.compile(r"</?[a-z!][^<>]{0,300}>", re.IGNORECASE)
_CODE = re.compile(r"`+|~{3,}")
_REMOVED = (_ROLE_MARKERS, _TAG, _EMAIL, _ADDRESS, _PHONE, _CODE)
_MAX_PASSES = 4  # what is left may be one of these again
# In a name these look like the price and stock that the answer writes behind it; "Voucher Rp 50.000" does not.
_OFFERS = re.compile(
    r"[:;,|=]\s{0,2}(?:rp|idr)\.?\s{0,2}\d[\d.,]{0,20}-?(?:\s?(?:juta|jt|ribu|rb|k)\b)?"
    r"|[:;,|=]?\s{0,2}\bst(?:ok|ock)\b\s?:?\s?\d[\d.,]{0,20}(?=[\s,;|]|$)",
    re.IGNORECASE,
)


def clean_name(text: str, max_chars: int) -> str:
    """Of a product or shop: prices and stock are the database's to say."""
    cleaned = clean_text(text, MAX_READ_CHARS)
    return cut(" ".join(_OFFERS.sub(" ", cleaned).split()).strip(" ,;:|"), max_chars)


def clean_text(text: str, max_chars: int) -> str:
    """At most `max_chars` characters; a cut text ends with `…` after a whole word."""
    cleaned = _visible(text[:MAX_READ_CHARS])
    for _ in range(_MAX_PASSES):
        before = cleaned
        cleaned = _LINK.sub(r" \1 ", _IMAGE.sub(" ", cleaned))
        for pattern in _REMOVED:
            cleaned = pattern.sub(" ", cleaned)
        if cleaned == before:
            break
    return cut(" ".join(cleaned.split()), max_chars)


def cut(text: str, max_chars: int) -> str:
    if len(text) <= max_chars:
        return text
    head = text[: max_chars - 1]
    whole = head[: head.rfind(" ")] if " " in head[max_chars // 2 :] else head
    return whole.rstrip(" ,;:.-") + "…"


def contact_in(text: str) -> bool:
    """Whether it has an address, a mail address, a phone number or an image."""
    return any(pattern.search(text) for pattern in (_IMAGE, _LINK, _EMAIL, _ADDRESS, _PHONE))


def has_markup(text: str) -> bool:
    """Whether it has code, tags, or marks of who speaks."""
    return any(pattern.search(text) for pattern in (_ROLE_MARKERS, _TAG, _CODE))


def _visible(text: str) -> str:
    """Lines stay apart: who speaks stands at their beginning."""
    text = _DISGUISES.sub(lambda letter: unicodedata.normalize("NFKC", letter[0]), unicodedata.normalize("NFC", text))
    text = "\n".join(text.splitlines()).replace("\t", " ")
    return "".join(one for one in text if one == "\n" or unicodedata.category(one) not in _HIDDEN)
