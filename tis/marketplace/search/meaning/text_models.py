"""What the search asks of the models, and the text of a product that they read."""

from collections.abc import Sequence
from typing import Any, Literal, Protocol

from tis.marketplace.search.product_rows import ProductRow

_MAX_DESCRIPTION_CHARS = 600


class TextModels(Protocol):
    """`app` passes the engine's. All methods raise a ServiceError if the model gives nothing in time."""

    has_reranker: bool

    def vectors(
        self, texts: Sequence[str], purpose: Literal["query", "document"], timeout_seconds: float
    ) -> tuple[str, Any]:
        """The name of the model with its revision, and a vector of numpy for each text."""
        ...

    def sees(self, timeout_seconds: float) -> bool:
        """Whether the embedding model makes vectors of pictures, too."""
        ...

    def picture_vector(self, pixels: Any, data: bytes, timeout_seconds: float) -> tuple[str, Any]:
        """As `vectors`, of one picture: its pixels, and the file that has them."""
        ...

    def scores(self, query: str, texts: Sequence[str], timeout_seconds: float) -> Sequence[float]: ...


def product_text(product: ProductRow) -> str:
    """What says what the product is and is for; no price, no place."""
    labels = [one for one in (product.brand, product.category, product.tags) if one]
    parts = [product.name, ", ".join(labels), (product.description or "")[:_MAX_DESCRIPTION_CHARS]]
    return ". ".join(part for part in parts if part)
