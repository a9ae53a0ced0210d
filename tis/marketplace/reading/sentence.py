"""The sentence while it is read: rules take words out of it, each once, and say why."""

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, field

from tis.marketplace.reading.prices import Spelling
from tis.marketplace.reading.structured_query import MAX_QUERY_CHARS, Explanation
from tis.marketplace.reading.tokens import folded

_TAKEN = "\0"  # stands in place of what a rule has taken: neither a letter nor a blank
_WORD = re.compile(r"[^\W_]+(?:[-'.][^\W_]+|(?<=\d)/\d+)*|[,.;:!?()/&+]|\0+")
_SIGNS = str.maketrans({"–": "-", "—": "-", "‐": "-", "’": "'", "‘": "'", "“": '"', "”": '"', "_": " "})
_SAME_LETTERS = re.compile(r"([a-z])\1{2,}")  # murahhh
# One word of two, and units as the search knows them.
_SPELLINGS: list[Spelling] = [
    (_SAME_LETTERS, lambda found: found[1]),
    (re.compile(r"(?<!\w)(?:type|tipe|typ)[ -]?([abc])(?!\w)"), lambda found: f"type-{found[1]}"),
    (re.compile(r"(?<!\w)pro max(?!\w)(?! ?(?:rp ?)?\d)"), lambda _: "pro-max"),
    (re.compile(r"(?<=\d)(?:in| ?(?:inc|inces|inchs|inchies|ins))(?!\w)|(?<=\d) ?[\"”]"), lambda _: " inch"),
    (re.compile(r"(?<!\w)(?:setengah|stengah) (?=(?:pk|kg|kilo|liter|meter)(?!\w))"), lambda _: "1/2 "),
    (re.compile(r"(?<!\w)(?:tanpa|(?:ga|gak|nggak|tidak) (?:pake|pakai|ada)) kabel(?!\w)"), lambda _: "wireless"),
    (re.compile(r"(?<=[a-z])-(?=nya(?!\w))"), lambda _: ""),
    (re.compile(r"(?<=[a-z]{3}) (?:ny|nya)(?!\w)"), lambda _: "nya"),
    (re.compile(r"(?<=men|kid|irl|boy|ady|ren)'?s?'s?(?!\w)"), lambda _: ""),  # women's
    (re.compile(r"(?<!\w)mice(?!\w)"), lambda _: "mouse"),
    (re.compile(r"(?<=[a-z0-9]) (?:per|each) [a-z]+(?=\W*$)"), lambda _: ""),  # `maksimal 2 juta per hp`
    (re.compile(r"(?<=\d) ?(?:people|persons?|pax)(?!\w)"), lambda _: " orang"),
    (re.compile(r"(?<!\w)(?:setengah lusin|half a dozen)(?!\w)"), lambda _: "6 pcs"),
]


@dataclass(frozen=True, slots=True)
class SentenceWord:
    """A word or a sign at `text[start:end]` of the sentence; what a rule has taken is a word without letters."""

    text: str
    start: int
    end: int

    @property
    def is_sign(self) -> bool:
        return not self.text[0].isalnum()


@dataclass
class Sentence:
    """`text` is lower case without accents; `origins` tells for each of its characters where it was in `said`."""

    said: str
    text: str = field(init=False)
    origins: list[int] = field(init=False)
    explain: list[Explanation] = field(default_factory=list)
    taken: list[tuple[frozenset[str], int, int]] = field(default_factory=list)  # fields, and where in `said` they stand

    def __post_init__(self) -> None:
        self.said = unicodedata.normalize("NFC", self.said)
        letters, origins = list[str](), list[int]()
        for position, character in enumerate(self.said.translate(_SIGNS)):
            for letter in character.lower() if character.isascii() else folded(character):
                letter = " " if letter.isspace() or not letter.isprintable() else letter
                if letter != " " or (letters and letters[-1] != " "):
                    letters.append(letter)
                    origins.append(position)
        letters, origins = letters[:MAX_QUERY_CHARS], origins[:MAX_QUERY_CHARS]  # one letter of Arabic is eighteen
        self.text, self.origins = "".join(letters), [*origins, len(self.said)]
        self.respell(_SPELLINGS)

    def respell(self, spellings: Iterable[Spelling]) -> None:
        """Writes words in another way. They stay where they were in what was said."""
        for pattern, spelling in spellings:
            parts, origins, end = list[str](), list[int](), 0
            for found in pattern.finditer(self.text):
                new = spelling(found)
                parts += [self.text[end : found.start()], new]
                origins += self.origins[end : found.start()]
                origins += self.origins[found.start() : found.end()][: len(new)]
                origins += [self.origins[max(found.start(), found.end() - 1)]] * (len(new) - len(found[0]))
                end = found.end()
            if end:
                self.text = "".join((*parts, self.text[end:]))
                self.origins = [*origins, *self.origins[end:]]

    def words(self) -> list[SentenceWord]:
        return [SentenceWord(found[0], *found.span()) for found in _WORD.finditer(self.text)]

    def said_at(self, start: int, end: int) -> str:
        return self.said[self.origins[start] : self.origins[end]].strip()

    def take(self, start: int, end: int, rule: str, *fields: str) -> None:
        """No later rule sees these characters."""
        self.note(start, end, rule, *fields)
        self.taken.append((frozenset(fields), self.origins[start], self.origins[end]))
        self.text = self.text[:start] + _TAKEN * (end - start) + self.text[end:]

    def note(self, start: int, end: int, rule: str, *fields: str) -> None:
        words = self.said_at(start, end)
        self.explain += [Explanation(field=name, rule=rule, words=words) for name in fields]

    def take_found(self, found: "re.Match[str]", rule: str, *fields: str) -> None:
        self.take(*found.span(), rule, *fields)


def whole_words(pattern: str) -> "re.Pattern[str]":
    return re.compile(rf"(?<![^\W_])(?:{pattern})(?![^\W_])")


def any_of(forms: str) -> "re.Pattern[str]":
    """One of these forms, which are regular expressions in lines of their own."""
    return whole_words("|".join(line.strip() for line in forms.strip().splitlines()))
