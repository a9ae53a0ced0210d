"""How fast speech is heard: our engine against Transformers, and against faster-whisper if it is there.

    pip install --no-deps --target FW faster-whisper ctranslate2 onnxruntime flatbuffers    # for the last one
    pip install --no-deps --target FW soundfile soxr    # for `transformers serve`
    PYTHONPATH=FW python benchmarks/audio.py --folder FOLDER [--shapes tiny base small] [--tokens 100] [--files 4]

A file is a window of 30 seconds. The models have random weights in the shapes of the real ones and are built into the
folder once; every contender writes the same number of tokens of every window, greedily, without times. In each round
all contenders hear one file, and then several: ours at once and one after the other, the others from as many threads.
Ours and faster-whisper are called in this process, `transformers serve` over HTTP. All use the same number of threads
for a computation (`OMP_NUM_THREADS`). The table has the seconds of sound that are heard in a second, medians of the
rounds.
"""

import argparse
import asyncio
import io
import os
import statistics
import subprocess
import sys
import time
import wave
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import httpx2  # noqa: E402
import numpy as np  # noqa: E402

from benchmarks.contenders import free_port  # noqa: E402
from benchmarks.random_whisper import SHAPES, build_whisper  # noqa: E402

_SECONDS = 30


@dataclass(frozen=True, slots=True)
class AudioContender:
    name: str
    hear: Callable[[Sequence[Any]], int]  # files, returns the tokens that were written
    hear_each: Callable[[Sequence[Any]], int] | None = None  # one after the other, where that is another way


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--shapes", nargs="+", default=["tiny", "base", "small"], choices=SHAPES)
    parser.add_argument("--tokens", type=int, default=100)
    parser.add_argument("--files", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="+", default=[], help="words that names of contenders have")
    options = parser.parse_args()
    numbers = np.random.default_rng(0)
    files = [numbers.normal(0, 0.1, _SECONDS * 16_000).astype(np.float32) for _ in range(options.files)]
    for shape in options.shapes:
        folder = options.folder / f"{shape}-{options.tokens}"
        build_whisper(folder, shape, options.tokens)
        contenders = [our_engine(folder), our_engine(folder, in_8_bits=True), plain_generate(folder)]
        contenders += faster_whispers(folder, options.tokens)
        with transformers_serve(folder, options.tokens) as servers:
            contenders += servers
            chosen = [one for one in contenders if not options.only or any(word in one.name for word in options.only)]
            compare(shape, chosen, files, options.tokens, options.rounds)


def compare(shape: str, contenders: Sequence[AudioContender], files: Sequence[Any], tokens: int, rounds: int) -> None:
    rates: dict[str, list[float]] = {}
    for one in contenders:
        one.hear(files[:1])  # warm
    for _ in range(rounds):
        for one in contenders:
            ways = [(one.hear, files[:1], "1 file"), (one.hear, files, f"{len(files)} files at once")]
            if one.hear_each:
                ways.append((one.hear_each, files, f"{len(files)} files in turn"))
            for hear, some, how in ways:
                began = time.perf_counter()
                written = hear(some)
                seconds = time.perf_counter() - began
                if written != tokens * len(some):
                    raise SystemExit(f"{one.name} wrote {written} tokens, not {tokens * len(some)}.")
                rates.setdefault(f"{one.name}: {how}", []).append(_SECONDS * len(some) / seconds)
    print(f"{shape}, {tokens} tokens a window, {os.environ.get('OMP_NUM_THREADS', 'all')} threads: x real time")
    for name, values in rates.items():
        print(
            f"  {name:44} {statistics.median(values):7.1f}   ({', '.join(f'{one:.1f}' for one in values)})", flush=True
        )


def our_engine(folder: Path, *, in_8_bits: bool = False) -> AudioContender:
    from tis.engine.batching.limits import BatchLimits
    from tis.engine.local_engine import EngineLimits, LocalEngine
    from tis.engine.models.catalogue import CatalogueEntry
    from tis.engine.models.loading import LoadOptions
    from tis.engine.speech.heard import HearingOptions, SpeechWindow
    from tis.engine.speech.load_speech import load_speech

    loop = asyncio.new_event_loop()
    options = LoadOptions(device_map="cpu", batch=BatchLimits(quantisation="int8" if in_8_bits else None))
    engine = LocalEngine(
        [CatalogueEntry("ear", str(folder), "transcription")],
        lambda entry, report: load_speech(entry, options, report),
        EngineLimits(),
    )
    loop.run_until_complete(engine.open())
    asked = HearingOptions(language="en", temperatures=(0.0,), with_times=False)

    def hear(files: Sequence[Any]) -> int:
        async def ask() -> int:
            # Another sound each time: an encoding that is remembered would be no work.
            noise = np.float32(np.random.default_rng().uniform(0.99, 1.01))
            made = await asyncio.gather(*(engine.hear("ear", SpeechWindow(one * noise, asked)) for one in files))
            return sum(one.num_tokens for one in made)

        return loop.run_until_complete(ask())

    return AudioContender(
        f"ours, {'int8' if in_8_bits else 'float32'}", hear, lambda files: sum(hear([one]) for one in files)
    )


