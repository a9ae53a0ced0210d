"""Compiles grammars in their own thread, without blocking the event loop or requests that have no grammar."""

from tis.admission.ticket import Ticket
from tis.engine.errors import GenerationInterrupted
from tis.engine.grammar.compile import CompiledGrammar, GrammarCompiler
from tis.engine.grammar.grammar import Grammar
from tis.engine.grammar.tool_input import input_format_of
from tis.engine.text.markers import ToolFormat
from tis.engine.threads import Bridge
from tis.errors import BadRequest


async def compile_grammar(
    grammar: Grammar,
    compiler: GrammarCompiler | None,
    bridge: Bridge,
    call_format: ToolFormat | None = None,
    ticket: Ticket | None = None,
) -> CompiledGrammar | None:
    """None if the grammar is only about marked calls, which cannot be held to it, or the model has no grammars at all.

    With a ticket it waits its turn among the grammars of all owners, or raises QueueFull.
    """
    if grammar.covers_answer:
        return await _compile(grammar, compiler, bridge, call_format, ticket)
    if compiler is None or not compiler.holds_all_calls(grammar, call_format):
        _require_no_input_formats(grammar)
    if compiler is None or not compiler.holds_marked_calls(grammar, call_format):
        return None
    try:
        return await _compile(grammar, compiler, bridge, call_format, ticket)
    except BadRequest as error:
        if error.param == "model":
            return None
        raise


def _require_no_input_formats(grammar: Grammar) -> None:
    """A grammar that nothing enforces would be a promise that the answer breaks."""
    for tool in grammar.tools:
        if input_format_of(tool.parameters):
            raise BadRequest(
                f"{tool.param}: this model writes calls so that the grammar can be enforced only in a forced call. Set "
                "tool_choice to required or to this tool, or the format to text.",
                param=tool.param,
                code="unsupported_value",
            )


async def _compile(
    grammar: Grammar,
    compiler: GrammarCompiler | None,
    bridge: Bridge,
    call_format: ToolFormat | None,
    ticket: Ticket | None,
) -> CompiledGrammar:
    if compiler is None:
        raise BadRequest(
            f"{grammar.param}: this model does not support structured output.",
            param=grammar.param,
            code="unsupported_value",
        )
    if cached := await bridge.in_pool(lambda: compiler.find(grammar, call_format)):
        return cached
    if ticket is None:
        return await bridge.in_grammar_thread(lambda: compiler.compile(grammar, call_format))
    async with ticket.one_of("grammar_compilers"):
        return await bridge.in_grammar_thread(lambda: compiler.compile(grammar, call_format))


async def compile_for_resume(
    grammar: Grammar | None, compiler: GrammarCompiler | None, bridge: Bridge
) -> CompiledGrammar | None:
    """Compiles the grammar of an answer that another process began. It never waits behind a full queue."""
    if grammar is None:
        return None
    try:
        return await compile_grammar(grammar, compiler, bridge, grammar.call_format)
    except BadRequest as error:
        raise GenerationInterrupted("The answer cannot go on: its grammar cannot be compiled here.") from error
