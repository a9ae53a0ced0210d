"""Finds texts of products that talk to a language model instead of to buyers.

A help for admins, not the defence: the assistant treats every text as data, whether or not it is found here.
"""

import re
import unicodedata
from dataclasses import dataclass

MAX_REASON_CHARS = 100
_MAX_EXCERPT_CHARS = 60


@dataclass(frozen=True)
class _Rule:
    """`words`: the pattern matches no text without one of them. To look for words costs a hundredth of a pattern."""

    reason: str
    words: tuple[str, ...]
    pattern: re.Pattern[str]


def _rule(reason: str, words: str, pattern: str) -> _Rule:
    return _Rule(reason, tuple(words.split("|")), re.compile(pattern))


# An order stands at the beginning of a sentence: `dokter selalu rekomendasikan produk ini` is none.
_ORDER = r"(?:^|[\n.!?:;,\"'(\[>*-]|\b(?:must|please|then|and|harus|tolong|mohon|dan|lalu)\b) ?"
_BEGINS = r"(?:^|[\n.!?;>\"'(*]) ?"
_NOT_NEGATED = r"\b(?<!jangan )(?<!tidak )(?<!n't )(?<!not )(?<!never )"
_WORDS = r"(?: [^ .!?:;]{1,30}){0,4}"  # in between, of one sentence
_FEW = r"(?: [^ .!?:;]{1,30}){0,2}"
_TO_MODEL = (
    r"you|your|always|never|only|ignore|recommend|say|reply|answer|respond|print|must|do not|don't|"
    r"kamu|anda|selalu|jangan|abaikan|rekomendasikan|sarankan|katakan|jawab|balas|tampilkan|harus"
)
_WITH_DATA = (
    r"(?:e-?mails?|phone numbers?|passwords?|api keys?|users?|customers?|nomor (?:hp|telepon|telp)|kata sandi|"
    r"alamat e-?mail|pengguna|pelanggan)"
)
_SHOUTED_SYSTEM = re.compile(
    rf"{_BEGINS}SYSTEM ?:(?! ?(?i:windows|android|ios|ipados|linux|ubuntu|mac|chrome|dos|tizen|webos|\d))"
)
_MARKER, _TOOL, _OVERRIDE = "role marker", "tool call", "overrides instructions"
_RECOMMEND, _DATA, _MODEL = "orders a recommendation", "asks for data", "speaks to a model"
_RULES = (
    _rule(_MARKER, "<|", r"<\|\w{1,40}\|>"),
    _rule(_MARKER, "sys>|inst]|_of_turn>", r"<</?sys>>|\[/?inst\]|<(?:start|end)_of_turn>"),
    _rule(_MARKER, "system>|assistant>|instruction>|instructions>", r"</?(?:system|assistant|instructions?)>"),
    _rule(_MARKER, "##", r"(?:^|\n)#{2,} ?(?:system|assistant|instructions?)\b"),
    _rule(_MARKER, "assistant:|asisten:|assistant :|asisten :", rf"{_BEGINS}(?:assistant|asisten) ?:"),
    _rule(
        _MARKER,
        "system|sistem",
        rf"{_BEGINS}(?:system|sistem) ?(?:message|prompt|pesan)? ?:(?=[^\n]{{0,80}}\b(?:{_TO_MODEL})\b)",
    ),
    _rule(
        _TOOL,
        "tool_call|tool_response|function_call|antml:|<function=|<invoke ",
        r"</?(?:tool_calls?|tool_response|function_calls?|antml:\w+)\b|<function=|<invoke |\[tool_calls\]",
    ),
    _rule(_TOOL, 'arguments"|tool_calls"', r"\"(?:tool_calls|arguments)\" ?:"),
    _rule(_TOOL, "_catalog|compare_products", r"\b(?:search_catalog|lookup_catalog|compare_products)\b"),
    _rule(
        _OVERRIDE,
        "ignor|disregard|forget|overrid|bypass",
        rf"{_NOT_NEGATED}(?:(?:ignore|disregard|forget|override|bypass){_WORDS}"
        r" (?:instructions?|prompts?|directives?|guidelines|system messages?)"
        rf"|(?:ignore|disregard|forget) (?:everything|all|anything){_FEW} (?:above|before|previous|prior|rules))\b",
    ),
    _rule(
        _OVERRIDE,
        "abaikan|lupakan|hiraukan|langgar",
        rf"{_NOT_NEGATED}(?:(?:abaikan|lupakan|hiraukan|langgar)(?:lah)?{_WORDS}"
        r" (?:instruksi|perintah|arahan|prompt|(?:petunjuk|aturan|pesan) (?:sistem|sebelumnya|di atas))"
        rf"|(?:abaikan|lupakan)(?:lah)? (?:semua|segala|seluruh){_WORDS} (?:di atas|sebelumnya))\b",
    ),
    _rule(_OVERRIDE, "new instruction|instruksi baru", r"\b(?:new instructions?|instruksi baru) ?:"),
    _rule(
        _RECOMMEND,
        "recommend|suggest|show|choose|pick",
        rf"{_ORDER}(?:(?:only|always) (?:recommend|suggest|show)"
        r"|(?:recommend|suggest|show|choose|pick) (?:only|just) (?:this|our|my|it)"
        r"|(?:do not|don't|never) (?:recommend|show|suggest) (?:any )?other)\b",
    ),
    _rule(_RECOMMEND, "mention", rf"{_ORDER}(?:do not|don't|never) mention (?:any )?other\b"),
    _rule(
        _RECOMMEND,
        "rekomendasikan|sarankan|tampilkan|sebutkan",
        rf"{_ORDER}(?:(?:hanya|selalu) (?:rekomendasikan|sarankan|tampilkan|sebutkan)"
        r"|(?:rekomendasikan|sarankan|tampilkan|sebutkan)(?:lah)? (?:hanya|cuma)"
        r"|(?:rekomendasikan|sarankan|tampilkan|sebutkan)(?:lah)? (?:produk|barang|toko) (?:ini|kami) saja"
        r"|jangan (?:rekomendasikan|tampilkan|sebutkan|sarankan) (?:produk|barang|toko|penjual) lain)\b",
    ),
    _rule(
        _RECOMMEND,
        "price|katakan",
        rf"{_ORDER}(?:(?:say|state|claim) (?:that )?(?:the|its) price\b|katakan (?:bahwa )?harga)",
    ),
    _rule(
        _DATA,
        "mail|phone|password|api key|user|customer",
        r"\b(?:print|show|list|reveal|output|send|leak|disclose|give)(?: me| us)? (?:all|every|each)"
        rf"{_FEW} {_WITH_DATA}\b(?! (?:and|or|from|directly)\b)",
    ),
    _rule(
        _DATA,
        "mail|nomor|sandi|password|pengguna|pelanggan",
        r"\b(?:cetak|tampilkan|kirim(?:kan)?|bocorkan|sebutkan|berikan|tunjukkan) (?:semua|seluruh|setiap)"
        rf"{_FEW} {_WITH_DATA}\b",
    ),
    _rule(_DATA, "system prompt|prompt sistem", r"\b(?:system prompt|prompt sistem)\b"),
    _rule(
        _MODEL,
        "you are",
        r"\byou are (?:now )?(?:an? |the )?(?:helpful |shopping )?(?:ai|assistant|chatbot|language model|llm)\b",
    ),
    _rule(
        _MODEL,
        "kamu|anda",
        r"\b(?:kamu|anda) (?:adalah|sekarang)(?: adalah)? (?:sebuah |seorang )?(?:ai|asisten|chatbot|model bahasa)\b",
    ),
    _rule(_MODEL, "as an ai|sebagai", r"\bas an ai (?:language )?model\b|\bsebagai (?:model bahasa|asisten ai)\b"),
    _rule(
        _MODEL,
        "note|message|instruction",
        r"\b(?:note|message|instructions?) (?:to|for) (?:the )?(?:ai|llm|assistant|chatbot|language model)s?\b",
    ),
    _rule(
        _MODEL,
        "catatan untuk|pesan untuk|instruksi untuk",
        r"\b(?:catatan|pesan|instruksi) untuk (?:ai|llm|asisten|chatbot|model bahasa)\b",
    ),
    _rule(
        _MODEL,
        "only with|hanya dengan",
        rf"{_ORDER}(?:(?:reply|respond|answer) only with|(?:jawab|balas)(?:lah)? hanya dengan)\b",
    ),
    _rule(
        _MODEL,
        "tell the|beritahu|beri tahu|katakan",
        r"\b(?:(?:do not|don't|never) tell the (?:user|buyer|customer)s?"
        r"|jangan (?:beri ?tahu|katakan)(?: kepada)? (?:pengguna|pembeli))\b",
    ),
)


def instruction_like(text: str) -> str | None:
    """What of the text is an instruction, and how it reads; None for an ordinary text."""
    lines = (" ".join(line.split()) for line in unicodedata.normalize("NFKC", text).splitlines())
    normal = "\n".join(line for line in lines if line)
    if "SYSTEM" in normal and (shouted := _SHOUTED_SYSTEM.search(normal)):
        return _reason(_MARKER, normal[shouted.start() :])
    lower = normal.lower()
    for rule in _RULES:
        if any(word in lower for word in rule.words) and (found := rule.pattern.search(lower)):
            return _reason(rule.reason, found[0])
    return None


def _reason(reason: str, words: str) -> str:
    excerpt = " ".join(words[:_MAX_EXCERPT_CHARS].split()).strip(" .,;:!?>*(\"'")
    return f"{reason}: {excerpt}"[:MAX_REASON_CHARS]
