"""What integer weights cost and give: loss of quality on the demo model, speed for a single client.

    python benchmarks/quantised.py --model-folder FOLDER

Quality: every answer that the demo model gives to its own checks in full precision is read again with integer weights;
the perplexity of those answers, and how often the likeliest next token is still the same; a token at a time as answers
are made, and all tokens of a conversation at once, as prompts are read (64 or more rows have 8 bits where the CPU is
faster then). Speed of a whole server (steps of the engine: `int8.py`): the model of `random_model.py` (built into
FOLDER if it is not there), one client, each kind of weights in turn, over rounds.
"""

import argparse
import math
import statistics
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from chat import Load, measure  # noqa: E402
from contenders import started, this_server  # noqa: E402
from random_model import build_model, words_for  # noqa: E402

KINDS = (None, "int8", "int4")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model-folder", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--requests", type=int, default=2)
    options = parser.parse_args()
    print_quality()
    print_speed(options.model_folder.resolve(), options.rounds, options.requests)


def print_quality() -> None:
    answers = _answers_in_full_precision()
    print(f"\n{sum(len(answer) for _, answer in answers)} tokens of {len(answers)} answers of the demo model\n")
    print("| weights | perplexity | likeliest token the same | KL divergence, nats per token |\n|---|---|---|---|")
    exact: list[Any] = []
    for name, model, at_once in (
        ("float32", _demo(None), False),
        ("bfloat16", _demo(None).bfloat16(), False),
        ("int8, a token at a time", _demo("int8"), False),
        ("int8, all tokens at once", _demo("int8"), True),
        ("int4, a token at a time", _demo("int4"), False),
        ("int4, all tokens at once", _demo("int4"), True),
    ):
        perplexity, agreement, divergence = _quality(model, answers, _at_once if at_once else _one_by_one, exact)
        print(f"| {name} | {perplexity:.4f} | {agreement:.2%} | {divergence:.1e} |", flush=True)


def print_speed(folder: Path, rounds: int, requests: int) -> None:
    build_model(folder)
    load = Load(requests_each=requests, prompt_tokens=words_for(folder, 210), max_tokens=32, extra={"temperature": 0})
    ours = this_server(folder)
    speeds: dict[str | None, list[tuple[float, float]]] = {kind: [] for kind in KINDS}
    for _ in range(rounds):
        for kind in KINDS:
            weights = replace(ours, variables={**ours.variables, "QUANTIZE": kind or ""})
            with started(weights, folder / "ours.log") as server:
                result = measure(server.url, ours.model, 1, load)
            gap = result.inter_token_ms.p50
            speeds[kind].append((result.tokens_per_second, gap if gap is not None else math.nan))
    print("\n| weights, 1 client | tok/s end to end | ms per token (p50) |\n|---|---|---|")
    full = statistics.median(gap for _, gap in speeds[None])
    for kind, measured in speeds.items():
        speed, gap = (statistics.median(column) for column in zip(*measured, strict=True))
        # Random weights may answer with tokens that have no text: then nothing is streamed between first and last.
        shown = "no text to time" if math.isnan(gap) else f"{gap:.0f} ({full / gap:.2f} x)"
        print(f"| {kind or 'full'} | {speed:.1f} | {shown} |")


def _demo(kind: Any) -> Any:
    from transformers import AutoModelForImageTextToText

    from tis.engine.kernels.native import native_kernels
    from tis.engine.weights.packed import quantise_weights

    model = AutoModelForImageTextToText.from_pretrained(ROOT / "models" / "demo").eval()
    if kind:
        quantise_weights(model, native_kernels(), 8 if kind == "int8" else 4)
    return model


def _answers_in_full_precision() -> list[tuple[list[int], list[int]]]:
    """Prompt and greedy answer, as token ids, for every check of the demo model."""
    import torch
    from transformers import AutoTokenizer

    from scripts.demo_model.checks import CHECKS

    model, tokenizer = _demo(None), AutoTokenizer.from_pretrained(ROOT / "models" / "demo")
    answers = []
    for check in CHECKS:
        prompt = tokenizer.apply_chat_template(
            list(check.messages),
            tools=list(check.tools) or None,
            enable_thinking=check.enable_thinking,
            add_generation_prompt=True,
            return_dict=False,
        )
        with torch.inference_mode():
            whole = model.generate(torch.tensor([prompt]), max_new_tokens=200, do_sample=False)[0].tolist()
        answers.append((prompt, whole[len(prompt) :]))
    return answers


def _quality(
    model: Any, answers: list[tuple[list[int], list[int]]], compute: Callable[[Any, list[int]], Any], exact: list[Any]
) -> tuple[float, float, float]:
    """`exact` has the log probabilities of the first model, with which the others are compared."""
    import torch

    loss, divergence, same, count = 0.0, 0.0, 0, 0
    is_first = not exact
    for at, (prompt, answer) in enumerate(answers):
        with torch.inference_mode():
            logits = compute(model, [*prompt, *answer])[len(prompt) - 1 : -1]
        expected = torch.tensor(answer)
        loss += float(torch.nn.functional.cross_entropy(logits, expected, reduction="sum"))
        same += int((logits.argmax(-1) == expected).sum())
        count += len(answer)
        likelihoods = logits.log_softmax(-1)
        if is_first:
            exact.append(likelihoods)
        divergence += float((exact[at].exp() * (exact[at] - likelihoods)).sum())
    return math.exp(loss / count), same / count, divergence / count


def _at_once(model: Any, ids: list[int]) -> Any:
    import torch

    return model(input_ids=torch.tensor([ids])).logits[0].float()


def _one_by_one(model: Any, ids: list[int]) -> Any:
    import torch
    from transformers import DynamicCache

    cache, rows = DynamicCache(), []
    for position, token in enumerate(ids):
        out = model(
            input_ids=torch.tensor([[token]]),
            position_ids=torch.tensor([[position]]),
            past_key_values=cache,
            use_cache=True,
        )
        rows.append(out.logits[0, -1].float())
    return torch.stack(rows)


if __name__ == "__main__":
    main()
