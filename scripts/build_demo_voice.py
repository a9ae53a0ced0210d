"""Teaches models/demo-voice, a small VITS, to read aloud as espeak-ng does.

.venv/bin/python scripts/build_demo_voice.py --record recordings.npz
.venv/bin/python scripts/build_demo_voice.py --recordings recordings.npz --device cuda [--out models/demo-voice]

To record needs espeak-ng (apt-get install espeak-ng).
"""

import argparse
import sys
import time
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPOSITORY))

import torch  # noqa: E402
from torch import Tensor  # noqa: E402

from scripts.demo_voice.architecture import tokenizer, untrained_voice  # noqa: E402
from scripts.demo_voice.folder import save_voice  # noqa: E402
from scripts.demo_voice.recordings import record, recordings  # noqa: E402
from scripts.demo_voice.texts import texts  # noqa: E402
from scripts.demo_voice.training import learn_to_speak, readings  # noqa: E402

_REPORT_EVERY = 100
_WEIGHT_OF_SENTENCES = 3.0  # the forty that the small Whisper knows


class VoiceProgress:
    def __init__(self) -> None:
        self._began = time.monotonic()

    def __call__(self, step: int, losses: dict[str, Tensor]) -> None:
        if step % _REPORT_EVERY == 0 or step <= 3:
            told = ", ".join(f"{name} {loss.item():.3f}" for name, loss in losses.items())
            print(f"step {step}: {told}, {time.monotonic() - self._began:.0f} s", flush=True)


def build(out: Path, sounds: Path, minutes: float, device: str) -> None:
    torch.set_num_threads(1)
    torch.set_float32_matmul_precision("high")
    letters = tokenizer(out)
    recorded = recordings(sounds, texts())
    weights = torch.tensor([1.0 if "-text-" in one.sentence.name else _WEIGHT_OF_SENTENCES for one in recorded])
    model = untrained_voice(len(letters)).to(device)
    print(f"{len(recorded)} recordings, {model.num_parameters():,} parameters", flush=True)
    learn_to_speak(model, readings(recorded, letters, device), weights, minutes * 60, device, VoiceProgress())
    save_voice(model.to("cpu"), letters, out)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", type=Path, help="have espeak-ng read the texts into this file, and do no more")
    parser.add_argument("--recordings", type=Path)
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, default=REPOSITORY / "models" / "demo-voice")
    options = parser.parse_args()
    if options.record:
        record(options.record, texts())
    elif options.recordings:
        build(options.out, options.recordings, options.minutes, options.device)
    else:
        parser.error("--record or --recordings is needed")


if __name__ == "__main__":
    main()
