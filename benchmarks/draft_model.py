"""What a draft model (`DRAFT_MODEL`) gives, and what answers cost that it does not foretell.

    python benchmarks/draft_model.py --model-folder FOLDER [--clients 1,4,8] [--right 0.9,0.7,0.5,0] [--one-thread]
    python benchmarks/draft_model.py --demo [--training-steps 100]

Speed: the model is that of `compare.py` (0.45 B random parameters, built into FOLDER if it is not there); a model of
the same shape with fewer layers drafts. Both compute each step, and then are made to say a text: the model the text,
the draft model a share of its tokens (`--right`), each whatever the one before it was. So the costs are real, and how
many drafts are right is given. Two runners, with drafts and without, are in one process; the one that has said less
takes the next step, so both meet the same neighbours. Prompt lookup is off. With `--one-thread` times are those of the
CPU: for a machine that others use, too.

Acceptance (`--demo`): the demo model with one of its four layers is trained on half of the demo model's
own answers, and drafts 4 tokens a step for both halves. At this size a step says nothing about speed.
"""

import argparse
import random
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import prompt_lookup  # noqa: E402
import torch  # noqa: E402
from prompt_lookup import SALT, MeasuredRunner, PreparedModel, SpokenScript, prepare  # noqa: E402
from random_model import build_model, new_model  # noqa: E402

_PROMPT_TOKENS = 200


class HalfRightScript(SpokenScript):
    """Says other tokens at some positions."""

    def __init__(self, model: Any, share: float) -> None:
        super().__init__(model)
        self.share = share

    def write(self, script: Sequence[int]) -> None:
        chance = random.Random(1)
        self.script = [one if chance.random() < self.share else one ^ 1 for one in script]


@dataclass(frozen=True, slots=True)
class Drafting:
    """A draft model beside the model, and how both are counted."""

    prepared: PreparedModel
    draft: Any  # PreparedDraft
    weight_bytes: int

    def new_runner(self, num_blocks: int, policy: Any = None) -> Any:
        from tis.engine.batching.batch_runner import BatchRunner
        from tis.engine.batching.draft_model import DraftModel
        from tis.engine.batching.draft_policy import DraftPolicy
        from tis.engine.batching.kv_cache import PagedCache
        from tis.engine.batching.lookup import DRAFT_WIDTH
        from tis.engine.kernels.native import native_kernels

        tokenizer, cache = self.prepared.tokenizer, PagedCache(self.draft.shape, num_blocks, 16)
        policy = policy or DraftPolicy(self.draft.weight_bytes / self.weight_bytes)
        return BatchRunner(
            self.prepared.model,
            tokenizer,
            self.prepared.new_cache(num_blocks),
            draft_width=DRAFT_WIDTH,
            looks_up=False,
            new_draft_model=lambda: DraftModel(self.draft, cache, policy, tokenizer.vocabulary_size),
            kernels=native_kernels(),
        )


def counts() -> tuple[float, float]:
    from tis.observability.metrics import ACCEPTED_DRAFT_TOKENS, DRAFT_TOKENS

    drafted, accepted = (one.labels("draft_model")._value.get() for one in (DRAFT_TOKENS, ACCEPTED_DRAFT_TOKENS))
    return drafted, accepted


