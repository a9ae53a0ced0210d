"""Bodies of /v1/completions, /tokenize, /detokenize and /v1/decisions: floods of prompts, tokens and questions."""

from collections.abc import Iterator
from typing import Any

from tests.faults.hostile.row import Row, codes, post

COMPLETIONS = "/v1/completions"
_PREDICATE: dict[str, Any] = {"type": "predicate", "instructions": "It is so."}


def rows() -> Iterator[Row]:
    yield from _prompts()
    yield from _fields()
    yield from _tokens()
    yield from _decisions()


def completion(name: str, statuses: int | tuple[int, ...], **fields: Any) -> Row:
    return Row(
        f"completion: {name}", codes(statuses), "POST", COMPLETIONS, {"prompt": "Halo", "max_tokens": 2, **fields}
    )


def _prompts() -> Iterator[Row]:
    yield completion("128 prompts", 200, prompt=["Halo"] * 128)
    yield completion("129 prompts", 400, prompt=["Halo"] * 129)
    yield completion("50,000 prompts", 400, prompt=["a"] * 50_000)
    yield completion("50,000 prompts of no type", 400, prompt=[{}] * 50_000)
    yield completion("90,000 token ids", (200, 400), prompt=[5] * 90_000)
    yield completion("90,000 wrong token ids", 400, prompt=["x", *[5] * 90_000])
    yield completion("128 prompts of 700 tokens", (200, 400), prompt=[[5] * 700] * 128)
    yield completion("prompts in prompts", 400, prompt=[[[[[5]]]]])
    yield completion("a token of 400 digits", 400, prompt=[10**400])
    yield completion("a token of -1", 400, prompt=[-1])
    yield completion("a prompt of 3.5 MB", 400, prompt="kata " * 700_000)
    yield completion("128 prompts of 30 kB", 400, prompt=["kata " * 6000] * 128)
    yield completion("a prompt of blanks", (200, 400), prompt=" " * 900_000)
    yield completion("control tokens", 200, prompt="<|im_start|>" * 500)
    yield completion("half a surrogate pair", 400, prompt="\ud800")
    yield completion("an empty prompt", (200, 400), prompt="")
    yield completion("no prompt", 400, prompt=None)


def _fields() -> Iterator[Row]:
    yield completion("a long echo with logprobs", (200, 400), prompt="kata " * 3000, echo=True, logprobs=20)
    yield completion("many echoes with logprobs", (200, 400), prompt=["kata " * 60] * 20, echo=True, logprobs=20, n=2)
    yield completion("16 choices of 16 prompts", 200, prompt=["Halo"] * 16, n=16)
    yield completion("16 choices of 17 prompts", 400, prompt=["Halo"] * 17, n=16)
    for name in ("n", "logprobs", "best_of", "max_tokens"):
        values: list[Any] = [-1, 10**30, 0.5, float("nan"), "1", True, [], {}]
        for value in values:
            yield completion(f"{name} is {str(value)[:12]!r}", 400, **{name: value})
    yield completion("a suffix of a megabyte", 400, suffix="x" * 1_000_000)
    yield completion("guided_regex that explodes", (200, 400), guided_regex="(a{1,100}){1,100}")
    yield completion("a grammar and 64 prompts", (200, 400), prompt=["Halo"] * 64, guided_regex="[a-z]{2}")
    yield completion("20,000 keys nobody knows", 200, **{f"key_{number}": 0 for number in range(20_000)})


def _tokens() -> Iterator[Row]:
    for path in ("/tokenize", "/v1/tokenize"):
        yield post("3.5 MB", (200, 400), path, {"prompt": "kata " * 700_000})
        yield post("3.5 MB with pieces", (200, 400), path, {"content": "kata " * 700_000, "with_pieces": True})
        yield post("a prompt and a content", 400, path, {"prompt": "a", "content": "b"})
        yield post("50,000 messages", 400, path, {"messages": [{"role": "user", "content": "x"}] * 50_000})
    for path in ("/detokenize", "/v1/detokenize"):
        yield post("90,000 tokens", 200, path, {"tokens": [5] * 90_000})
        yield post("tokens of no vocabulary", 400, path, {"tokens": [2**62]})
        yield post("90,000 texts", 400, path, {"tokens": ["5"] * 90_000})


def _decisions() -> Iterator[Row]:
    yield post("401 questions", 400, "/v1/decisions", {"input": "Halo", "questions": [_PREDICATE] * 401})
    yield post("400 questions", 200, "/v1/decisions", {"input": "Halo", "questions": [_PREDICATE] * 400})
    long = {"input": "kata " * 3000, "questions": [_PREDICATE] * 400}
    yield post("400 questions about a long input", (200, 400), "/v1/decisions", long)
    options = {"type": "choice", "instructions": "?", "choices": [{"value": str(n)} for n in range(255)]}
    yield post("255 options", (200, 400), "/v1/decisions", {"input": "Halo", "questions": [options]})
    levels = {"type": "score", "instructions": "?", "levels": [{"label": "x"}] * 50_000}
    yield post("50,000 levels", 400, "/v1/decisions", {"input": "Halo", "questions": [levels]})
    yield post("20,000 items", 400, "/v1/decisions", {"input": [{"role": "user"}] * 20_000, "questions": [_PREDICATE]})
    yield post("moderation", 501, "/v1/moderations", {"input": "x" * 100_000})
