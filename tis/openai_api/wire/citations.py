"""Citations: where an answer names a URL that a tool has returned.

They follow from the outputs of the calls and from the text alone, which are recorded: a resumed answer has the same.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_MAX_URLS = 1000
_MAX_OUTPUT_CHARS = 256 * 1024  # of a call, in which URLs are looked for: this runs on the event loop
_MAX_URL_CHARS = 2048
_MAX_TITLE_CHARS = 300
_MAX_CITATIONS = 128
_MAX_LABEL_CHARS = 300
_MAX_BEHIND = 16
_URL = re.compile(r"https?://[^\s<>\"\[\]{}|\\^`]+", re.IGNORECASE)
# What may stand behind a URL without being part of it. A bracket may also be its last character.
_BEHIND = frozenset(".,;:!?)'*_~…。，、；：！？）」』”’»")
_LINK_END = re.compile(r'(?:\s{1,3}"[^"\n]{0,300}")?\)')
_URL_FIELDS = ("url", "link", "href", "uri")
_TITLE_FIELDS = ("title", "name", "headline")
_TITLE_LINE = re.compile(r"^\W{0,8}title\W{0,3}:\W{0,3}(\S.*)$", re.IGNORECASE)
# "[A title](https://...", and "[a name: https://...", which is what the model reads of a resource link.
_TITLE_BEFORE = re.compile(r"\[([^\[\]\n]{1,300})(?:\]\(|: )$")


@dataclass(frozen=True, slots=True)
class UrlCitation:
    start: int
    end: int  # the index behind its last character
    url: str
    title: str

    def of_response(self) -> dict[str, Any]:
        return {"type": "url_citation", **self._fields()}

    def of_chat(self) -> dict[str, Any]:
        return {"type": "url_citation", "url_citation": self._fields()}

    def _fields(self) -> dict[str, Any]:
        return {"start_index": self.start, "end_index": self.end, "url": self.url, "title": self.title}


class ReturnedUrls:
    """The URLs in the outputs of an answer's calls, each with the title that stood beside it."""

    def __init__(self) -> None:
        self._titles: dict[str, str] = {}

    def add(self, output: str | None) -> None:
        text = (output or "")[:_MAX_OUTPUT_CHARS]
        if "http" not in text.lower():
            return
        for url, title in _urls_in(text):
            if len(self._titles) >= _MAX_URLS:
                return
            if len(url) <= _MAX_URL_CHARS:
                self._titles[url] = self._titles.get(url) or " ".join(title.split())[:_MAX_TITLE_CHARS]

    def cited_in(self, text: str) -> list[UrlCitation]:
        """In the order of the text. A Markdown link is cited as a whole."""
        found: list[UrlCitation] = []
        for match in _URL.finditer(text) if self._titles else ():
            if (url := self._known(match[0])) is None:
                continue
            start, end = _link_around(text, match.start(), match.start() + len(url))
            while found and found[-1].start >= start:  # the label of this link
                found.pop()
            if len(found) == _MAX_CITATIONS:
                break
            found.append(UrlCitation(start, end, url, self._titles[url] or url))
        return found

    def _known(self, written: str) -> str | None:
        for _ in range(_MAX_BEHIND):
            if written in self._titles:
                return written
            if written[-1] not in _BEHIND:
                return None
            written = written[:-1]
        return None


def _link_around(text: str, start: int, end: int) -> tuple[int, int]:
    """The bounds of `[label](url)`, or those of the URL if it stands alone."""
    closed = _LINK_END.match(text, end) if text[max(0, start - 2) : start] == "](" else None
    if closed is None:
        return start, end
    depth = 0
    for at in range(start - 2, max(-1, start - 2 - _MAX_LABEL_CHARS), -1):
        depth += {"]": 1, "[": -1}.get(text[at], 0)
        if depth == 0:
            return at, closed.end()
    return start, end


def _urls_in(output: str) -> Iterator[tuple[str, str]]:
    try:
        rest = [json.loads(output)]
    except (ValueError, RecursionError):
        rest = [output]
    while rest:
        match rest.pop():
            case str(text):
                yield from _urls_in_text(text)
            case dict(fields):
                title = next((one for name in _TITLE_FIELDS if isinstance(one := fields.get(name), str)), "")
                for name in _URL_FIELDS:
                    if isinstance(url := fields.get(name), str) and _URL.fullmatch(url):
                        yield url, title
                rest += reversed(fields.values())
            case list(items):
                rest += reversed(items)


def _urls_in_text(text: str) -> Iterator[tuple[str, str]]:
    title = ""
    for line in text.splitlines():
        if match := _TITLE_LINE.match(line):
            title = match[1]
        for found in _URL.finditer(line):
            before = _TITLE_BEFORE.search(line[max(0, found.start() - _MAX_LABEL_CHARS - 3) : found.start()])
            yield _without_end(found[0]), before[1] if before else title
            title = ""


def _without_end(url: str) -> str:
    while url[-1] in _BEHIND and not (url[-1] == ")" and url.count("(") >= url.count(")")):
        url = url[:-1]
    return url