def measure(drafting: Drafting, scripts: tuple[SpokenScript, HalfRightScript], clients: int, num_tokens: int) -> str:
    from tis.engine.prepared_request import PreparedRequest
    from tis.engine.request import Request
    from tis.engine.sampling.params import SamplingParams

    tokenizer = drafting.prepared.tokenizer
    ids = tokenizer.encode_text((ROOT / "docs" / "install.md").read_text()[:9000])
    prompt_ids, answer_ids = ids[:_PROMPT_TOKENS], ids[_PROMPT_TOKENS : _PROMPT_TOKENS + num_tokens]
    scripts[0].script = [*prompt_ids, *answer_ids]
    scripts[1].write(scripts[0].script)
    room = clients * (len(prompt_ids) + len(answer_ids) + 64) // 16 + 8
    off = MeasuredRunner(drafting.prepared.new_runner(drafting.prepared.new_cache(room), 0))
    on = MeasuredRunner(drafting.new_runner(room))
    params = SamplingParams(temperature=0, max_tokens=len(answer_ids), ignore_eos=True)
    for side in (off, on):
        for _ in range(clients):
            asked = PreparedRequest("m", "r", tokenizer, prompt_ids, params, 1, cache_salt=str(next(SALT)))
            side.requests.append(Request(asked))
            side.runner.admit(side.requests[-1])
    before = counts()
    while running := [side for side in (off, on) if side.runner.running]:
        min(running, key=lambda side: side.num_made).step()
    for side in (off, on):
        for request in side.requests:
            assert request.completions[0].token_ids == answer_ids, "not the same answer"
    drafted, accepted = (now - then for now, then in zip(counts(), before, strict=True))
    policy = on.runner._draft_model.policy
    costs = policy.passes.seconds(clients) / policy.steps.seconds(clients)
    gain = sum(off.steps) / sum(on.steps)
    return (
        f"| {scripts[1].share:.2f} | {clients} | {len(off.steps)} / {len(on.steps)} | {accepted:.0f} of "
        f"{drafted:.0f} | {statistics.median(off.steps) * 1000:.0f} ms | {costs:.2f} | {gain:.2f} |"
    )


def print_speed(options: argparse.Namespace) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from tis.engine.batching.choose_runner import prepare_draft
    from tis.engine.batching.limits import BatchLimits
    from tis.engine.text.hf_tokenizer import HfTokenizer
    from tis.engine.weights.packed import weight_bytes_of

    folder = options.model_folder.resolve()
    build_model(folder)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16).eval()
    tokenizer = HfTokenizer(AutoTokenizer.from_pretrained(folder), {0}, model.config.vocab_size)
    small = new_model(
        torch.bfloat16, layers=options.layers, vocab_size=model.config.vocab_size, tie_word_embeddings=False
    )
    prepared = prepare(model, tokenizer)
    draft = prepare_draft("small", small, 4096, BatchLimits())
    drafting = Drafting(prepared, draft, weight_bytes_of(model))
    scripts = SpokenScript(model), HalfRightScript(small, 0.0)
    print("| right | clients | steps off / on | drafted right | step | a pass of the draft model, to a step | gain |")
    print("|---|---|---|---|---|---|---|")
    for clients in options.clients:
        for share in options.right:
            scripts[1].share = share
            for _ in range(options.rounds):
                print(measure(drafting, scripts, clients, options.tokens), flush=True)


@dataclass(frozen=True, slots=True)
class GreedyAnswer:
    prompt_ids: list[int]
    answer_ids: list[int]


def print_demo(num_steps: int) -> None:
    from transformers import AutoModelForImageTextToText, AutoTokenizer

    from scripts.demo_model.checks import CHECKS
    from tis.engine.batching.choose_runner import prepare_draft
    from tis.engine.batching.limits import BatchLimits
    from tis.engine.prompt import media_of
    from tis.engine.text.hf_tokenizer import HfTokenizer

    folder = ROOT / "models" / "demo"
    model, plain = AutoModelForImageTextToText.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)
    eos = model.generation_config.eos_token_id
    tokenizer = HfTokenizer(plain, {eos} if isinstance(eos, int) else set(eos), model.config.text_config.vocab_size)
    answers = []
    for check in [one for one in CHECKS if not media_of(one.messages)]:
        ids = plain.apply_chat_template(
            list(check.messages),
            tools=list(check.tools) or None,
            enable_thinking=check.enable_thinking,
            add_generation_prompt=True,
            return_dict=False,
        )
        out = model.generate(torch.tensor([ids]), do_sample=False, max_new_tokens=300)[0, len(ids) :].tolist()
        answers.append(GreedyAnswer(ids, out))
    small = AutoModelForImageTextToText.from_pretrained(folder)
    small.model.language_model.layers = small.model.language_model.layers[:1]
    small.config.text_config.num_hidden_layers = 1
    seen, unseen = answers[::2], answers[1::2]
    _train(small, seen, num_steps)
    drafting = Drafting(prepare(model, tokenizer), prepare_draft("small", small.eval(), 4096, BatchLimits()), 1)
    print("\n| answers | temperature | steps off / on | drafted right |\n|---|---|---|---|")
    for name, some in (("it was trained on", seen), ("it has not seen", unseen)):
        for temperature in (0.0, 1.0):
            print(_accepted(drafting, some, name, temperature), flush=True)


