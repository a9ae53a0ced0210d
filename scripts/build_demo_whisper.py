"""Teaches models/demo-whisper the forty spoken sentences of scripts/demo_whisper.

.venv/bin/python scripts/build_demo_whisper.py --minutes 5 --device cuda --processes 14 [--out models/demo-whisper]

It keeps its state in a file beside the model, so that after an interruption the same command goes on. `--speak` has
espeak-ng speak the sentences anew (apt-get install espeak-ng); nothing else needs it.
"""

import argparse
import os
import sys
import time
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPOSITORY))
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import torch  # noqa: E402

from scripts.demo_whisper.alignment import alignment_heads, eager, late_words  # noqa: E402
from scripts.demo_whisper.architecture import SEED, feature_extractor, generation_configuration, untrained_model  # noqa: E402
from scripts.demo_whisper.checks import failures  # noqa: E402
from scripts.demo_whisper.folder import MAX_FOLDER_BYTES, load, save, size_bytes  # noqa: E402
from scripts.demo_whisper.lessons import HearingLessons, texts_of  # noqa: E402
from scripts.demo_whisper.sentences import all_spoken, keep, sentences  # noqa: E402
from scripts.demo_whisper.speaking import Espeak  # noqa: E402
from scripts.demo_whisper.tokenizer import trained_tokenizer  # noqa: E402
from scripts.demo_whisper.training import GUIDED_HEAD, LearningPlace, WhisperLearner, learn  # noqa: E402

_THREADS = 1  # the model is so small that two wait for each other longer than they compute
_REPORT_EVERY = 50
_MAX_SECONDS_LATE = 0.3


class ProgressReport:
    """Prints the mean losses of the last steps."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._losses: list[torch.Tensor] = []

    def __call__(self, step: int, writing: torch.Tensor, looking: torch.Tensor) -> None:
        self._losses.append(torch.stack([writing, looking]).detach())
        if step % _REPORT_EVERY == 0 or step <= 3:
            means = torch.stack(self._losses).mean(0).tolist()
            seconds = time.monotonic() - self._began
            print(f"step {step}: writing {means[0]:.3f}, looking {means[1]:.3f}, {seconds:.0f} s", flush=True)
            self._losses.clear()


def build(out: Path, minutes: float, place: LearningPlace, begin_with: Path | None) -> bool:
    torch.set_num_threads(_THREADS)
    torch.set_float32_matmul_precision("high")
    torch.set_flush_denormal(True)
    tokenizer = trained_tokenizer(texts_of(sentences()))
    checkpoint = out.with_name(f"{out.name}.checkpoint")
    if checkpoint.exists():
        learner = torch.load(checkpoint, weights_only=False, map_location=place.device)
        print(f"goes on after step {learner.step}")
    else:
        model = load(begin_with).model if begin_with else untrained_model(tokenizer)
        learner = WhisperLearner(model.to(place.device))
    model = learner.model
    print(f"{len(tokenizer)} tokens, {model.num_parameters():,} parameters")
    last = model.config.decoder_layers - 1
    model.generation_config = generation_configuration(tokenizer, [(last, GUIDED_HEAD)])
    learn(
        learner,
        HearingLessons(tokenizer, feature_extractor(), all_spoken(), SEED),
        minutes * 60,
        place,
        checkpoint,
        ProgressReport(),
    )
    model.to("cpu")
    save(model, tokenizer, [(last, GUIDED_HEAD)], out)
    heads = alignment_heads(eager(load(out)), all_spoken())
    print("alignment heads: " + ", ".join(f"{head}: {share:.3f}" for head, share in heads.items()))
    save(model, tokenizer, list(heads), out)
    checkpoint.unlink(missing_ok=True)
    return passes(out)


def passes(out: Path) -> bool:
    spoken = all_spoken()
    failed = [*failures(load(out), spoken), *late_words(eager(load(out)), spoken, _MAX_SECONDS_LATE)]
    size = size_bytes(out)
    if size > MAX_FOLDER_BYTES:
        failed.append(f"the folder has {size:,} bytes")
    for failure in failed:
        print(f"FAILED {failure}")
    print(f"{size:,} bytes; checks: {'all passed' if not failed else f'{len(failed)} failed'}")
    return not failed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=REPOSITORY / "models" / "demo-whisper")
    parser.add_argument("--minutes", type=float, default=5, help="of learning; a CPU needs a day for those of a GPU")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--processes", type=int, default=0, help="that draw lessons beside the one that learns")
    parser.add_argument("--speak", action="store_true", help="speak the sentences anew, and do no more")
    parser.add_argument("--check", action="store_true", help="check the model that is there, and do no more")
    parser.add_argument("--begin-with", type=Path, help="a folder with a model that has learned before")
    parser.add_argument("--rate", type=float, default=1.0, help="of learning; less for such a model")
    options = parser.parse_args()
    if options.speak:
        espeak = Espeak()
        keep([espeak.spoken(sentence) for sentence in sentences()])
        return 0
    if options.check:
        return 0 if passes(options.out) else 1
    place = LearningPlace(options.device, options.processes, options.rate)
    return 0 if build(options.out, options.minutes, place, options.begin_with) else 1


if __name__ == "__main__":
    sys.exit(main())
