"""What reranking costs over HTTP: this server against a plain route around `CrossEncoder.predict`, and its batches.

    python benchmarks/rerank.py --model-folder FOLDER [--layers 12] [--clients 16] [--rounds 3] [--pairs 128]

The model has random weights in the shape of bge-reranker-base (768 numbers, 12 layers unless said otherwise), and is
built into the folder once. A request is a query with one document, all new, of 4 to 60 words. In each round, in turn:
as many clients as said send to this server; the same to a FastAPI route that scores one pair at a time, as many people
write it; and all pairs at once through one batched `predict()`, without HTTP.
"""

import argparse
import statistics
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import httpx2  # noqa: E402

from benchmarks.embeddings import FreshTexts, free_port, our_server, timed, wait_for, words  # noqa: E402

TextPair = tuple[str, str]
_CONTROL = ["<s>", "<pad>", "</s>", "<unk>"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model-folder", type=Path, required=True)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--pairs", type=int, default=128)
    options = parser.parse_args()
    build_reranker(options.model_folder, options.layers)
    import sentence_transformers
    import torch

    model = sentence_transformers.CrossEncoder(str(options.model_folder), device="cpu")
    texts, number = FreshTexts(), options.pairs
    with our_server(options.model_folder) as (ours, _), naive_scores(model) as naive:
        rates: dict[str, list[float]] = {"ours": [], "naive": [], "batched predict()": []}
        for _ in range(options.rounds):
            rates["ours"].append(pair_rate(lambda some: send_pairs(ours, some, options.clients), pairs(texts, number)))
            fewer = pairs(texts, number // 4)
            rates["naive"].append(pair_rate(lambda some: send_pairs(naive, some, options.clients), fewer))
            rates["batched predict()"].append(pair_rate(lambda some: model.predict(list(some)), pairs(texts, number)))
    best = {name: statistics.median(values) for name, values in rates.items()}
    threads = torch.get_num_threads()
    print(f"{options.layers} layers, {options.clients} clients, {threads} threads, pairs a second, medians:")
    for name, value in best.items():
        rounds = ", ".join(f"{one:.1f}" for one in rates[name])
        print(f"  {name:18} {value:8.1f}   ours / it {best['ours'] / value:5.2f}   ({rounds})")


def build_reranker(folder: Path, layers: int) -> None:
    if (folder / "model.safetensors").exists():
        return
    import torch
    import transformers
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    print(f"building the model in {folder}", flush=True)
    vocabulary = {token: number for number, token in enumerate([*_CONTROL, *words()])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    torch.manual_seed(0)
    config = transformers.XLMRobertaConfig(
        vocab_size=len(vocabulary),  # the original has 250,002 words, which cost memory and no time
        hidden_size=768,
        num_hidden_layers=layers,
        num_attention_heads=12,
        intermediate_size=3072,
        max_position_embeddings=514,
        type_vocab_size=1,
        num_labels=1,
        pad_token_id=1,
        bos_token_id=0,
        eos_token_id=2,
    )
    transformers.XLMRobertaForSequenceClassification(config).save_pretrained(folder)
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="<pad>",
        unk_token="<unk>",
        cls_token="<s>",
        sep_token="</s>",
        model_max_length=512,
        model_input_names=["input_ids", "attention_mask"],
    ).save_pretrained(folder)


def pairs(texts: FreshTexts, number: int) -> Sequence[TextPair]:
    return list(zip(texts.some(number), texts.some(number), strict=True))


def pair_rate(score: Callable[[Sequence[TextPair]], object], some: Sequence[TextPair]) -> float:
    return len(some) / timed(lambda: score(some))


def send_pairs(url: str, some: Sequence[TextPair], num_clients: int) -> None:
    """Each client sends its next pair when it has the score of the one before."""
    with httpx2.Client(base_url=url, timeout=600, limits=httpx2.Limits(max_connections=num_clients)) as http:

        def send(pair: TextPair) -> None:
            http.post("/v1/rerank", json={"query": pair[0], "documents": [pair[1]]}).raise_for_status()

        with ThreadPoolExecutor(num_clients) as pool:
            list(pool.map(send, some))


@contextmanager
def naive_scores(model: Any) -> Iterator[str]:
    """A thread of this process; the driver's share of the interpreter is the same for both servers."""
    import uvicorn
    from fastapi import FastAPI

    app = FastAPI()
    lock = threading.Lock()

    @app.get("/ready")
    def ready() -> dict[str, bool]:
        return {"ok": True}

    @app.post("/v1/rerank")
    def rerank(body: dict[str, Any]) -> dict[str, Any]:
        with lock:
            scores = model.predict([(body["query"], document) for document in body["documents"]])
        results = [{"index": number, "relevance_score": float(score)} for number, score in enumerate(scores)]
        return {"results": results}

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


if __name__ == "__main__":
    main()
