"""What pictures cost: a mixed batch against one at a time, a second question about a picture, and its preprocessing.

    python benchmarks/vision.py --model-folder FOLDER [--dtype float32] [--rounds 2] [--clients 8] [--large]

The model is built into the folder once, with random weights in bfloat16: a Qwen3-VL whose text part is that of
`compare.py` (0.45 B), or with --large the shape of Qwen3-VL-2B. Both sides load it with the same --dtype (auto: as
saved). Half of the clients send 210 tokens of text, half a short question about a picture of 256 x 256 of their own;
each wants 64 new tokens. "One at a time" is `model.generate()` of the same weights with the same inputs, one request
after the other. Both are measured in each round, in turn, in this process: nothing of HTTP is in these numbers.
"""

import argparse
import asyncio
import hashlib
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import numpy as np  # noqa: E402

from tis.engine.local_engine import EngineLimits, LocalEngine  # noqa: E402
from tis.engine.models.catalogue import CatalogueEntry  # noqa: E402
from tis.engine.models.loading import LoadOptions, load_model  # noqa: E402
from tis.engine.prepared_request import PreparedRequest  # noqa: E402
from tis.engine.prompt import ChatPrompt, Picture  # noqa: E402

_SIDE = 256
_TEXT_TOKENS = 210
_VOCABULARY = 8192
_FILES = ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "preprocessor_config.json")
_FILES += ("video_preprocessor_config.json",)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model-folder", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--threads", type=int, default=2, help="1 on a machine that others use")
    parser.add_argument("--dtype", choices=["auto", "float32"], default="auto")
    parser.add_argument("--large", action="store_true", help="the shape of Qwen3-VL-2B")
    options = parser.parse_args()
    print_preprocessing()
    build_model(options.model_folder, options.large)
    asyncio.run(_measure(options))


def build_model(folder: Path, large: bool) -> None:
    if (folder / "model.safetensors").exists():
        return
    import shutil

    import torch
    import transformers

    print(f"building the model in {folder}", flush=True)
    torch.manual_seed(0)
    torch.set_default_dtype(torch.bfloat16)
    demo = ROOT / "models" / "demo"
    known = transformers.AutoConfig.from_pretrained(demo)
    hidden, heads, layers = (2048, 16, 28) if large else (1024, 16, 28)
    config = transformers.Qwen3VLConfig(
        text_config={
            "vocab_size": _VOCABULARY, "hidden_size": hidden, "intermediate_size": 3 * hidden,
            "num_hidden_layers": layers, "num_attention_heads": heads, "num_key_value_heads": 8, "head_dim": 128,
            "max_position_embeddings": 8192, "tie_word_embeddings": True,
            "rope_parameters": {"rope_type": "default", "rope_theta": 5e6, "mrope_section": [24, 20, 20]}
            | {"mrope_interleaved": True},
        },
        vision_config={
            "depth": 24 if large else 12, "hidden_size": 1024 if large else 768, "intermediate_size": 4096,
            "num_heads": 16 if large else 12, "out_hidden_size": hidden,
            "deepstack_visual_indexes": [5, 11, 17] if large else [3, 6, 9],
        },
        image_token_id=known.image_token_id, video_token_id=known.video_token_id,
        vision_start_token_id=known.vision_start_token_id, vision_end_token_id=known.vision_end_token_id,
        tie_word_embeddings=True,
    )  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    transformers.Qwen3VLForConditionalGeneration(config).save_pretrained(folder)
    for name in _FILES:
        shutil.copy(demo / name, folder / name)
    torch.set_default_dtype(torch.float32)


async def _measure(options: argparse.Namespace) -> None:
    import torch
    from transformers import AutoModelForImageTextToText

    torch.set_num_threads(options.threads)
    how = LoadOptions(device_map="cpu", dtype=options.dtype)
    loaded = load_model(str(options.model_folder), how, lambda stage, share: None)
    alone = AutoModelForImageTextToText.from_pretrained(options.model_folder, dtype=options.dtype).eval()
    engine = LocalEngine([CatalogueEntry(id="m", repo="m")], lambda entry, report: loaded, EngineLimits())
    await engine.open()
    ratios, second = [], []
    for number in range(options.rounds):
        prompts = _prompts(options.clients, number)
        together = await _together(engine, prompts, options.tokens)
        one_by_one = await _one_by_one(engine, alone, prompts, options.tokens)
        ratios.append(one_by_one / together)
        cold, again = await _first_tokens(engine, number)
        second.append(again / cold)
        made = options.clients * options.tokens
        print(
            f"round {number + 1}: {options.clients} clients together {made / together:.1f} tok/s, one at a time by "
            f"generate() {made / one_by_one:.1f} tok/s: {ratios[-1]:.2f} x; first token about a picture {cold:.2f} s, "
            f"of a second question {again:.2f} s: {second[-1]:.2f}",
            flush=True,
        )
    print(f"\nmedian: {statistics.median(ratios):.2f} x together; second question {statistics.median(second):.2f}")
    await engine.close()


