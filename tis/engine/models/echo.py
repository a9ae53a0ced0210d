"""A model without weights, for tests and benchmarks: answers with the last message, one token per character.

Chosen with `MODEL_REPO_ID=echo`, or with options such as `echo?tokens_per_second=40&fail_after=5`. It has the same
engine, queue and thread as a real model, so its cost is the overhead of the server.
"""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from string import ascii_lowercase
from urllib.parse import parse_qsl

from tis.engine.answer import TokenLogprob
from tis.engine.faults import DeviceLost
from tis.engine.models.loaded_model import LoadedModel
from tis.engine.prompt import ChatPrompt, text_of
from tis.engine.request import Delivery, HandOut, Request
from tis.engine.text.markers import REASONING_MARKERS, TOOL_FORMATS, ModelMarkers, ToolFormat
from tis.engine.text.text_encoder import TooManyTokens
from tis.errors import BadRequest, GenerationFailed

CONTEXT_LENGTH = 32768
_HIGHEST_CHARACTER = 0x10FFFF
_MAX_CATCH_UP_SECONDS = 0.25
_BEGUN = _HIGHEST_CHARACTER + 1  # more than the id of a character that an echo to be continued has already
_NEVER = -9999.0  # OpenAI's log probability of a token that is very unlikely


@dataclass(frozen=True, slots=True)
class EchoOptions:
    tokens_per_second: float = 0  # per answer; 0: as fast as possible
    fail_after: int = 0  # tokens; 0: never
    die_after: int = 0  # tokens; ends the worker's thread
    no_memory_after: int = 0  # tokens
    lose_device_after: int = 0  # tokens
    hang_after: int = 0  # tokens
    load_seconds: float = 0
    revision: str = ""  # to imitate another model under the same name
    tool_format: ToolFormat = "json"  # of the tool calls that it pretends to write
    thinks: bool = False

    @classmethod
    def from_repo(cls, repo: str) -> "EchoOptions":
        options = dict(parse_qsl(repo.partition("?")[2]))
        [tool_format] = (name for name in TOOL_FORMATS if name == options.get("tool_format", "json"))
        return cls(
            tokens_per_second=float(options.get("tokens_per_second", 0)),
            fail_after=int(options.get("fail_after", 0)),
            die_after=int(options.get("die_after", 0)),
            no_memory_after=int(options.get("no_memory_after", 0)),
            lose_device_after=int(options.get("lose_device_after", 0)),
            hang_after=int(options.get("hang_after", 0)),
            load_seconds=float(options.get("load_seconds", 0)),
            revision=options.get("revision", ""),
            tool_format=tool_format,
            thinks=options.get("thinks") == "1",
        )


class EchoDied(BaseException):
    """Ends the worker's thread, as no Exception does."""


def load_echo(repo: str) -> LoadedModel:
    options = EchoOptions.from_repo(repo)
    time.sleep(options.load_seconds)
    return LoadedModel(
        tokenizer=CharacterTokenizer(),
        new_runner=lambda: EchoRunner(options),
        context_length=CONTEXT_LENGTH,
        generation_defaults={},
        revision=f"echo{options.revision}",
        template_variables=frozenset({"tools"}),  # it has no template, but pretends to write calls
        markers=ModelMarkers(REASONING_MARKERS[0] if options.thinks else None).with_format(options.tool_format),
    )


class CharacterTokenizer:
    """One token per character; its id is the code point."""

    eos_ids: frozenset[int] = frozenset()
    vocabulary_size = _HIGHEST_CHARACTER + 1

    def encode_chat(self, prompt: ChatPrompt) -> list[int]:
        text = text_of(prompt.messages[-1])
        if not text:
            raise BadRequest("The echo model repeats the last message, which is empty.", param="messages")
        if prompt.continue_final_message and len(prompt.messages) > 1:
            whole = text_of(prompt.messages[-2])
            if whole.startswith(text):  # it goes on with the echo that was begun
                return [ord(character) for character in whole] + [_BEGUN + ord(character) for character in text]
        return [ord(character) for character in text]

    def encode_text(self, text: str) -> list[int]:
        return [ord(character) for character in text]

    def encode_raw(self, text: str, *, adds_special_tokens: bool, max_tokens: int | None = None) -> list[int]:
        if max_tokens is not None and len(text) > max_tokens:
            raise TooManyTokens(len(text))
        return self.encode_text(text)

    def decode_raw(self, token_ids: Sequence[int]) -> str:
        return "".join(map(_character, token_ids))

    def visible_texts(self, token_ids: Sequence[int]) -> list[str]:
        return list(map(_character, token_ids))

    def text_offsets(self, text: str, token_ids: Sequence[int], *, adds_special_tokens: bool) -> list[int]:
        return list(range(len(token_ids)))

    def token_names(self, token_ids: Sequence[int]) -> list[str]:
        return list(map(_character, token_ids))

    def count_tokens(self, text: str, max_tokens: int) -> int:
        return len(text)

    def token_text(self, token_id: int) -> str:
        return _character(token_id)

    def token_bytes(self, token_id: int) -> bytes:
        return _character(token_id).encode()

    def new_detokenizer(self) -> "CharacterDetokenizer":
        return CharacterDetokenizer()


