"""What crawlers read of the shop: they run no script, and the page of a product is one."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol


class ProductHead(Protocol):
    """HTML, escaped."""

    @property
    def status(self) -> int: ...
    @property
    def head(self) -> str:
        """The title and what stands beside it."""
        ...

    @property
    def text(self) -> str:
        """For a browser without scripts."""
        ...


@dataclass(frozen=True)
class UnknownHead:
    """While nobody can say what the product is."""

    status: int
    head: str = "<title>Shop</title>"
    text: str = "Try again later."


class ShopWindow(Protocol):
    """Its plain methods block: they ask the database. All raise ServiceError."""

    async def count_read(self, address: str) -> None:
        """One of the reads of whole lists that a client address has."""
        ...

    def product_head(self, product_id: int) -> ProductHead: ...

    def robots(self) -> str: ...

    def sitemap(self) -> str:
        """The list of the parts."""
        ...

    def sitemap_part(self, number: int) -> Iterator[str]:
        """Raises NotFound at once if there is no such part."""
        ...


def page_with(page: bytes, head: ProductHead) -> bytes:
    """The page of the shop with the head and the text of a product."""
    html = page.decode()
    start, title_and_rest = html.split("<title>", 1)
    rest = title_and_rest.split("</title>", 1)[1]
    before, hidden = rest.split("<noscript>", 1)
    after = hidden.split("</noscript>", 1)[1]
    return f"{start}{head.head}{before}<noscript>{head.text}</noscript>{after}".encode()
