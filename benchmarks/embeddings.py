"""What embeddings cost over HTTP: this server against a plain route around sentence-transformers, and its `encode()`.

    python benchmarks/embeddings.py --model-folder FOLDER [--shape bge-small] [--clients 16] [--rounds 3] [--texts 256]

The model has random weights in the shape of bge-small-en-v1.5 (12 layers, 384 numbers) or of Qwen3-Embedding-0.6B, and
is built into the folder once. Every text is new, of 4 to 60 words. In each round, in turn: as many clients as said send
one text a request to this server; the same to a FastAPI route that calls `encode()` of one text at a time, as many
people write it; and all texts at once through one batched `encode()`, without HTTP. Then a text that was sent before.

Beside the rates it prints the seconds of CPU of the process that computes, which a busy machine changes less.
Our clients are in another process than the server, those of the plain route in its own.
"""

import argparse
import json
import random
import socket
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import httpx2  # noqa: E402
import psutil  # noqa: E402

_NUM_WORDS = 30_000
_CONTROL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
_SERVER_START_SECONDS = 300


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model-folder", type=Path, required=True)
    parser.add_argument("--shape", choices=["bge-small", "qwen-0.6b"], default="bge-small")
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--texts", type=int, default=256)
    options = parser.parse_args()
    build_model(options.model_folder, options.shape)
    import sentence_transformers
    import torch

    model = sentence_transformers.SentenceTransformer(str(options.model_folder), device="cpu")
    texts = FreshTexts()
    with our_server(options.model_folder) as (ours, server), naive_server(model) as naive:
        here = psutil.Process()
        ways: dict[str, tuple[Callable[[Sequence[str]], object], psutil.Process, int]] = {
            "ours": (lambda some: sent(ours, some, options.clients), server, options.texts),
            "naive": (lambda some: sent(naive, some, options.clients), here, options.texts // 4),
            "batched encode()": (lambda some: model.encode(list(some)), here, options.texts),
        }
        rates: dict[str, list[float]] = {name: [] for name in ways}
        costs: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(options.rounds):
            for name, (send, process, number) in ways.items():
                before = cpu_seconds(process)
                rates[name].append(rate(send, texts.some(number)))
                costs[name].append((cpu_seconds(process) - before) / number)
        hit = of_a_hit(ours, texts.some(1)[0])
    best = {name: statistics.median(values) for name, values in rates.items()}
    cost = {name: statistics.median(values) for name, values in costs.items()}
    print(f"{options.shape}, {options.clients} clients, {torch.get_num_threads()} threads, texts a second, medians:")
    for name, value in best.items():
        rounds = ", ".join(f"{one:.1f}" for one in rates[name])
        cpu = f"CPU {cost[name] * 1000:6.1f} ms a text, it / ours {cost[name] / cost['ours']:5.2f}"
        print(f"  {name:18} {value:8.1f}   ours / it {best['ours'] / value:5.2f}   {cpu}   ({rounds})")
    print(f"  a text that was sent before: {hit * 1000:.2f} ms")


def of_a_hit(url: str, text: str) -> float:
    """Seconds of a request whose text was sent before, on a connection that is open."""
    with httpx2.Client(base_url=url) as http:
        return min(
            timed(lambda: http.post("/v1/embeddings", json={"input": text}).raise_for_status()) for _ in range(20)
        )


def build_model(folder: Path, shape: str) -> None:
    if (folder / "model.safetensors").exists():
        return
    import torch
    import transformers
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    print(f"building the model in {folder}", flush=True)
    vocabulary = {token: number for number, token in enumerate([*_CONTROL, *words()])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    torch.manual_seed(0)
    if shape == "bge-small":
        config: Any = transformers.BertConfig(
            vocab_size=30_522, hidden_size=384, num_hidden_layers=12, num_attention_heads=12, intermediate_size=1536
        )
        model: Any = transformers.BertModel(config)
    else:
        config = transformers.Qwen3Config(
            vocab_size=151_669, hidden_size=1024, num_hidden_layers=28, num_attention_heads=16, num_key_value_heads=8,
            head_dim=128, intermediate_size=3072, max_position_embeddings=32_768,
        )  # fmt: skip
        model = transformers.Qwen3Model(config).bfloat16()
    model.save_pretrained(folder)
    wrapped = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]", model_max_length=512
    )
    wrapped.save_pretrained(folder)
    base = "sentence_transformers.models."
    kinds = [("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize")]
    modules = [{"idx": n, "name": str(n), "path": path, "type": base + kind} for n, (path, kind) in enumerate(kinds)]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "1_Pooling").mkdir(exist_ok=True)
    mode = "cls" if shape == "bge-small" else "lasttoken"
    pooling = {"embedding_dimension": config.hidden_size, "pooling_mode": mode}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))


