"""Several prompts with one answer: each is a request of its own, and the choices of all are numbered together.

A few requests wait and run at a time, and the next follows where one is taken up or ends, so a long list fills no
queue.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

from tis.admission.ticket import Ticket
from tis.engine.answer import Answer, Piece
from tis.engine.completion import Completion
from tis.engine.prepared_request import PreparedRequest
from tis.engine.request import QueuedRequest, Request
from tis.errors import QueueFull, ServiceError
from tis.observability.spans import current_span, use_span

MAX_CHOICES_AT_ONCE = 32  # as many as a batch has, by default
MAX_QUEUED = 4  # requests that the model has not taken up: a few lists would fill its queue

# Makes an answer of so many choices, which calls the second argument when it is cancelled.
NewAnswer = Callable[[int, Callable[[], None]], Answer]


class ListedRequest(QueuedRequest, Protocol):
    """One of the list, here or at an engine elsewhere."""

    @property
    def answer(self) -> Answer: ...

    def cancel(self) -> None: ...


@dataclass(frozen=True, slots=True)
class ListedPrompt:
    first_choice: int
    num_unfinished: int  # choices that another process has not finished
    # `is_accepted`: the queue takes it, however full it is.
    make_request: Callable[[NewAnswer, bool], ListedRequest]


class PromptList:
    """Its methods run on the event loop."""

    def __init__(self, prompts: Sequence[ListedPrompt], submit: Callable[[Any], None]) -> None:
        unfinished = [one for one in prompts if one.num_unfinished]
        self.answer = _AnswerOfList(sum(one.num_unfinished for one in unfinished), self._cancel)
        self._waiting = deque(unfinished)
        self._running: dict[ListedPrompt, ListedRequest] = {}
        self._num_left = {one: one.num_unfinished for one in unfinished}
        self._unheard: set[ListedPrompt] = set()  # of those that run: no piece has come
        self._num_cached: dict[ListedPrompt, int] = {}
        self._submit = submit
        self._span = current_span()  # later prompts are submitted when the model's thread delivers

    def start(self, *, is_accepted: bool) -> None:
        """Raises what the submission of the first prompt raises."""
        if self._waiting:
            self._submit_next(is_accepted=is_accepted)
            self._fill()

    def receive(self, prompt: ListedPrompt, item: Piece | ServiceError) -> None:
        if isinstance(item, ServiceError):
            self._fail(item)
            return
        if request := self._running.get(prompt):
            self._num_cached[prompt] = request.answer.cached_tokens
            self.answer.cached_tokens = sum(self._num_cached.values())
            self.answer.num_cached_of[prompt.first_choice + item.choice] = request.answer.cached_tokens
        self.answer.put(replace(item, choice=prompt.first_choice + item.choice) if prompt.first_choice else item)
        if item.finish:
            self._num_left[prompt] -= 1
            if not self._num_left[prompt]:
                self._running.pop(prompt, None)
        if item.finish or prompt in self._unheard:
            self._unheard.discard(prompt)
            self._fill()

    def _fill(self) -> None:
        while self._waiting and self._has_room:
            try:
                self._submit_next(is_accepted=not self._running)
            except QueueFull:
                return  # when one of those that run begins or ends, there is another try
            except ServiceError as error:
                self._fail(error)

    @property
    def _has_room(self) -> bool:
        num_queued = sum(request.timing.admitted_at is None for request in self._running.values())
        if num_queued >= MAX_QUEUED:
            return False
        num_choices = sum(self._num_left[one] for one in self._running)
        return not self._running or num_choices + self._waiting[0].num_unfinished <= MAX_CHOICES_AT_ONCE

    def _submit_next(self, *, is_accepted: bool) -> None:
        prompt = self._waiting[0]
        request = self._made(prompt, is_accepted=is_accepted)
        self._submit(request)
        self._waiting.popleft()
        self._running[prompt] = request
        self._unheard.add(prompt)

    def _made(self, prompt: ListedPrompt, *, is_accepted: bool) -> ListedRequest:
        def new_answer(num_choices: int, cancel: Callable[[], None]) -> Answer:
            return _PartOfAnswer(num_choices, cancel, lambda item: self.receive(prompt, item))

        with use_span(self._span):
            return prompt.make_request(new_answer, is_accepted)

    def _fail(self, error: ServiceError) -> None:
        self._waiting.clear()
        running, self._running = list(self._running.values()), {}
        self.answer.put(error)
        for request in running:
            request.cancel()

    def _cancel(self) -> None:
        waiting, self._waiting = list(self._waiting), deque()
        for request in list(self._running.values()):
            request.cancel()
        for prompt in waiting:
            for one, item in self._made(prompt, is_accepted=True).cancel_completions():
                one.receive(item, 0.0)


class _AnswerOfList(Answer):
    def __init__(self, num_choices: int, cancel: Callable[[], None]) -> None:
        super().__init__(num_choices, cancel)
        self.num_cached_of: dict[int, int] = {}  # by choice

    def cached_tokens_of(self, choice: int) -> int:
        return self.num_cached_of.get(choice, 0)


class _PartOfAnswer(Answer):
    """That of one prompt, whose pieces go on to the answer of the list."""

    def __init__(
        self, num_choices: int, cancel: Callable[[], None], hand_on: Callable[[Piece | ServiceError], None]
    ) -> None:
        super().__init__(num_choices, cancel)
        self._hand_on = hand_on

    def put(self, item: Piece | ServiceError) -> None:
        self._hand_on(item)


def listed_requests(
    prepared: Sequence[PreparedRequest],
    replayed: Sequence[list[Completion] | None],
    submit: Callable[[Request], None],
    on_cancel: Callable[[Request], None],
    ticket: Ticket | None,
) -> PromptList:
    """`replayed`: the completions of a list that another process began."""
    prompts: list[ListedPrompt] = []
    first_choice = 0
    for one, completions in zip(prepared, replayed, strict=True):
        num_unfinished = sum(not each.is_finished for each in completions) if completions else one.params.n
        make = partial(_new_request, one, completions, on_cancel, ticket)
        prompts.append(ListedPrompt(first_choice, num_unfinished, make))
        first_choice += one.params.n
    return PromptList(prompts, submit)


def _new_request(
    prepared: PreparedRequest,
    completions: list[Completion] | None,
    on_cancel: Callable[[Request], None],
    ticket: Ticket | None,
    new_answer: NewAnswer,
    is_accepted: bool,
) -> Request:
    begun = prepared.begun[-1] if prepared.begun else None  # not taken away: the queue may be full
    return Request(
        *(prepared, on_cancel, completions),
        begun=begun,
        is_resumed=is_accepted,
        ticket=ticket,
        new_answer=new_answer,
    )