def _prompts(clients: int, number: int) -> list[ChatPrompt]:
    """Never seen before, so that nothing is found in a cache."""
    prompts = []
    for client in range(clients):
        mark = f"{number} {client} "
        words = mark + "halo apa kabar " * (_TEXT_TOKENS // 4) if client % 2 else mark + "Apa ini?"
        text = {"type": "text", "text": words}
        shown = [] if client % 2 else [{"type": "image", "image": _picture(100 * number + client)}]
        prompts.append(ChatPrompt([{"role": "user", "content": [*shown, text]}]))
    return prompts


def _picture(seed: int, side: int = _SIDE) -> Picture:
    pixels = np.random.default_rng(seed).integers(0, 255, (side, side, 3), dtype=np.uint8)
    return Picture(pixels, hashlib.sha256(pixels.tobytes()).hexdigest())


def _sampling(tokens: int) -> dict[str, Any]:
    return {"max_tokens": tokens, "temperature": 0.0, "ignore_eos": True}


async def _together(engine: LocalEngine, prompts: Sequence[ChatPrompt], tokens: int) -> float:
    async def answer(prompt: ChatPrompt) -> None:
        prepared = await engine.prepare("m", prompt, _sampling(tokens))
        async for _ in engine.submit(prepared).batches():
            pass

    began = time.perf_counter()
    await asyncio.gather(*(answer(prompt) for prompt in prompts))
    return time.perf_counter() - began


async def _one_by_one(engine: LocalEngine, model: Any, prompts: Sequence[ChatPrompt], tokens: int) -> float:
    began = time.perf_counter()
    for prompt in prompts:
        prepared = await engine.prepare("m", prompt, _sampling(tokens))
        await asyncio.to_thread(_generate, model, prepared, tokens)
    return time.perf_counter() - began


def _generate(model: Any, prepared: PreparedRequest, tokens: int) -> None:
    import torch

    ids = torch.tensor([prepared.prompt_ids])
    with torch.inference_mode():
        model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            min_new_tokens=tokens,
            max_new_tokens=tokens,
            do_sample=False,
            **(prepared.vision.generate_kwargs() if prepared.vision else {}),
        )


async def _first_tokens(engine: LocalEngine, number: int) -> tuple[float, float]:
    """Two questions about one picture: seconds to the first token of each."""
    picture = _picture(10_000 + number)
    times = []
    for question in ("Apa ini?", "Apa warnanya?"):
        parts = [{"type": "image", "image": picture}, {"type": "text", "text": question}]
        began = time.perf_counter()
        prepared = await engine.prepare("m", ChatPrompt([{"role": "user", "content": parts}]), _sampling(1))
        async for _ in engine.submit(prepared).batches():
            break
        times.append(time.perf_counter() - began)
    return times[0], times[1]


def print_preprocessing() -> None:
    import torch
    from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

    from tis.engine.vision.patches import image_patches
    from tis.engine.vision.qwen_family import QWEN_FAMILIES
    from tis.engine.vision.smart_resize import fit_image

    torch.set_num_threads(1)
    rules = QWEN_FAMILIES["qwen2_vl"].image_defaults
    official = Qwen2VLImageProcessorPil()
    print("\n| megapixels | ours, ms per megapixel | official slow path | ratio |\n|---|---|---|---|")
    for height, width in ((256, 256), (768, 1024), (1536, 2048)):
        pixels = _picture(1, max(height, width)).pixels[:height, :width].copy()
        size = fit_image((height, width), rules, low=False)
        ours = _best(lambda pixels=pixels, size=size: image_patches(pixels, size, rules)[:])
        theirs = _best(lambda pixels=pixels: official(images=[pixels], return_tensors="pt"))
        million = height * width / 1e6
        print(f"| {million:.2f} | {ours / million:.1f} | {theirs / million:.1f} | {theirs / ours:.1f} x |", flush=True)


def _best(work: Callable[[], Any], times: int = 5) -> float:
    """Milliseconds."""
    taken = []
    for _ in range(times):
        began = time.perf_counter()
        work()
        taken.append(time.perf_counter() - began)
    return 1000 * min(taken)


if __name__ == "__main__":
    main()
