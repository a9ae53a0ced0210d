"""The text that asks a causal model whether a document answers a query, as Qwen3-Reranker was taught it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tis.engine.errors import LoadFailed
from tis.engine.pooling.sentence_files import SentenceFiles

DEFAULT_INSTRUCTION = "Given a web search query, retrieve relevant passages that answer the query"
_BEFORE = (
    "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the Instruct "
    'provided. Note that the answer can only be "yes" or "no".<|im_end|>\n<|im_start|>user\n'
)
_AFTER = "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"


@dataclass(frozen=True, slots=True)
class YesNoTemplate:
    before: Sequence[int]  # tokens
    after: Sequence[int]
    yes: int
    no: int | None

    @staticmethod
    def text(instruction: str | None, query: str, document: str) -> str:
        return f"<Instruct>: {instruction or DEFAULT_INSTRUCTION}\n<Query>: {query}\n<Document>: {document}"


def yes_no_template(tokenizer: Any, files: SentenceFiles) -> YesNoTemplate:
    """Raises LoadFailed for a model without the control tokens of the template, and "yes" and "no" as tokens."""
    before, after = (tokenizer.encode(piece, add_special_tokens=False) for piece in (_BEFORE, _AFTER))
    known = tokenizer.get_vocab()
    yes = files.true_token if files.true_token is not None else known.get("yes")
    no = files.false_token if files.true_token is not None else known.get("no")
    if "<|im_start|>" not in known or yes is None or (no is None and files.true_token is None):
        raise LoadFailed(
            "It is no reranker that is known: it classifies no pairs, and lacks the tokens of Qwen3-Reranker."
        )
    return YesNoTemplate(before, after, yes, no)
