"""Whether a model under load hurts another one of the same server: the first token of a chat, alone and in company.

    python benchmarks/two_models.py --folder FOLDER [--clients 8] [--rounds 3] [--chats 8]

The chat model is a Qwen3 of 6 layers with random weights, the embedding model one in the shape of bge-small; both are
built into the folder once. In each round, in turn: one client asks for short answers to new prompts of some 100 words
while nothing else happens; then it does while as many clients as said ask for vectors of new texts, one text a request,
each as soon as it has the last. Two models on the same cores may take twice as long as one: that is their share.
"""

import argparse
import multiprocessing
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

import httpx2  # noqa: E402
import yaml  # noqa: E402

from benchmarks.embeddings import FreshTexts, free_port, wait_for  # noqa: E402
from benchmarks.embeddings import build_model as build_embedding_model  # noqa: E402
from benchmarks.random_model import build_model as build_chat_model  # noqa: E402

_LAYERS = 6
_WARM_UP = 2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--chats", type=int, default=8)
    options = parser.parse_args()
    build_embedding_model(options.folder / "embedding", "bge-small")
    build_chat_model(options.folder / "chat", layers=_LAYERS)
    times: dict[str, list[float]] = {"alone": [], "in company": []}
    rates: list[float] = []
    prompts = Prompts()
    with server(options.folder) as url:
        first_tokens(url, prompts, _WARM_UP)
        for _ in range(options.rounds):
            times["alone"] += first_tokens(url, prompts, options.chats)
            with load(url, options.clients) as count:
                began, before = time.perf_counter(), count.value
                times["in company"] += first_tokens(url, prompts, options.chats)
                rates.append((count.value - before) / (time.perf_counter() - began))
    print(f"first token of a chat, {options.clients} clients of embeddings, in milliseconds:")
    for name, values in times.items():
        ordered = sorted(values)
        worst = ordered[int(0.9 * (len(ordered) - 1))]
        print(f"  {name:12} median {1000 * statistics.median(values):7.1f}   p90 {1000 * worst:7.1f}   n {len(values)}")
    ratio = statistics.median(times["in company"]) / statistics.median(times["alone"])
    print(f"  in company / alone {ratio:.2f} (the share: 2); {statistics.median(rates):.1f} vectors a second meanwhile")


class Prompts:
    """Nobody has sent them before, so that no prefix is remembered."""

    def __init__(self) -> None:
        self._numbers = random.Random(2)

    def next(self) -> str:
        return " ".join(str(self._numbers.randrange(100, 1000)) for _ in range(50))


def first_tokens(url: str, prompts: Prompts, number: int) -> list[float]:
    """Seconds to the first piece of text of each."""
    with httpx2.Client(base_url=url, timeout=600) as http:
        return [_first_token(http, prompts.next()) for _ in range(number)]


def _first_token(http: httpx2.Client, prompt: str) -> float:
    body: dict[str, Any] = {
        "model": "chat",
        "messages": [{"role": "user", "content": prompt}],
        "max_tokens": 2,
        "temperature": 0,
        "ignore_eos": True,
        "stream": True,
    }
    began, first = time.perf_counter(), 0.0
    with http.stream("POST", "/v1/chat/completions", json=body) as answer:
        answer.raise_for_status()
        for line in answer.iter_lines():
            if not first and '"content":' in line and '"content":""' not in line:
                first = time.perf_counter() - began
    if not first:
        raise RuntimeError("an answer without text")
    return first


@contextmanager
def load(url: str, clients: int) -> Iterator[Any]:
    """Clients in a process of their own. Yields how many vectors they have got."""
    context = multiprocessing.get_context("spawn")
    count, ends = context.Value("q", 0), context.Event()
    process = context.Process(target=ask_for_vectors, args=(url, clients, count, ends), daemon=True)
    process.start()
    try:
        while count.value < clients:  # it has begun
            if not process.is_alive():
                raise RuntimeError("the clients of embeddings have ended")
            time.sleep(0.05)
        yield count
    finally:
        ends.set()
        process.join(60)


def ask_for_vectors(url: str, clients: int, count: Any, ends: Any) -> None:
    texts = FreshTexts(seed=time.time_ns())

    def ask() -> None:
        with httpx2.Client(base_url=url, timeout=600) as http:
            while not ends.is_set():
                [text] = texts.some(1)
                http.post("/v1/embeddings", json={"model": "embedding", "input": text}).raise_for_status()
                with count.get_lock():
                    count.value += 1

    with ThreadPoolExecutor(clients) as pool:
        for future in [pool.submit(ask) for _ in range(clients)]:
            future.result()


@contextmanager
def server(folder: Path) -> Iterator[str]:
    port = free_port()
    models = {
        "chat": {"repo": str(folder / "chat")},
        "embedding": {"repo": str(folder / "embedding"), "task": "embedding"},
    }
    catalogue = folder / "models.yaml"
    catalogue.write_text(yaml.safe_dump({"models": models}))
    command = [sys.executable, "-m", "tis", "serve", "--port", str(port), "--no-restart"]
    environment = {**os.environ, "MODEL_CONFIG": str(catalogue), "MODEL_REPO_ID": "chat", "MODELS": "chat,embedding"}
    log = (folder / "server.log").open("w")
    process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log, stderr=subprocess.STDOUT)
    url = f"http://127.0.0.1:{port}"
    try:
        wait_for(f"{url}/ready")
        httpx2.post(f"{url}/v1/embeddings", json={"model": "embedding", "input": "w1"}, timeout=300).raise_for_status()
        yield url
    finally:
        process.terminate()
        process.wait(60)
        log.close()


if __name__ == "__main__":
    main()