class CharacterDetokenizer:
    def feed(self, token_id: int) -> str:
        return _character(token_id)

    def flush(self) -> str:
        return ""


class EchoRunner:
    has_room = True
    cache_use: float | None = None
    has_bounded_steps = True
    num_passes = 0

    def __init__(self, options: EchoOptions) -> None:
        self._options = options
        self._running: list[Request] = []
        self._next_step_at = 0.0

    @property
    def running(self) -> list[Request]:
        return self._running

    def owes_place(self, owner: str) -> bool:
        return False  # there is always room

    def admit(self, request: Request) -> None:
        self._running.append(request)

    def step(self, hand_out: HandOut) -> None:
        self._keep_pace()
        deliveries: list[Delivery] = []
        for request in self._running:
            deliveries += self._advance(request)
        failed = {id(request) for request, item in deliveries if isinstance(item, GenerationFailed)}
        self._running = [one for one in self._running if one.unfinished and id(one) not in failed]
        hand_out(deliveries)

    def drop_all(self) -> None:
        self._running = []

    def device_answers(self) -> bool:
        return True

    def _advance(self, request: Request) -> Sequence[Delivery]:
        if request.is_cancelled:
            return request.cancel_completions()
        num_made = len(request.completions[0].token_ids)
        if self._is_due(self._options.die_after, num_made):
            raise EchoDied
        if self._is_due(self._options.no_memory_after, num_made):
            raise MemoryError
        if self._is_due(self._options.lose_device_after, num_made):
            raise DeviceLost("The echo model loses its device here, as its option lose_device_after says.")
        if self._is_due(self._options.hang_after, num_made):
            threading.Event().wait()
        if self._is_due(self._options.fail_after, num_made):
            return [(request, GenerationFailed("The echo model fails here, as its option fail_after says."))]
        deliveries: list[Delivery] = []
        for completion in request.unfinished:
            if (first := completion.next_scored) is not None:
                num_top = completion.num_prompt_alternatives
                completion.add_scores([_certain(token, num_top)() for token in request.prompt_ids[first:]])
                deliveries += [(request, piece) for piece in completion.take_scores()]
            num_begun = _num_begun(request.prompt_ids)
            at, length = len(completion.token_ids) + num_begun, len(request.prompt_ids) - num_begun
            if at >= length and not completion.params.ignore_eos:
                deliveries.append((request, completion.end()))
                continue
            token = request.prompt_ids[at % length]
            count, wanted = completion.params.top_logprobs, completion.params.logprob_token_ids
            logprob = None if count is None else _certain(token, count, wanted)
            if piece := completion.accept(token, logprob):
                deliveries.append((request, piece))
        return deliveries

    @staticmethod
    def _is_due(after: int, num_made: int) -> bool:
        return bool(after) and num_made >= after

    def _keep_pace(self) -> None:
        """Sleeps until the next step is due. Catches up after a late step, but not after an idle time."""
        if not self._options.tokens_per_second:
            return
        pause = self._next_step_at - time.monotonic()
        if pause > 0:
            time.sleep(pause)
        elif pause < -_MAX_CATCH_UP_SECONDS:
            self._next_step_at = time.monotonic()
        self._next_step_at += 1 / self._options.tokens_per_second


def _certain(token_id: int, num_top: int, wanted: Sequence[int] = ()) -> Callable[[], TokenLogprob]:
    others = tuple(_logprob(one, 0.0 if one == token_id else _NEVER) for one in wanted)
    return lambda: replace(_logprob(token_id, 0.0), top=others or _top(token_id, num_top))


def _top(token_id: int, count: int) -> tuple[TokenLogprob, ...]:
    others = [ord(letter) for letter in ascii_lowercase if ord(letter) != token_id]
    return (_logprob(token_id, 0.0), *(_logprob(other, _NEVER) for other in others))[:count]


def _logprob(token_id: int, logprob: float) -> TokenLogprob:
    return TokenLogprob(token_id, _character(token_id), _character(token_id).encode(), logprob)


def _num_begun(prompt_ids: Sequence[int]) -> int:
    if not prompt_ids or prompt_ids[-1] < _BEGUN:
        return 0
    return sum(token >= _BEGUN for token in prompt_ids)


def _character(token_id: int) -> str:
    """Half of a pair of surrogates is no text."""
    token_id %= _BEGUN
    return "\ufffd" if 0xD800 <= token_id <= 0xDFFF else chr(token_id)


def is_echo(repo: str) -> bool:
    return repo.partition("?")[0] == "echo"
