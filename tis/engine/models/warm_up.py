"""Computes a few tokens of text after a load, in the thread of the worker, as the first request would."""

from tis.engine.prepared_request import PreparedRequest
from tis.engine.request import Request
from tis.engine.runner import Runner
from tis.engine.sampling.params import SamplingParams
from tis.engine.text.tokenizer import Tokenizer

_TEXT = "Hello, how are you?"
_MAX_STEPS = 32


def warm_up_text(tokenizer: Tokenizer, runner: Runner) -> None:
    prompt_ids = tokenizer.encode_text(_TEXT)
    params = SamplingParams(temperature=0, max_tokens=4)
    runner.admit(Request(PreparedRequest("", "", tokenizer, prompt_ids, params, seed=0)))
    for _ in range(_MAX_STEPS):
        if not runner.running:
            return
        runner.step(lambda deliveries: None)
    runner.drop_all()