def plain_generate(folder: Path) -> AudioContender:
    import torch
    import transformers

    model = transformers.WhisperForConditionalGeneration.from_pretrained(folder).eval()
    extractor = transformers.WhisperFeatureExtractor.from_pretrained(folder)

    def hear(files: Sequence[Any]) -> int:
        written = 0
        for one in files:
            features = extractor(one, sampling_rate=16_000, return_tensors="pt").input_features
            with torch.inference_mode():
                ids = model.generate(features, language="en", task="transcribe", return_timestamps=False)
            written += int(ids.shape[1]) - (ids.shape[1] > model.config.max_target_positions - 4) * 4
        return written

    return AudioContender("generate(), one at a time", hear)


@contextmanager
def transformers_serve(folder: Path, tokens: int) -> Iterator[list[AudioContender]]:
    """Its answer is text, which does not tell the number of tokens; they are those of `generate()`."""
    if not find_spec("soundfile"):
        print("without transformers serve: soundfile is missing")
        yield []
        return
    port = free_port()
    program = Path(sys.executable).with_name("transformers")
    with subprocess.Popen(
        [str(program), "serve", str(folder), "--port", str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        try:
            with httpx2.Client(base_url=f"http://127.0.0.1:{port}", timeout=600) as http:
                _wait_for(http)

                def hear_one(samples: Any) -> int:
                    answer = http.post(
                        "/v1/audio/transcriptions",
                        data={"model": str(folder)},
                        files={"file": ("noise.wav", _wav(samples))},
                    )
                    answer.raise_for_status()
                    return tokens

                def hear(files: Sequence[Any]) -> int:
                    with ThreadPoolExecutor(len(files)) as pool:
                        return sum(pool.map(hear_one, files))

                yield [AudioContender("transformers serve", hear)]
        finally:
            process.kill()


def _wait_for(http: httpx2.Client) -> None:
    for _ in range(300):
        try:
            http.get("/health")
            return
        except httpx2.TransportError:
            time.sleep(1)
    raise SystemExit("transformers serve does not start.")


def _wav(samples: Any) -> bytes:
    file = io.BytesIO()
    with wave.open(file, "wb") as written:
        written.setnchannels(1)
        written.setsampwidth(2)
        written.setframerate(16_000)
        written.writeframes((samples * 32767).clip(-32768, 32767).astype(np.int16).tobytes())
    return file.getvalue()


def faster_whispers(folder: Path, tokens: int) -> list[AudioContender]:
    try:
        import ctranslate2
        from faster_whisper import WhisperModel
    except ImportError as error:
        print(f"without faster-whisper: {error}")
        return []
    contenders = []
    for quantization in ("float32", "int8"):
        converted = folder / f"ct2-{quantization}"
        if not converted.exists():
            converter = ctranslate2.converters.TransformersConverter(
                str(folder), copy_files=["tokenizer.json", "preprocessor_config.json"]
            )
            converter.convert(str(converted), quantization=quantization)
        threads = int(os.environ.get("OMP_NUM_THREADS", os.cpu_count() or 1))
        model = WhisperModel(str(converted), device="cpu", compute_type=quantization, cpu_threads=threads)
        contenders.append(_faster_whisper(model, quantization, tokens))
    return contenders


def _faster_whisper(model: Any, quantization: str, tokens: int) -> AudioContender:
    suppressed = list(range(model.hf_tokenizer.token_to_id("<|endoftext|>"), model.hf_tokenizer.get_vocab_size()))

    def hear_one(samples: Any) -> int:
        segments, _ = model.transcribe(
            samples,
            language="en",
            beam_size=1,
            temperature=0,
            max_new_tokens=2 * tokens - 2,  # CTranslate2 takes half, and one more
            suppress_tokens=suppressed,
            without_timestamps=True,
            compression_ratio_threshold=None,
            log_prob_threshold=None,
            no_speech_threshold=None,
            condition_on_previous_text=False,
        )
        return sum(len(one.tokens) for one in segments)

    def hear(files: Sequence[Any]) -> int:
        with ThreadPoolExecutor(len(files)) as pool:
            return sum(pool.map(hear_one, files))

    return AudioContender(f"faster-whisper, {quantization}", hear)


if __name__ == "__main__":
    main()
