"""Builds models/demo from nothing: tokenizer, model, training, saving, checking. One command, the same bytes each time.

.venv/bin/python scripts/build_demo_model.py [--out models/demo]

With `--from` it goes on from finished weights, and `--only` runs a single course on top of them:

.venv/bin/python scripts/build_demo_model.py --out /tmp/demo --from models/demo --only 9
"""

import argparse
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPOSITORY))
# On a shared machine threads that spin while they wait take the cores from the ones that they wait for.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

from scripts.demo_model.architecture import untrained_model  # noqa: E402
from scripts.demo_model.checks import CHECKS, failures  # noqa: E402
from scripts.demo_model.curriculum import COURSES, Course  # noqa: E402
from scripts.demo_model.folder import keep_all_but_weights, load, save, save_preprocessing, vision_of, weights_sha256  # noqa: E402
from scripts.demo_model.pick_measures import pick_checks  # noqa: E402
from scripts.demo_model.sight_checks import sight_checks  # noqa: E402
from scripts.demo_model.tokenizer import trained_tokenizer  # noqa: E402
from scripts.demo_model.training import make_repeatable, mix_in, train  # noqa: E402

REPORT_EVERY = 100


class LossReport:
    """Prints the mean loss of the last steps."""

    def __init__(self, course: Course) -> None:
        self._steps = course.steps
        self._started = time.monotonic()
        self._losses: list[float] = []

    def __call__(self, step: int, loss: float) -> None:
        self._losses.append(loss)
        if (step + 1) % REPORT_EVERY == 0 or step + 1 == self._steps:
            mean = sum(self._losses) / len(self._losses)
            print(
                f"step {step + 1}/{self._steps}  loss {mean:.4f}  {time.monotonic() - self._started:.0f} s", flush=True
            )
            self._losses.clear()


def build(out: Path, start: Path | None, courses: Sequence[Course]) -> bool:
    make_repeatable()
    if start is None:
        tokenizer = trained_tokenizer()
        model = untrained_model(tokenizer)
    else:
        begun = load(start)
        tokenizer, model = begun.tokenizer, begun.model
    print(f"tokenizer: {len(tokenizer)} tokens")
    print(f"model: {model.num_parameters():,} parameters")
    save_preprocessing(out)
    vision = vision_of(out, model, tokenizer)
    for course in courses:
        old = {name: value.clone() for name, value in model.state_dict().items()}
        train(model, tokenizer, vision, course, LossReport(course))
        mix_in(model, old, course.share_of_old_weights)
    save(model, tokenizer, out)
    if start is not None:
        keep_all_but_weights(start, out)
    failed = failures(load(out), (*CHECKS, *sight_checks(), *pick_checks()))
    for failure in failed:
        print(f"FAILED {failure}")
    print(f"checks: {'all passed' if not failed else f'{len(failed)} failed'}")
    print(f"sha256 of model.safetensors: {weights_sha256(out)}")
    return not failed


def main() -> int:
    parser = argparse.ArgumentParser(description="Build the demo model.")
    parser.add_argument("--out", type=Path, default=REPOSITORY / "models" / "demo")
    parser.add_argument("--from", dest="start", type=Path, help="folder with the weights to go on from")
    parser.add_argument("--only", type=int, choices=range(1, len(COURSES) + 1), help="the one course to run")
    options = parser.parse_args()
    if options.start and options.start.resolve() == options.out.resolve():
        parser.error("--from and --out are one folder: the weights to go on from would be lost.")
    courses = COURSES if options.only is None else COURSES[options.only - 1 : options.only]
    return 0 if build(options.out, options.start, courses) else 1


if __name__ == "__main__":
    sys.exit(main())
