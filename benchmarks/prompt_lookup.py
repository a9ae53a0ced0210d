"""What prompt lookup gives: answers that copy, answers that do not, and what a draft costs.

    python benchmarks/prompt_lookup.py --model-folder FOLDER [--clients 1,4] [--tokens 96] [--one-thread]

The model is that of `compare.py` (0.45 B random parameters, built into FOLDER if it is not there). It computes every
step, and then is made to say a given text: JSON of the records in its prompt, code of its prompt with names changed, a
list from a catalogue, or prose that the prompt has not. Two runners, with lookup and without, are in one process; the
one that has said less takes the next step, so both meet the same neighbours. The demo model answers its own checks.
With `--one-thread` times are those of the CPU: for a machine that others use, too.
"""

import argparse
import json
import random
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import torch  # noqa: E402
from random_model import build_model  # noqa: E402

clock: Callable[[], float] = time.perf_counter
SALT = iter(range(10**9))  # no run finds the prompt of another in the cache


@dataclass(frozen=True, slots=True)
class CopyTask:
    name: str
    prompt: str
    answer: str
    prediction: str = ""


@dataclass(slots=True)
class MeasuredRunner:
    """One of the two runners, and what its steps took."""

    runner: Any
    requests: list[Any] = field(default_factory=list)
    steps: list[float] = field(default_factory=list)

    @property
    def num_made(self) -> int:
        return sum(len(request.completions[0].token_ids) for request in self.requests)

    @property
    def is_decoding(self) -> bool:
        return all(request.completions[0].token_ids for request in self.requests)

    def step(self) -> None:
        was_decoding = self.is_decoding
        began = clock()
        self.runner.step(lambda deliveries: None)
        if was_decoding:
            self.steps.append(clock() - began)


def works() -> list[CopyTask]:
    chance = random.Random(1)
    code = (ROOT / "tis" / "engine" / "batching" / "places.py").read_text()[900:3000]
    edited = code.replace("sequence", "item").replace("owes", "is_owed").replace("room", "space")
    cities, goods = ("Bandung", "Medan", "Solo"), ("Kopi Gayo 250 g", "Teh Melati Wangi", "Batik Tulis Halus")
    records = [
        (chance.choice(("Sari", "Budi", "Ani", "Joko")), chance.choice(cities), chance.choice(goods), f"A-{at}{at * 7}")
        for at in range(10)
    ]
    text = "\n".join(f"{a} from {b} bought {c}, reference {d}, and wants it next week." for a, b, c, d in records)
    rows = [{"name": a, "city": b, "product": c, "reference": d} for a, b, c, d in records]
    goods_lines = [f"- {one} ({city}): Rp {chance.randrange(10, 900)}.000" for one in goods for city in cities]
    chance.shuffle(goods_lines)
    prose = (ROOT / "docs" / "install.md").read_text()[:3000]
    listed = "Yang ada: \n" + "\n".join(line for line in goods_lines if "Solo" not in line)
    return [
        CopyTask("JSON of a given text", f"{text}\nAnswer in JSON.", json.dumps(rows)),
        CopyTask("code edit", f"Rename sequence to item, owes to is_owed, room to space.\n{code}", edited),
        CopyTask(
            "code edit, as a prediction", "Rename sequence to item, owes to is_owed, room to space.", edited, code
        ),
        CopyTask("list from a catalogue", "\n".join(goods_lines) + "\nApa yang ada, selain di Solo?", listed),
        CopyTask("chat", "Tell me about this server.", prose),
    ]


class SpokenScript:
    """Computes a model, and then puts the tokens of a script in place of what it would have said."""

    def __init__(self, model: Any) -> None:
        self.script: Sequence[int] = ()  # by position
        model.register_forward_hook(self._say, with_kwargs=True)

    def _say(self, model: Any, args: Any, inputs: dict[str, Any], output: Any) -> None:
        positions = inputs["position_ids"][0, inputs["logits_to_keep"]].tolist()
        output.logits.zero_()
        for row, position in enumerate(positions):
            output.logits[0, row, self.script[min(position + 1, len(self.script) - 1)]] = 100.0


@dataclass(frozen=True, slots=True)
class PreparedModel:
    model: Any
    tokenizer: Any
    shape: Any  # of its cache

    def new_cache(self, num_blocks: int) -> Any:
        from tis.engine.batching.kv_cache import PagedCache

        return PagedCache(self.shape, num_blocks, 16)

    def new_runner(self, cache: Any, width: int) -> Any:
        from tis.engine.batching.batch_runner import BatchRunner
        from tis.engine.kernels.native import native_kernels

        return BatchRunner(self.model, self.tokenizer, cache, draft_width=width, kernels=native_kernels())