def _train(model: Any, answers: Sequence[GreedyAnswer], num_steps: int) -> None:
    chance = random.Random(1)
    optimizer = torch.optim.AdamW(list(model.model.language_model.parameters()), lr=2e-3)
    model.train()
    losses = []
    for _ in range(num_steps):
        some = chance.sample(answers, 6)
        longest = max(len(one.prompt_ids) + len(one.answer_ids) for one in some)
        ids = torch.zeros(len(some), longest, dtype=torch.long)
        labels = torch.full_like(ids, -100)
        for row, one in enumerate(some):
            whole = torch.tensor([*one.prompt_ids, *one.answer_ids])
            ids[row, : len(whole)] = whole
            labels[row, len(one.prompt_ids) : len(whole)] = whole[len(one.prompt_ids) :]
        loss = model(input_ids=ids, attention_mask=torch.ones_like(ids), labels=labels).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    print(f"one layer of the demo model, {num_steps} steps of training, loss {losses[-1]:.3f}", flush=True)


def _accepted(drafting: Drafting, answers: Sequence[GreedyAnswer], name: str, temperature: float) -> str:
    from tis.engine.batching.draft_policy import DraftChoice, DraftPolicy
    from tis.engine.prepared_request import PreparedRequest
    from tis.engine.request import Request
    from tis.engine.sampling.params import SamplingParams

    class FourTokens(DraftPolicy):
        def choose(self, wishes: Any, num_tokens: int, max_drafted: int, max_computed: int = 64) -> DraftChoice:
            ready = [one.num_missing <= min(64, max_computed) for one in wishes]
            lengths = [
                max(0, min(4, one.max_length, max_drafted)) if is_ready else 0
                for one, is_ready in zip(wishes, ready, strict=True)
            ]
            return DraftChoice(lengths, [not one for one in ready], [False] * len(wishes))

    tokenizer = drafting.prepared.tokenizer
    runners = [
        drafting.prepared.new_runner(drafting.prepared.new_cache(256), 0),
        drafting.new_runner(256, FourTokens(1.0)),
    ]
    steps = [0, 0]
    before = counts()
    for seed, one in enumerate(answers):
        said = []
        for at, runner in enumerate(runners):
            params = SamplingParams(temperature=temperature, max_tokens=300)
            request = Request(PreparedRequest("m", "r", tokenizer, one.prompt_ids, params, seed))
            runner.admit(request)
            while runner.running:
                runner.step(lambda deliveries: None)
                steps[at] += 1
            said.append(request.completions[0].token_ids)
        assert said[0] == said[1], "not the same answer"
    drafted, accepted = (now - then for now, then in zip(counts(), before, strict=True))
    share = accepted / drafted
    return f"| {name} | {temperature:.0f} | {steps[0]} / {steps[1]} | {accepted:.0f} of {drafted:.0f}, {share:.0%} |"


def _numbers(text: str) -> list[float]:
    return [float(one) for one in text.split(",")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model-folder", type=Path)
    parser.add_argument("--clients", type=lambda text: [int(one) for one in text.split(",")], default=[1, 4, 8])
    parser.add_argument("--right", type=_numbers, default=[0.9, 0.7, 0.5, 0.0], help="shares of drafted tokens")
    parser.add_argument("--layers", type=int, default=4, help="of the draft model; the model has 28")
    parser.add_argument("--tokens", type=int, default=96, help="of each answer")
    parser.add_argument("--one-thread", action="store_true")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--demo", action="store_true", help="how many drafts of a trained model are right")
    parser.add_argument("--training-steps", type=int, default=100, help="with --demo")
    options = parser.parse_args()
    if options.one_thread:
        prompt_lookup.clock = time.process_time
        torch.set_num_threads(1)
    if options.demo:
        print_demo(options.training_steps)
    if options.model_folder:
        print_speed(options)


if __name__ == "__main__":
    main()
