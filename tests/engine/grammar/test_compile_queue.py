"""Many requests for grammars at once: the queue of the compiling thread is bounded, and cached grammars skip it."""

import asyncio
import threading
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import Mock

import pytest
from llguidance import LLTokenizer

from tis.admission.admission import Admission
from tis.engine.grammar.compile import CompiledGrammar, GrammarCompiler, RejectedGrammars
from tis.engine.grammar.compile_queue import compile_for_resume, compile_grammar
from tis.engine.grammar.compile_sandbox import CompileSandbox, TooExpensive
from tis.engine.grammar.grammar import Grammar
from tis.engine.threads import Bridge
from tis.errors import BadRequest, QueueFull

pytestmark = pytest.mark.anyio


@dataclass
class SlowCompiler:
    """Stands in for `GrammarCompiler`: compiles once `go` is set, and finds what it has compiled."""

    go: threading.Event = field(default_factory=threading.Event)
    made: list[str] = field(default_factory=list)

    def find(self, grammar: Grammar, call_format: Any) -> Any:
        return grammar.value if grammar.value in self.made else None

    def compile(self, grammar: Grammar, call_format: Any) -> Any:
        self.go.wait(20)
        self.made.append(grammar.value)
        return grammar.value


def regex(value: Any, param: str = "guided_regex") -> Grammar:
    return Grammar("regex", value, param=param)


async def test_a_full_queue_rejects_further_grammars() -> None:
    slow: Any = SlowCompiler(made=["cached"])
    bridge, admission = Bridge(), Admission()

    def compiling(text: str, owner: str = "ada") -> "asyncio.Task[CompiledGrammar | None]":
        return asyncio.create_task(compile_grammar(regex(text), slow, bridge, ticket=admission.ticket(owner)))

    tasks = [compiling(str(n)) for n in range(10)]
    [rejected], waiting = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    with pytest.raises(QueueFull) as error:
        await rejected
    assert error.value.status == 429 and error.value.retry_after and len(waiting) == 9
    cached: Any = await compile_grammar(regex("cached"), slow, bridge, ticket=admission.ticket("ada"))
    assert cached == "cached"  # though the thread is busy
    resumed = asyncio.create_task(compile_for_resume(regex("begun before"), slow, bridge))
    other = compiling("of another key", "bob")
    while admission.budgets["grammar_compilers"].num_waiting < 9:  # noqa: ASYNC110
        await asyncio.sleep(0)
    slow.go.set()
    assert len(await asyncio.gather(*waiting)) == 9
    answers: Any = [await resumed, await other]
    later: Any = await compiling("one more")
    assert ([*answers], later) == (["begun before", "of another key"], "one more")
    # Behind the one that was being compiled, the resumed one, and at most one of the other owner in turn.
    assert slow.made.index("of another key") <= len(["cached", "being compiled", "begun before", "in turn"])
    assert admission.used("grammar_compilers") == 0
    bridge.close()


@pytest.fixture
def tiny() -> GrammarCompiler:
    return GrammarCompiler(lambda: LLTokenizer("byte"), 257, "hermes", {})


class TestRejected:
    async def test_a_rejected_grammar_is_rejected_at_once_the_next_time(self, tiny: GrammarCompiler) -> None:
        bridge, busy = Bridge(), threading.Event()
        with pytest.raises(BadRequest) as first:
            await compile_grammar(regex("("), tiny, bridge)
        blocking = asyncio.create_task(bridge.in_grammar_thread(lambda: busy.wait(20)))
        await asyncio.sleep(0)
        with pytest.raises(BadRequest) as second:
            await compile_grammar(regex("("), tiny, bridge)
        busy.set()
        await blocking
        bridge.close()
        errors = [(one.value.message, one.value.param, one.value.code) for one in (first, second)]
        assert errors[0] == errors[1] and first.value is not second.value

    async def test_a_grammar_that_was_too_slow_is_tried_again_soon(self) -> None:
        class SlowOnce(CompileSandbox):
            was_slow = False

            def compile(self, text: str, seconds: float | None = None) -> str:
                if not self.was_slow:
                    self.was_slow = True
                    raise TooExpensive
                return ""

        clock = Mock(return_value=0.0)
        compiler = GrammarCompiler(
            lambda: LLTokenizer("byte"), 257, "hermes", {}, SlowOnce(), RejectedGrammars(now=clock)
        )
        for slow_at in (0.0, 29.0):
            clock.return_value = slow_at
            with pytest.raises(BadRequest) as error:
                compiler.compile(regex("a"))
            assert error.value.code == "schema_too_large"
            with pytest.raises(BadRequest):
                compiler.compile(regex("("))
        clock.return_value = 31.0
        assert compiler.compile(regex("a"))
        with pytest.raises(BadRequest):
            compiler.find(regex("("))

    def test_a_cached_grammar_names_the_place_in_this_request(self, tiny: GrammarCompiler) -> None:
        for param in ("guided_regex", "structured_outputs.regex"):
            compiled = tiny.compile(regex("a+", param))
            assert compiled.grammar.param == param

    async def test_the_error_names_the_place_in_this_request(self, tiny: GrammarCompiler) -> None:
        bridge = Bridge()
        for param in ("guided_regex", "structured_outputs.regex"):
            with pytest.raises(BadRequest) as error:
                await compile_grammar(regex("[", param), tiny, bridge)
            assert error.value.param == param
        bridge.close()