def words() -> list[str]:
    return [f"w{number}" for number in range(_NUM_WORDS)]


class FreshTexts:
    """Texts that nobody has sent before, of 4 to 60 words."""

    def __init__(self, seed: int = 1) -> None:
        self._numbers = random.Random(seed)
        self._words = words()

    def some(self, number: int) -> list[str]:
        return [" ".join(self._numbers.choices(self._words, k=self._numbers.randint(4, 60))) for _ in range(number)]


def rate(send: Callable[[Sequence[str]], object], texts: Sequence[str]) -> float:
    return len(texts) / timed(lambda: send(texts))


def cpu_seconds(process: psutil.Process) -> float:
    """Of all its threads, and of the processes that it started."""
    return sum(sum(one.cpu_times()[:2]) for one in (process, *process.children(recursive=True)))


def timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def sent(url: str, texts: Sequence[str], num_clients: int) -> None:
    """Each client sends its next text when it has the vector of the one before."""
    with httpx2.Client(base_url=url, timeout=600, limits=httpx2.Limits(max_connections=num_clients)) as http:

        def send(text: str) -> None:
            answer = http.post("/v1/embeddings", json={"input": text, "encoding_format": "base64"})
            answer.raise_for_status()

        with ThreadPoolExecutor(num_clients) as pool:
            list(pool.map(send, texts))


@contextmanager
def our_server(folder: Path) -> Iterator[tuple[str, psutil.Process]]:
    port = free_port()
    command = [sys.executable, "-m", "tis", "serve", str(folder), "--port", str(port), "--no-restart"]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"
    try:
        wait_for(f"{url}/ready")
        yield url, psutil.Process(process.pid)
    finally:
        process.terminate()
        process.wait(60)


@contextmanager
def naive_server(model: Any) -> Iterator[str]:
    """A thread of this process; the driver's share of the interpreter is the same for both servers."""
    import base64

    import uvicorn
    from fastapi import FastAPI

    app = FastAPI()
    lock = threading.Lock()

    @app.get("/ready")
    def ready() -> dict[str, bool]:
        return {"ok": True}

    @app.post("/v1/embeddings")
    def embeddings(body: dict[str, Any]) -> dict[str, Any]:
        with lock:
            vector = model.encode(body["input"])
        return {"data": [{"index": 0, "embedding": base64.b64encode(vector.tobytes()).decode()}]}

    port = free_port()
    server = uvicorn.Server(uvicorn.Config(app, port=port, log_level="warning"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    url = f"http://127.0.0.1:{port}"
    try:
        wait_for(f"{url}/ready")
        yield url
    finally:
        server.should_exit = True
        thread.join(30)


def wait_for(url: str) -> None:
    ends = time.monotonic() + _SERVER_START_SECONDS
    while time.monotonic() < ends:
        try:
            if httpx2.get(url, timeout=5).status_code == 200:
                return
        except httpx2.HTTPError:
            pass
        time.sleep(0.2)
    raise TimeoutError(url)


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


if __name__ == "__main__":
    main()
