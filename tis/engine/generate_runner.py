"""Runs requests through `model.generate()`, one at a time: for every model that Transformers can generate with.

Tokens are picked by our own sampling, so that seeds, penalties and log probabilities mean the same as in a batch.
"""

from typing import Any

import torch
from torch.nn.functional import pad
from transformers import GenerationConfig, LogitsProcessor, LogitsProcessorList, StoppingCriteria, StoppingCriteriaList

from tis.engine.answer import Piece
from tis.engine.completion import Completion
from tis.engine.faults import device_answers
from tis.engine.request import HandOut, Request
from tis.engine.sampling.pick import PickedToken, logprob_of, pick
from tis.engine.text.tokenizer import Tokenizer
from tis.errors import GenerationFailed


class GenerateRunner:
    def __init__(self, model: Any, tokenizer: Tokenizer) -> None:
        self._model = model
        self._tokenizer = tokenizer
        self._running: list[Request] = []
        # The recommended sampling of the model is among the request's defaults; generate() must not apply it again.
        model.generation_config = GenerationConfig()

    cache_use: float | None = None  # each call has a cache of its own

    @property
    def has_room(self) -> bool:
        return not self._running

    def owes_place(self, owner: str) -> bool:
        return False  # a call of generate() cannot be left

    @property
    def has_bounded_steps(self) -> bool:
        return False

    @property
    def running(self) -> list[Request]:
        return self._running

    def admit(self, request: Request) -> None:
        self._running = [request]

    def step(self, hand_out: HandOut) -> None:
        """Runs a whole request: generate() cannot be left and entered again."""
        [request] = self._running
        for completion in request.unfinished:
            self._complete(request, completion, hand_out)
        self._running = []

    def drop_all(self) -> None:
        self._running = []

    def device_answers(self) -> bool:
        return device_answers(self._model.device)

    def _complete(self, request: Request, completion: Completion, hand_out: HandOut) -> None:
        if request.is_cancelled:
            hand_out([(request, completion.cancel())])
            return
        writer = _CompletionWriter(request, completion, self._tokenizer, hand_out)
        prompt = torch.tensor([request.prompt_ids + completion.token_ids], device=self._model.device)
        with torch.inference_mode():
            self._model.generate(
                prompt,
                attention_mask=torch.ones_like(prompt),
                **self._vision_inputs(request, prompt.shape[1]),
                generation_config=GenerationConfig(
                    do_sample=False,
                    # One more than the answer has, as the token that ends it is not counted.
                    max_new_tokens=completion.params.max_tokens - len(completion.token_ids) + 1,
                    pad_token_id=0,
                ),
                logits_processor=LogitsProcessorList([_ForcePickedToken(writer)]),
                stopping_criteria=StoppingCriteriaList([_WhenFinished(writer)]),
            )
        if not writer.is_done:
            # A model may bring its own generate() with another end: reporting "stop" could pass off half an answer as a
            # whole one.
            raise GenerationFailed(
                f"The model's generate() ended after {len(completion.token_ids)} of at most "
                f"{completion.params.max_tokens} tokens, before the answer had ended."
            )

    def _vision_inputs(self, request: Request, num_tokens: int) -> dict[str, Any]:
        """Tensors with a value per prompt token, such as token types, are padded with zeros for generated tokens."""
        vision = request.prepared.vision
        if vision is None:
            return {}
        num_prompt = len(request.prompt_ids)
        inputs = {name: tensor.to(self._model.device) for name, tensor in vision.generate_kwargs().items()}
        return {
            name: pad(tensor, (0, num_tokens - num_prompt)) if tensor.shape == (1, num_prompt) else tensor
            for name, tensor in inputs.items()
        }


class _CompletionWriter:
    """Adds picked tokens to a completion and hands out its pieces."""

    def __init__(self, request: Request, completion: Completion, tokenizer: Tokenizer, hand_out: HandOut) -> None:
        self._request = request
        self.completion = completion
        self._tokenizer = tokenizer
        self._hand_out = hand_out

    @property
    def is_done(self) -> bool:
        if self._request.is_cancelled and not self.completion.is_finished:
            self._hand_out_piece(self.completion.cancel())
        return self.completion.is_finished

    def accept(self, picked: PickedToken) -> None:
        logprob = None if picked.logprob is None else lambda: logprob_of(picked, self._tokenizer)
        self._hand_out_piece(self.completion.accept(picked.token_id, logprob))

    def _hand_out_piece(self, piece: Piece | None) -> None:
        if piece:
            self._hand_out([(self._request, piece)])


class _ForcePickedToken(LogitsProcessor):  # type: ignore[misc]
    """Picks the token by our own sampling, then masks every other token, so that generate() takes it."""

    def __init__(self, writer: _CompletionWriter) -> None:
        self._writer = writer

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        token_id = self._next(input_ids.shape[1], scores)
        only = torch.full_like(scores, -torch.inf)
        only[0, token_id] = 0
        return only

    def _next(self, num_tokens: int, scores: Any) -> int:
        completion = self._writer.completion
        num_generated = num_tokens - len(completion.prompt_ids)
        if num_generated < len(completion.token_ids):  # forced by a grammar, and accepted with the token before
            return completion.token_ids[num_generated]
        picked = pick(scores[0].float(), completion)
        self._writer.accept(picked)
        return picked.token_id


class _WhenFinished(StoppingCriteria):  # type: ignore[misc]
    def __init__(self, writer: _CompletionWriter) -> None:
        self._writer = writer

    def __call__(self, input_ids: Any, scores: Any, **kwargs: Any) -> Any:
        return torch.tensor([self._writer.is_done], device=input_ids.device)
