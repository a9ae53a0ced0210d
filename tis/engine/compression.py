"""Makes room in a conversation that is too long, by dropping its oldest turns.

A turn is a user message and all that follows it up to the next one, with its pictures, so that the rest never begins
with an answer to a dropped question. System messages and the last turn stay.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from tis.engine.prompt import ChatPrompt, Message
from tis.engine.text.text_encoder import TooManyTokens

_ROLES_NEVER_DROPPED = ("system", "developer")
# At first; templates write some tokens around each message, and what they are is known after the first try.
_TOKENS_AROUND_MESSAGE = 1
_MAX_GUESSES = 4
_PROBABLE_CHARS_PER_TOKEN = 2

Count = Callable[[str, int], int]  # the tokens of a text, counted up to a limit


def compress(
    prompt: ChatPrompt, encode: Callable[[ChatPrompt], list[int]], count: Count, budget: int, max_context: int
) -> tuple[ChatPrompt, list[int], dict[str, Any]]:
    """Returns the longest end of the conversation that fits the budget, its tokens, and the report for clients.

    Counts the tokens of each message once, the newest first and only as far as they fit. The whole is rendered and
    encoded a few times only, because templates and tokenizers may make a little more or less of it.
    """
    turns = _turns(prompt.messages)
    search = _Search(prompt, turns, encode, lambda: _Sizes(prompt, turns, count, budget), budget)
    num_turns_dropped, token_ids = search.run()
    dropped = turns[:num_turns_dropped]
    num_messages_dropped = sum(map(len, dropped))
    return (
        _without(prompt, dropped),
        token_ids,
        {
            "compressed": num_messages_dropped > 0,
            "prompt_tokens": len(token_ids),
            "max_context": max_context,
            "budget": budget,
            "strategy": "truncate",
            "dropped_messages": num_messages_dropped,
        },
    )


class _Sizes:
    """The tokens of the turns that may fit, each message by itself."""

    def __init__(self, prompt: ChatPrompt, turns: Sequence[Sequence[int]], count: Count, budget: int) -> None:
        in_turns = {position for turn in turns for position in turn}
        always = [position for position in range(len(prompt.messages)) if position not in in_turns]
        self._always, self._num_always = 0, len(always)
        for position in always:
            self._always += _tokens_of(prompt.messages[position], count, budget)
        self._newest_first: list[tuple[int, int]] = []  # tokens and messages
        left = budget - self._always
        for turn in reversed(turns):
            if left < 0:
                break
            size = sum(_tokens_of(prompt.messages[position], count, budget) for position in turn)
            self._newest_first.append((size, len(turn)))
            left -= size

    def num_turns_within(self, budget: float, around_message: float) -> int:
        used, num_turns = self._always + around_message * self._num_always, 0
        for size, num_messages in self._newest_first:
            used += size + around_message * num_messages
            if used > budget:
                break
            num_turns += 1
        return num_turns

    def of_newest(self, num_turns: int) -> tuple[int, int]:
        """Their tokens, without what the template adds, and the number of their messages."""
        some = self._newest_first[:num_turns]
        return self._always + sum(size for size, _ in some), self._num_always + sum(count for _, count in some)


class _Search:
    """Finds the smallest number of turns to drop: guesses by the sizes of messages, then bisects."""

    def __init__(
        self,
        prompt: ChatPrompt,
        turns: Sequence[Sequence[int]],
        encode: Callable[[ChatPrompt], list[int]],
        new_sizes: Callable[[], _Sizes],
        budget: int,
    ) -> None:
        self._prompt, self._turns, self._encode, self._new_sizes, self._budget = (
            prompt,
            turns,
            encode,
            new_sizes,
            budget,
        )
        self._around_message: float = _TOKENS_AROUND_MESSAGE
        self._most = max(0, len(turns) - 1)  # the last turn stays

    @cached_property
    def _sizes(self) -> _Sizes:
        return self._new_sizes()

    def run(self) -> tuple[int, list[int]]:
        if self._is_short and (token_ids := self._encoded(0)) is not None and len(token_ids) <= self._budget:
            return 0, token_ids
        too_few, enough = -1, self._most
        best: list[int] | None = None
        num_guesses = 0
        while enough - too_few > 1 or best is None:
            num_guesses += 1
            tried = enough if enough - too_few == 1 else self._guess(too_few, enough, num_guesses)
            token_ids = self._encoded(tried)
            if token_ids is not None and (len(token_ids) <= self._budget or tried == self._most):
                enough, best = tried, token_ids
            else:
                too_few = tried
            if token_ids is None:
                num_guesses -= 1
                self._around_message = max(_TOKENS_AROUND_MESSAGE, 4 * self._around_message)
            elif enough - too_few > 1:
                self._learn(tried, len(token_ids))
        return enough, best

    @property
    def _is_short(self) -> bool:
        """So short that it probably fits: its messages need not be counted."""
        num_chars = 0
        for message in self._prompt.messages:
            num_chars += sum(map(len, _texts_in(message)))
            if num_chars > self._budget * _PROBABLE_CHARS_PER_TOKEN:
                return False
        return True

    def _guess(self, too_few: int, enough: int, num_guesses: int) -> int:
        """Between what is known to drop too few turns and what drops enough."""
        if num_guesses > _MAX_GUESSES:
            return (too_few + enough) // 2
        guessed = len(self._turns) - self._sizes.num_turns_within(self._budget, self._around_message)
        return min(max(guessed, too_few + 1), enough - 1)

    def _encoded(self, num_dropped: int) -> list[int] | None:
        """None if there are far too many tokens."""
        try:
            return self._encode(_without(self._prompt, self._turns[:num_dropped]))
        except TooManyTokens:
            if num_dropped == self._most:
                raise
            return None

    def _learn(self, num_dropped: int, num_tokens: int) -> None:
        counted, num_messages = self._sizes.of_newest(len(self._turns) - num_dropped)
        if num_messages:
            self._around_message = (num_tokens - counted) / num_messages


def _tokens_of(message: Message, count: Count, max_tokens: int) -> int:
    num_tokens = 0
    for text in _texts_in([value for name, value in message.items() if name != "role"]):
        num_tokens += count(text, max_tokens)
        if num_tokens > max_tokens:
            break
    return num_tokens


def _texts_in(node: Any) -> Iterator[str]:
    """Also the names of fields: templates print calls with their arguments."""
    if isinstance(node, str):
        yield node
    elif isinstance(node, Mapping):
        for name, value in node.items():
            yield from _texts_in([name, value] if name != "text" else value)
    elif isinstance(node, list | tuple):
        for value in node:
            yield from _texts_in(value)


def _turns(messages: Sequence[Message]) -> list[list[int]]:
    """Positions of the messages of each turn, without system messages."""
    turns: list[list[int]] = []
    for position, message in enumerate(messages):
        if message["role"] in _ROLES_NEVER_DROPPED:
            continue
        if message["role"] == "user" or not turns:
            turns.append([])
        turns[-1].append(position)
    return turns


def _without(prompt: ChatPrompt, turns: Sequence[Sequence[int]]) -> ChatPrompt:
    dropped = {position for turn in turns for position in turn}
    return replace(prompt, messages=[m for position, m in enumerate(prompt.messages) if position not in dropped])
