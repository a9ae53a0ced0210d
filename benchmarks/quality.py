"""What integer weights lose: in the weights, in texts, and in tool calls and JSON.

    python benchmarks/quality.py [--parts weights demo texts] [--questions 200] [--text-model FOLDER]
        [--llama-cpp PYTHON]
        [--hidden 256] [--layers 6] [--inner 768] [--minutes 8] [--windows 64] [--learn 100000]

Weights: Gaussian ones, and a product with Gaussian rows. The demo model: its own answers to its checks are read again;
then it answers questions that are new to it, to the letter or not. A text model (`text_model.py`: its size and the
minutes of its training are options; FOLDER keeps it) reads documents of this repository that it has learned, and some
that were held back; `--learn`: only so many windows of them, which a large model over-fits.
PYTHON is one that has `cyllama`: then the same weights are quantised and read by llama.cpp, too.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from demo_answers import DemoAnswers, Kind, drawn_questions, new_demo  # noqa: E402
from gguf_file import write_gguf  # noqa: E402
from model_readings import Text, agreement, at_once, one_by_one, readings  # noqa: E402
from text_model import TextModelSize, build_text_model, documents, spread, windows  # noqa: E402

KINDS: Mapping[str, Kind] = {"as saved": None, "int8": "int8", "int4": "int4"}
# With 8 bits, many rows at once may be rounded to fewer bits than one.
WAYS: Sequence[tuple[str, Kind, Callable[[Any, Sequence[int]], Any]]] = (
    ("int8, a token at a time", "int8", one_by_one),
    ("int8, all at once", "int8", at_once),
    ("int4", "int4", at_once),
)
LLAMA_CPP_FORMATS = ("BF16", "Q8_0", "Q4_K_M", "Q4_0")


def main() -> None:
    options = _options()
    if "weights" in options.parts:
        print_weights()
    if "demo" in options.parts:
        print_demo(options.questions)
    with tempfile.TemporaryDirectory() as scratch:
        if "texts" not in options.parts:
            return
        folder = options.text_model or Path(scratch) / "text"
        size = TextModelSize(options.hidden, options.layers, options.inner)
        learned, held_back = (windows(text, options.learn) for text in documents())
        build_text_model(folder, size, options.minutes, learned)
        texts = {"learned": spread(learned, options.windows), "held back": spread(held_back, options.windows)}
        print_texts(folder, texts, options.llama_cpp, Path(scratch))


def print_weights() -> None:
    import torch

    from tis.engine.kernels.integer_product import Int4Product, Int8Product
    from tis.engine.kernels.native import native_kernels

    kernels = native_kernels()
    if kernels is None:
        raise SystemExit("the native kernels are not built: make setup builds them")
    torch.manual_seed(0)
    weight, rows = torch.randn(3072, 1024), torch.randn(64, 1024)
    exact = rows.double() @ weight.double().T
    print("| Gaussian weights | lost of them | lost of a product | without rounding its rows |\n|---|---|---|---|")
    for name, product in (("int8", Int8Product(weight, None, kernels)), ("int4", Int4Product(weight, None, kernels))):
        by_weights = rows.double() @ product.weights.double().T
        shown = (_lost(product.weights, weight), _lost(product(rows), exact), _lost(by_weights, exact))
        print(f"| {name} | {' | '.join(f'{one:.2%}' for one in shown)} |")
    groups = weight.unflatten(1, (-1, 32))
    least = groups.amin(-1, keepdim=True).clamp(max=0)
    scale = (groups.amax(-1, keepdim=True).clamp(min=0) - least) / 15
    by_range = ((groups - least) / scale).round() * scale + least
    print(f"| 4 bits by the range of each group | {_lost(by_range, groups):.2%} | | |")


def _lost(rounded: Any, exact: Any) -> float:
    """Root of the mean square, of what there was."""
    return float((rounded.double() - exact.double()).norm() / exact.double().norm())


def print_demo(num_questions: int) -> None:
    from scripts.demo_model.checks import CHECKS

    demo = DemoAnswers()
    prompts = [demo.prompt_of(check) for check in CHECKS]
    answers = {name: demo.greedy(prompts, kind) for name, kind in KINDS.items()}
    pairs = zip(prompts, answers["as saved"], strict=True)
    texts = [Text([*prompt, *answer], len(prompt)) for prompt, answer in pairs]
    num_tokens = sum(map(len, answers["as saved"]))
    print(f"\nThe demo model: {num_tokens} tokens of {len(texts)} answers, read again\n")
    print("| weights | perplexity | likeliest token the same | KL divergence, nats per token |\n|---|---|---|---|")
    exact = readings(new_demo(), texts)
    print(f"| as saved | {agreement(texts, exact, exact).cells()} |")
    for name, kind, compute in WAYS:
        found = agreement(texts, readings(_rounded(new_demo(), kind), texts, compute), exact)
        print(f"| {name} | {found.cells()} |", flush=True)
    questions = drawn_questions(num_questions)
    names = " | ".join(questions)
    print(f"\nTo the letter, of {num_questions} new questions each:\n")
    print(f"| weights | {names} | checks | answers to them that are those of the weights as saved |")
    print("|---" * (len(questions) + 3) + "|")
    for name, kind in KINDS.items():
        rights = " | ".join(map(str, demo.rights(questions, kind).values()))
        holds = sum(check.holds_for(demo.text_of(answer)) for check, answer in zip(CHECKS, answers[name], strict=True))
        same = sum(one == other for one, other in zip(answers[name], answers["as saved"], strict=True))
        print(f"| {name} | {rights} | {holds} of {len(CHECKS)} | {same} |", flush=True)


def print_texts(folder: Path, read: Mapping[str, Sequence[list[int]]], llama_cpp: Path | None, scratch: Path) -> None:
    texts = {which: [Text(ids) for ids in some] for which, some in read.items()}
    model = _text_model(folder).float()
    exact = {which: readings(model, some) for which, some in texts.items()}
    print(f"\n{folder.name}: {sum(one.numel() for one in model.parameters()) / 1e6:.1f} million parameters\n")
    print("| weights | MiB | documents | perplexity | likeliest token the same | KL divergence, nats per token |")
    print("|---|---|---|---|---|---|")
    for name, kind in KINDS.items():
        model = _text_model(folder)
        num_bytes = _round(model, kind)
        for which in texts:
            found = agreement(texts[which], readings(model.float(), texts[which]), exact[which])
            print(f"| {name} | {num_bytes / 2**20:.1f} | {which} | {found.cells()} |", flush=True)
    for name in LLAMA_CPP_FORMATS if llama_cpp else ():
        assert llama_cpp is not None
        for which in texts:
            num_bytes, logits = _by_llama_cpp(llama_cpp, folder, name, texts[which], scratch)
            found = agreement(texts[which], logits, exact[which])
            print(f"| llama.cpp {name} | {num_bytes / 2**20:.1f} | {which} | {found.cells()} |", flush=True)


def _text_model(folder: Path) -> Any:
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(folder, dtype="auto").eval()


def _rounded(model: Any, kind: Kind) -> Any:
    """In float32, but for the weights that have become integers."""
    _round(model, kind)
    return model.float()


def _round(model: Any, kind: Kind) -> int:
    """Makes integers of the weights; returns their bytes, with those that stay as they were saved."""
    from tis.engine.kernels.native import native_kernels
    from tis.engine.weights.packed import quantise_weights, weight_bytes_of

    if kind:
        quantise_weights(model, native_kernels(), 4 if kind == "int4" else 8)
    return weight_bytes_of(model)


def _by_llama_cpp(
    python: Path, folder: Path, name: str, texts: Sequence[Text], scratch: Path
) -> tuple[int, Sequence[Any]]:
    """The bytes of the model, and its logits."""
    import torch

    (scratch / "windows.json").write_text(json.dumps([list(text.ids) for text in texts]))
    target = scratch / "logits"
    program = Path(__file__).with_name("llama_cpp_logits.py")
    command = [python, program, write_gguf(folder), name, scratch / "windows.json", target]
    num_bytes = int(subprocess.check_output(command, text=True).split()[-1])
    rows = torch.from_file(str(target), size=target.stat().st_size // 4).view(sum(len(text.ids) for text in texts), -1)
    parts = rows.split([len(text.ids) for text in texts])
    return num_bytes, [part[text.begin - 1 : -1] for part, text in zip(parts, texts, strict=True)]


def _options() -> Any:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = ["weights", "demo", "texts"]
    parser.add_argument("--parts", nargs="*", choices=parts, default=parts)
    parser.add_argument("--questions", type=int, default=200, help="new ones for the demo model, of each subject")
    parser.add_argument("--text-model", type=Path, help="is built there if it is not there")
    parser.add_argument("--llama-cpp", type=Path, metavar="PYTHON")
    for name, number in (
        ("hidden", 256),
        ("layers", 6),
        ("inner", 768),
        ("minutes", 8),
        ("windows", 64),
        ("learn", 100_000),
    ):
        parser.add_argument(f"--{name}", type=int, default=number)
    return parser.parse_args()


if __name__ == "__main__":
    main()
