"""What a grammar costs: a token with and without a schema at 1, 8 and 16 rows, compiling, and what is forced.

    python benchmarks/grammar.py --model-folder FOLDER [--rows 1,8,16] [--rounds 3] [--tokens 48]

The model is that of `random_model.py` (0.45 B, random weights), built into the folder once. "With" is a schema of one
long string: nothing of it is forced, so every token pays for its mask. Both sides sample alike and take turns in each
round, in this process: nothing of HTTP is in these numbers. Masks of 151,936 tokens are timed apart, without a model.
"""

import argparse
import asyncio
import random
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from random_model import build_model  # noqa: E402

from tis.engine.grammar.compile import GrammarCompiler  # noqa: E402
from tis.engine.grammar.grammar import Grammar  # noqa: E402
from tis.engine.local_engine import EngineLimits, LocalEngine  # noqa: E402
from tis.engine.models.catalogue import CatalogueEntry  # noqa: E402
from tis.engine.models.loaded_model import LoadedModel  # noqa: E402
from tis.engine.models.loading import LoadOptions, load_model  # noqa: E402
from tis.engine.prompt import ChatPrompt  # noqa: E402

_LARGE_VOCABULARY = 151_936
_NAME = {"type": "string", "maxLength": 20}
SCHEMAS: dict[str, dict[str, Any]] = {
    "one long string": {"type": "string", "minLength": 5000},
    "a card": {
        "type": "object",
        "properties": {
            "nik": {"type": "string", "pattern": "^[0-9]{16}$"},
            "nama": _NAME,
            "tempat_lahir": _NAME,
            "tanggal_lahir": {"type": "string", "pattern": "^[0-9]{2}-[0-9]{2}-[0-9]{4}$"},
            "jenis_kelamin": {"enum": ["LAKI-LAKI", "PEREMPUAN"]},
            "alamat": {
                "type": "object",
                "properties": {"jalan": _NAME, "rt_rw": {"type": "string", "pattern": "^[0-9]{3}/[0-9]{3}$"}},
                "required": ["jalan", "rt_rw"],
                "additionalProperties": False,
            },
            "agama": {"enum": ["ISLAM", "KRISTEN", "KATOLIK", "HINDU", "BUDDHA", "KONGHUCU"]},
            "status_perkawinan": {"enum": ["BELUM KAWIN", "KAWIN", "CERAI HIDUP", "CERAI MATI"]},
        },
        "additionalProperties": False,
    },
    "300 optional properties": {
        "type": "object",
        "properties": {f"property_{n}": {"type": "number"} for n in range(300)},
    },
    "an enumeration of 1000": {"enum": [f"produk nomor {n}" for n in range(1000)]},
    "any object": {"type": "object"},
}
SCHEMAS["a card"]["required"] = list(SCHEMAS["a card"]["properties"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model-folder", type=Path, required=True)
    parser.add_argument("--rows", default="1,8,16")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tokens", type=int, default=48)
    options = parser.parse_args()
    build_model(options.model_folder)
    asyncio.run(_measure(options))


async def _measure(options: argparse.Namespace) -> None:
    import torch

    torch.set_num_threads(2)
    loaded = load_model(str(options.model_folder), LoadOptions(device_map="cpu"), lambda stage, share: None)
    assert loaded.grammars
    print_compiling(loaded.grammars)
    print_masks()
    engine = LocalEngine([CatalogueEntry(id="m", repo="m")], lambda entry, report: loaded, EngineLimits())
    await engine.open()
    string = Grammar("json_schema", SCHEMAS["one long string"])
    print("\n| rows | ms a token without | with a schema | ratio, median of the rounds |\n|---|---|---|---|")
    for rows in map(int, options.rows.split(",")):
        await _seconds_a_token(engine, rows, 8, string)  # to warm up
        free, held = [], []
        for _ in range(options.rounds):
            free.append(await _seconds_a_token(engine, rows, options.tokens, None))
            held.append(await _seconds_a_token(engine, rows, options.tokens, string))
        ratio = statistics.median(one / other for one, other in zip(held, free, strict=True))
        print(f"| {rows} | {1000 * min(free):.1f} | {1000 * min(held):.1f} | {ratio:.3f} |", flush=True)
    await _print_forced(engine, loaded)
    await engine.close()


def _asked(seed: int, tokens: int) -> dict[str, Any]:
    return {"max_tokens": tokens, "temperature": 1.0, "seed": seed, "ignore_eos": True, "thinking_budget": 0}


async def _seconds_a_token(engine: LocalEngine, rows: int, tokens: int, grammar: Grammar | None) -> float:
    """Between the first and the last token of all: prompts are left out."""
    prompts = [ChatPrompt([{"role": "user", "content": f"{row} halo apa kabar"}]) for row in range(rows)]
    prepared = [await engine.prepare("m", prompt, _asked(row, tokens), grammar) for row, prompt in enumerate(prompts)]
    made: list[tuple[float, int]] = []

    async def read(one: Any) -> None:
        async for pieces in engine.submit(one).batches():
            made.extend((time.perf_counter(), len(piece.token_ids)) for piece in pieces)

    await asyncio.gather(*map(read, prepared))
    made.sort()
    began = made[rows - 1][0]
    # A token without a text comes with the next one.
    num_tokens = sum(count for when, count in made if when > began)
    return (made[-1][0] - began) / (num_tokens / rows)


async def _print_forced(engine: LocalEngine, loaded: LoadedModel) -> None:
    """Pieces are what the model was asked for; the other tokens came with them."""
    grammar, asked, made, seconds = Grammar("json_schema", SCHEMAS["a card"]), 0, 0, 0.0
    for seed in range(6):
        prepared = await engine.prepare(
            "m", ChatPrompt([{"role": "user", "content": "Kartu"}]), _asked(seed, 400), grammar
        )
        began = time.perf_counter()
        async for piece in engine.submit(prepared):
            asked += bool(piece.token_ids)
            made += len(piece.token_ids)
        seconds += time.perf_counter() - began
    print(f"\na card: {made / 6:.0f} tokens, {1 - asked / made:.0%} of them forced", end="")
    print(f"; {1000 * seconds / made:.1f} ms a token")


def print_compiling(grammars: GrammarCompiler) -> None:
    grammars.compile(Grammar("choice", ["warm"]))
    print("| schema | ms to compile, in both processes | ms found again |\n|---|---|---|")
    for name, schema in SCHEMAS.items():
        grammar = Grammar("json_schema", schema)
        print(f"| {name} | {_ms(lambda one=grammar: grammars.compile(one)):.1f} ", end="")
        print(f"| {_ms(lambda one=grammar: grammars.compile(one)):.2f} |", flush=True)


def print_masks() -> None:
    """Without a model: random tokens that the grammar allows, one after the other."""
    chance, vocabulary = random.Random(1), _LargeVocabulary()
    grammars = GrammarCompiler(vocabulary.tokenizer, _LARGE_VOCABULARY, "hermes", {})
    print(f"\n| {_LARGE_VOCABULARY} tokens | ms a mask, mean | worst | ms to apply it | ms a forced run |")
    print("|---|---|---|---|---|")
    for name, schema in SCHEMAS.items():
        matcher = grammars.compile(Grammar("json_schema", schema)).matcher.copy()
        masks, applied, forced = [], [], []
        while not matcher.is_complete and len(masks) < 200:
            began = time.perf_counter()
            run = matcher.forced()
            forced.append(time.perf_counter() - began)
            for token_id in run:
                matcher.feed(token_id)
            if run:
                continue
            began = time.perf_counter()
            allowed = matcher.allowed()
            masks.append(time.perf_counter() - began)
            applied.append(_seconds_to_apply(allowed))
            matcher.feed(chance.choice(allowed.nonzero()[0].tolist()))
        means = (_mean(masks), 1000 * max(masks, default=0), _mean(applied), _mean(forced))
        print(f"| {name} | {' | '.join(f'{one:.2f}' for one in means)} |", flush=True)


class _LargeVocabulary:
    """The demo's words, and as many made of two or three of them as a large model has."""

    eos_token_id = 0
    bos_token_id = None

    def __init__(self) -> None:
        import json

        known = json.loads((ROOT / "models" / "demo" / "tokenizer.json").read_text(encoding="utf-8"))["model"]["vocab"]
        words = sorted(word.replace("Ġ", " ").encode() for word in known if word.replace("Ġ", "").isascii())
        chance, more = random.Random(0), set(words)
        while len(more) < _LARGE_VOCABULARY - 257:
            more.add(b"".join(chance.choices(words, k=chance.choice([2, 2, 3]))))
        single = [bytes([byte]) for byte in range(256)]
        self.tokens = [b"<end>", *single, *sorted(more - set(single))][:_LARGE_VOCABULARY]
        self.tokens += [b"<unused>"] * (_LARGE_VOCABULARY - len(self.tokens))
        self.special_token_ids = [0]

    def __call__(self, text: bytes | str) -> list[int]:
        return [1 + byte for byte in (text if isinstance(text, bytes) else text.encode())]

    def tokenizer(self) -> Any:
        from llguidance import LLTokenizer, TokenizerWrapper

        return LLTokenizer(TokenizerWrapper(self), n_vocab=_LARGE_VOCABULARY)


def _seconds_to_apply(allowed: Any) -> float:
    import torch

    from tis.engine.sampling.pick import forbid

    logits = torch.zeros(1, len(allowed))
    began = time.perf_counter()
    forbid(logits[0], ~allowed)
    return time.perf_counter() - began


def _ms(work: Any) -> float:
    began = time.perf_counter()
    work()
    return 1000 * (time.perf_counter() - began)


def _mean(seconds: Sequence[float]) -> float:
    return 1000 * statistics.mean(seconds) if seconds else 0.0


if __name__ == "__main__":
    main()