def prepare(model: Any, tokenizer: Any) -> PreparedModel:
    """As the server does: fused layers, native kernels, packed weights."""
    from tis.engine.batching.choose_runner import choose_runner
    from tis.engine.batching.limits import BatchLimits
    from tis.engine.batching.text_attention import cache_shape
    from tis.engine.weights.cpu_dtype import suit_to_cpu

    suit_to_cpu(model)  # the cache has the type that the model is computed in
    shape = cache_shape(model)
    choose_runner(model, tokenizer, 4096, BatchLimits(cache_tokens=64))
    return PreparedModel(model, tokenizer, shape)


def measure(prepared: PreparedModel, scripted: SpokenScript, work: CopyTask, clients: int, num_tokens: int) -> str:
    from tis.engine.batching.lookup import DRAFT_WIDTH
    from tis.observability.metrics import ACCEPTED_DRAFT_TOKENS, DRAFT_TOKENS

    encode = prepared.tokenizer.encode_text
    prompt_ids, answer_ids = encode(work.prompt), encode(work.answer)[:num_tokens]
    scripted.script = [*prompt_ids, *answer_ids]
    before = [one.labels("prompt_lookup")._value.get() for one in (DRAFT_TOKENS, ACCEPTED_DRAFT_TOKENS)]
    sides = [_side(prepared, work, prompt_ids, len(answer_ids), clients, width) for width in (0, DRAFT_WIDTH)]
    while running := [side for side in sides if side.runner.running]:
        min(running, key=lambda side: side.num_made).step()
    for side in sides:
        for request in side.requests:
            assert request.completions[0].token_ids == answer_ids, "not the same answer"
    off, on = sides
    drafted = DRAFT_TOKENS.labels("prompt_lookup")._value.get() - before[0]
    accepted = ACCEPTED_DRAFT_TOKENS.labels("prompt_lookup")._value.get() - before[1]
    # By medians: a neighbour who takes a core for a second must not decide.
    cost = statistics.median(on.steps) / statistics.median(off.steps)
    gain = len(off.steps) / len(on.steps) / cost
    plain = sum(off.steps) / sum(on.steps)
    return (
        f"| {work.name} | {clients} | {off.num_made} | {len(off.steps)} / {len(on.steps)} | {accepted:.0f} of "
        f"{drafted:.0f} | {cost:.2f} | {gain:.2f} | {plain:.2f} |"
    )


def _side(
    prepared: PreparedModel, work: CopyTask, ids: list[int], length: int, clients: int, width: int
) -> MeasuredRunner:
    from tis.engine.prepared_request import PreparedRequest
    from tis.engine.request import Request
    from tis.engine.sampling.params import SamplingParams

    room = clients * (len(ids) + length + 64) // 16 + 8
    side = MeasuredRunner(prepared.new_runner(prepared.new_cache(room), width))
    params = SamplingParams(temperature=0, max_tokens=length, ignore_eos=True)
    tokenizer = prepared.tokenizer
    prediction_ids = tokenizer.encode_text(work.prediction)
    for _ in range(clients):
        asked = PreparedRequest("m", "r", tokenizer, ids, params, 1, cache_salt=str(next(SALT)))
        side.requests.append(Request(_with_prediction(asked, prediction_ids)))
        side.runner.admit(side.requests[-1])
    return side


def _with_prediction(prepared: Any, prediction_ids: list[int]) -> Any:
    from dataclasses import replace

    return replace(prepared, prediction_ids=prediction_ids)


def print_step_costs(prepared: PreparedModel, rounds: int) -> None:
    """One sequence of 300 tokens, and so many drafted tokens behind it."""
    from tis.engine.batching.batch import Batch, QueryRun
    from tis.engine.kernels.native import native_kernels

    cache = prepared.new_cache(32)
    for tensor in (*cache.keys, *cache.values):
        tensor.zero_()
    lengths = (1, 2, 4, 8, 12, 16)
    times: dict[int, list[float]] = {length: [] for length in lengths}
    for _ in range(rounds):
        for length in lengths:
            at = torch.arange(300, 300 + length)
            began = clock()
            with torch.inference_mode():
                batch = Batch(cache, [QueryRun(0, length, 0, 300)], at, native_kernels())
                ids, kept = torch.full((1, length), 5), torch.arange(length)
                prepared.model(input_ids=ids, position_ids=at[None], use_cache=False, batch=batch, logits_to_keep=kept)
            times[length].append(clock() - began)
    single = min(times[1])
    print("\n| tokens of one row | " + " | ".join(map(str, lengths)) + " |\n|---|" + "---|" * len(lengths))
    print("| step, best, relative | " + " | ".join(f"{min(times[one]) / single:.2f}" for one in lengths) + " |")
    print(f"\none token: {single * 1000:.0f} ms (best of {rounds})", flush=True)


