"""Greedy answers of the demo model, computed in batches by the engine with weights of any kind."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any, Literal

DEMO = Path(__file__).resolve().parent.parent / "models" / "demo"
MAX_ANSWER_TOKENS = 200
Kind = Literal["int8", "int4"] | None
# Subjects of the lessons, of which new questions are drawn.
DRAWN = {"tool calls": "tool_call", "JSON": "record", "goods picked, in JSON": "goods_picks", "sums": "arithmetic"}
_SEED = 4242


class DemoAnswers:
    """Only questions without media."""

    def __init__(self) -> None:
        from transformers import AutoTokenizer

        from tis.engine.text.hf_tokenizer import HfTokenizer

        self._plain = AutoTokenizer.from_pretrained(DEMO)
        model = new_demo()
        eos_ids, size = model.generation_config.eos_token_id, model.config.get_text_config().vocab_size
        self._tokenizer = HfTokenizer(self._plain, eos_ids, size)

    def prompt_of(self, question: Any) -> list[int]:
        """Of a check or a dialogue."""
        from tis.engine.prompt import ChatPrompt

        how = {"enable_thinking": question.enable_thinking}
        return self._tokenizer.encode_chat(ChatPrompt(question.messages, question.tools, how))

    def text_of(self, answer: Sequence[int]) -> str:
        return str(self._plain.decode(answer, skip_special_tokens=True))

    def greedy(self, prompts: Sequence[list[int]], kind: Kind) -> list[list[int]]:
        from tis.engine.batching.choose_runner import choose_runner
        from tis.engine.batching.limits import BatchLimits
        from tis.engine.prepared_request import PreparedRequest
        from tis.engine.request import Request
        from tis.engine.sampling.params import SamplingParams

        limits = BatchLimits(cache_tokens=65_536, quantisation=kind, prompt_lookup=False)
        runner = choose_runner(new_demo(), self._tokenizer, 4096, limits).new()
        params = SamplingParams(temperature=0.0, max_tokens=MAX_ANSWER_TOKENS)
        requests = [
            Request(PreparedRequest("demo", "", self._tokenizer, prompt, params, number))
            for number, prompt in enumerate(prompts)
        ]
        waiting = list(requests)
        while waiting or runner.running:
            while waiting and runner.has_room:
                runner.admit(waiting.pop())
            runner.step(lambda _: None)
        return [list(request.completions[0].token_ids) for request in requests]

    def rights(self, questions: Mapping[str, Sequence[Any]], kind: Kind) -> dict[str, int]:
        """Of each subject: how many drawn questions are answered to the letter."""
        flat = [question for one in questions.values() for question in one]
        answers = iter(self.greedy([self.prompt_of(question) for question in flat], kind))
        return {
            name: sum(self.text_of(next(answers)) == question.answer for question in one)
            for name, one in questions.items()
        }


def new_demo() -> Any:
    from transformers import AutoModelForImageTextToText

    return AutoModelForImageTextToText.from_pretrained(DEMO).eval()


def drawn_questions(number: int) -> dict[str, list[Any]]:
    """No course has asked these: names, goods and numbers are drawn anew."""
    from scripts.demo_model.curriculum import drawn

    return {name: [drawn(Random(f"{_SEED} {at}"), subject) for at in range(number)] for name, subject in DRAWN.items()}
