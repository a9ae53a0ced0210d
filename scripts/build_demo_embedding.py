"""Builds models/demo-embedding and models/demo-reranker from the words of this repository, in minutes on two cores.

.venv/bin/python scripts/build_demo_embedding.py [--out models] [--only-reranker]

The vocabulary is the one of models/demo-embedding. `--only-reranker` goes on from the embedding model that is in the
folder, and gives the same reranker.
"""

import argparse
import os
import random
import sys
import time
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPOSITORY))
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import torch  # noqa: E402
from transformers import BertModel, PreTrainedTokenizerFast  # noqa: E402

from scripts.demo_embedding.encoder import (  # noqa: E402
    MAX_FOLDER_BYTES,
    save,
    save_sentence_files,
    size_bytes,
    tokenizer_of,
)
from scripts.demo_embedding.pairs import Lessons  # noqa: E402
from scripts.demo_embedding.training import make_repeatable, trained_embedding, trained_reranker, vectors  # noqa: E402

_SEED = 17
_VOCABULARY = REPOSITORY / "models" / "demo-embedding" / "tokenizer.json"
_REPORT_EVERY = 100
_MIN_SHARE_FIRST = 0.9  # of fresh pairs, whose product is the nearest of all goods with a use


class MeanLosses:
    """Prints the mean loss of the last steps."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._began = time.monotonic()
        self._losses: list[float] = []

    def __call__(self, step: int, loss: float) -> None:
        self._losses.append(loss)
        if (step + 1) % _REPORT_EVERY == 0:
            mean = sum(self._losses) / len(self._losses)
            print(f"{self._name} step {step + 1}: loss {mean:.3f}, {time.monotonic() - self._began:.0f} s", flush=True)
            self._losses.clear()


def build(out: Path, steps: int, reranker_steps: int, *, only_reranker: bool) -> bool:
    make_repeatable()
    lessons = Lessons()
    tokenizer = tokenizer_of(lessons.texts(), _VOCABULARY)
    print(f"{len(lessons.goods)} kinds of goods, {len(tokenizer)} tokens")
    if only_reranker:
        embedding = BertModel.from_pretrained(out / "demo-embedding").eval()
    else:
        embedding = trained_embedding(tokenizer, lessons, steps, _SEED, MeanLosses("embedding"))
        save(embedding, tokenizer, out / "demo-embedding")
        save_sentence_files(out / "demo-embedding", embedding.config.hidden_size)
    reranker = trained_reranker(embedding, tokenizer, lessons, reranker_steps, _SEED, MeanLosses("reranker"))
    save(reranker, tokenizer, out / "demo-reranker")
    share = share_found_first(embedding, tokenizer, lessons)
    print(f"fresh queries whose goods are nearest: {share:.3f}")
    sizes = {name: size_bytes(out / name) for name in ("demo-embedding", "demo-reranker")}
    print("\n".join(f"{name}: {size:,} bytes" for name, size in sizes.items()))
    return share >= _MIN_SHARE_FIRST and max(sizes.values()) <= MAX_FOLDER_BYTES


def share_found_first(model: torch.nn.Module, tokenizer: PreTrainedTokenizerFast, lessons: Lessons) -> float:
    """Of sentences about a use, drawn anew: how many are nearer to a product of their goods than to any other's."""
    numbers = random.Random(_SEED + 1)
    drawn = [one for one in (lessons.draw(numbers) for _ in range(600)) if lessons.goods[one.goods].uses_id]
    kinds = [number for number, one in enumerate(lessons.goods) if one.uses_id]
    with torch.inference_mode():
        products = vectors(model, tokenizer, [lessons.product(number, numbers) for number in kinds])
        queries = vectors(model, tokenizer, [one.query for one in drawn])
    nearest = (queries @ products.T).argmax(1).tolist()
    return sum(1 for place, one in zip(nearest, drawn, strict=True) if kinds[place] == one.goods) / len(drawn)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=REPOSITORY / "models")
    parser.add_argument("--steps", type=int, default=800)
    parser.add_argument("--reranker-steps", type=int, default=600)
    parser.add_argument("--only-reranker", action="store_true")
    options = parser.parse_args()
    return 0 if build(options.out, options.steps, options.reranker_steps, only_reranker=options.only_reranker) else 1


if __name__ == "__main__":
    sys.exit(main())