def print_demo() -> None:
    """All checks of the demo model that are text, one after the other."""
    from transformers import AutoModelForImageTextToText, AutoTokenizer

    from scripts.demo_model.checks import CHECKS
    from tis.engine.batching.lookup import DRAFT_WIDTH
    from tis.engine.prepared_request import PreparedRequest
    from tis.engine.prompt import media_of
    from tis.engine.request import Request
    from tis.engine.sampling.params import SamplingParams
    from tis.engine.text.hf_tokenizer import HfTokenizer
    from tis.observability.metrics import ACCEPTED_DRAFT_TOKENS, DRAFT_TOKENS

    folder = ROOT / "models" / "demo"
    model, plain = AutoModelForImageTextToText.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)
    eos = model.generation_config.eos_token_id
    tokenizer = HfTokenizer(plain, {eos} if isinstance(eos, int) else set(eos), model.config.text_config.vocab_size)
    prepared = prepare(model, tokenizer)
    cache = prepared.new_cache(256)
    times: dict[int, float] = {0: 0.0, DRAFT_WIDTH: 0.0}
    steps = dict.fromkeys(times, 0)
    best: list[float] = []
    num_tokens = 0
    for check in [one for one in CHECKS if not media_of(one.messages)]:
        ids = plain.apply_chat_template(
            list(check.messages),
            tools=list(check.tools) or None,
            enable_thinking=check.enable_thinking,
            add_generation_prompt=True,
            return_dict=False,
        )
        answers = []
        shortest = dict.fromkeys(times, 1e9)
        for turn in range(4):
            width = (0, DRAFT_WIDTH)[turn % 2]
            request = Request(
                PreparedRequest("m", "r", tokenizer, ids, SamplingParams(temperature=0, max_tokens=300), 1)
            )
            runner = prepared.new_runner(cache, width)
            runner.admit(request)
            began = clock()
            while runner.running:
                runner.step(lambda deliveries: None)
                steps[width] += 1
            shortest[width] = min(shortest[width], clock() - began)
            answers.append(request.completions[0].token_ids)
        assert all(answer == answers[0] for answer in answers), "not the same answer"
        num_tokens += len(answers[0])
        for width, seconds in shortest.items():
            times[width] += seconds
        best.append(shortest[0] / shortest[DRAFT_WIDTH])
    off, on = times.values()
    accepted, drafted = (
        ACCEPTED_DRAFT_TOKENS.labels("prompt_lookup")._value.get(),
        DRAFT_TOKENS.labels("prompt_lookup")._value.get(),
    )
    print(
        f"\ndemo model, {len(best)} checks, {num_tokens} tokens of answers: {steps[0] // 2} steps without lookup, "
        f"{steps[DRAFT_WIDTH] // 2} with it, {accepted / drafted:.0%} of the drafted tokens right; "
        f"{off / on:.2f} x as fast, the same answers (of single checks: {min(best):.2f} to {max(best):.2f} x)",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model-folder", type=Path, required=True)
    parser.add_argument("--clients", type=lambda text: [int(n) for n in text.split(",")], default=[1, 4])
    parser.add_argument("--tokens", type=int, default=96, help="of each answer")
    parser.add_argument("--one-thread", action="store_true")
    parser.add_argument("--rounds", type=int, default=6, help="of the costs of steps")
    parser.add_argument("--only", default="", help="kinds of work whose names begin so")
    options = parser.parse_args()
    if options.one_thread:
        global clock
        clock = time.process_time
        torch.set_num_threads(1)
    if "demo model".startswith(options.only):
        print_demo()
    folder = options.model_folder.resolve()
    build_model(folder)

    from transformers import AutoModelForCausalLM, AutoTokenizer

    from tis.engine.text.hf_tokenizer import HfTokenizer

    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16).eval()
    tokenizer = HfTokenizer(AutoTokenizer.from_pretrained(folder), {0}, model.config.vocab_size)
    prepared = prepare(model, tokenizer)
    print_step_costs(prepared, options.rounds)
    scripted = SpokenScript(model)
    print(
        "\n| answer | clients | tokens | steps off / on | drafted right | step on / off | gain, medians | gain, sums |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for clients in options.clients:
        for work in works():
            if work.name.startswith(options.only):
                print(measure(prepared, scripted, work, clients, options.tokens), flush=True)


if __name__ == "__main__":
    main()
