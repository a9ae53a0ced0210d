"""What no upstream is asked for: it has no form in the API of OpenAI, or needs tokens that are not known here."""

from collections.abc import Callable
from typing import NoReturn, TypeVar

from tis.engine.text.tokenizer import RawTokenizer, TextCodec
from tis.errors import BadRequest

T = TypeVar("T")


class RefusedElsewhere:
    """The methods of `Engine` that `UpstreamEngine` does not have: each is refused by name."""

    async def with_tokenizer(self, model_id: str, work: Callable[[RawTokenizer], T]) -> T:
        refuse("what needs its tokens: compaction, echo, decisions")

    async def with_codec(self, model_id: str, work: Callable[[TextCodec], T]) -> T:
        refuse("tokens")


def refuse(what: str) -> NoReturn:
    raise BadRequest(
        f"This model is served by another engine, which is not asked for {what}.",
        param="model",
        code="model_not_supported",
    )
