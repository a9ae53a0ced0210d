"""Runs with reasoning and calls: streamed, folded, and resumed by another process."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.chat.parse.parsing import TOOLS, cut, parser_config
from tis.admission.admission import RESUMED, Admission
from tis.admission.limits import AdmissionLimits
from tis.admission.ticket import Ticket
from tis.chat.parse.config import ParserConfig
from tis.chat.part_reader import PartReader
from tis.chat.part_reader import parser_config as parser_config_of
from tis.chat.parts import ReasoningDelta, TextDelta
from tis.chat.resume import resume_with
from tis.chat.run import Run
from tis.chat.run_log import RunLog, decode_piece, encode_piece
from tis.chat.run_spec import RunSpec, Services
from tis.engine.answer import FinishReason, Piece, TokenLogprob
from tis.engine.errors import GenerationInterrupted
from tis.engine.local_engine import EngineLimits, LocalEngine
from tis.engine.models.catalogue import CatalogueEntry
from tis.engine.models.echo import load_echo
from tis.engine.prompt import ChatPrompt, RawPrompt
from tis.engine.resumable_request import ResumableRequest
from tis.engine.sampling.params import SamplingParams
from tis.http.api_keys import ApiKeys, CallLimits
from tis.http.call_counts import LocalCounts
from tis.http.call_rates import CallRates
from tis.mcp_client.client import McpClient
from tis.mcp_client.limits import McpLimits
from tis.media.loader import MediaLimits, MediaLoader
from tis.openai_api.routes import DIALECTS
from tis.openai_api.wire.chat_writer import DIALECT, DONE, ChatWriter, chat_writer_state, fold
from tis.openai_api.wire.completion_writer import DIALECT as COMPLETION
from tis.openai_api.wire.completion_writer import CompletionWriter, completion_writer_state
from tis.streaming.source import Block, Source

CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Bandung", "days": "3"}}\n</tool_call>'
LONG_CALL = '<tool_call>{"name": "now", "arguments": {"text": "%s", "more": [1]}}</tool_call>' % ("Halo! " * 12)
ANSWERS = [
    f"<think>\nHm.\n\n</think>\n\nSo: \n\n{CALL}\n{LONG_CALL}\n",
    "<think>\nHm.\n</think>\n\n",
    "Halo <tool_call> and <tool_call>\n{no} \n",
    f"{CALL} and on",
    "  Halo  ",
]
CASES = [
    *(("hermes", text, {}) for text in ANSWERS),
    *(("hermes", ANSWERS[3], asked) for asked in ({"n": 2}, {"top_logprobs": 0}, {"stop": ["\n}", "Bandung"]})),
    *(("hermes", ANSWERS[0], {"max_tokens": length}) for length in (8, 70)),
    ("hermes", ANSWERS[0], {"hidden": True, "n": 2}),
    ("json", '{"name": "now", "parameters": {"a": 1}}', {}),
    ("mistral", '[TOOL_CALLS]now[ARGS]{"a": 1}[TOOL_CALLS]now[ARGS]{"a": ', {}),
    (
        "glm",
        f"<think>Hm</think>\n<tool_call>now\n<arg_key>a</arg_key>\n<arg_value>{'Halo! ' * 12}</arg_value>\n"
        "</tool_call>\n<tool_call>now</tool_call>",
        {},
    ),
    (
        "deepseek_v3",
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>now\n```json\n{}\n```"
        "<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
        {},
    ),
    (
        "harmony",
        "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>commentary to=functions.now "
        '<|constrain|>json<|message|>{"a": [1, 2], "b": "c"}<|call|>',
        {},
    ),
    ("harmony", "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>Halo", {}),
]


@asynccontextmanager
async def echo_desk(tool_format: str = "hermes") -> AsyncIterator[LocalEngine]:
    repo = f"echo?thinks=1&tool_format={tool_format}"
    opened = LocalEngine([CatalogueEntry("m", repo)], lambda entry, report: load_echo(entry.repo), EngineLimits())
    await opened.open()
    try:
        yield opened
    finally:
        await opened.close()


def services_of(engine: LocalEngine, media: MediaLoader) -> Services:
    return Services(engine, media, McpClient(McpLimits()), nothing_to_wait_for)


async def run_of(
    engine: LocalEngine, text: str, *, hidden: bool = False, ticket: Ticket | None = None, **asked: Any
) -> Run:
    prompt = ChatPrompt([{"role": "user", "content": text}], tools=[{}], emit_markers=True)
    prepared = await engine.prepare("m", prompt, asked)
    state = chat_writer_state("m", with_usage=True, may_call=True, hides_reasoning=hidden)
    parser = parser_config_of(prepared, state["id"], TOOLS)
    spec = RunSpec(DIALECT, state["id"], state, prepared.resumable, parser)
    services = services_of(engine, MediaLoader(MediaLimits()))
    return Run(spec, services, ChatWriter(state), prepared=prepared, ticket=ticket)


async def blocks_of(source: Source) -> list[Block]:
    return [block async for blocks in source.events() for block in blocks]


def by_choice(blocks: Sequence[Block]) -> dict[int | str, list[bytes]]:
    """How choices take turns may change."""
    found: dict[int | str, list[bytes]] = {}
    for block in blocks:
        choices = [] if block.data == DONE else json.loads(block.data)["choices"]
        found.setdefault(choices[0]["index"] if choices else "end", []).append(block.data)
    return found


def begins_of_pieces(blocks: Sequence[Block]) -> list[int]:
    """What begins together is kept together, and so is what ends it."""
    return [at for at, block in enumerate(blocks) if block.resume_state.startswith(b"[")]


async def nothing_to_wait_for() -> bool:
    return True


async def nothing_attached(names: Any) -> Mapping[str, bytes]:
    return {}


@pytest.mark.anyio
@pytest.mark.parametrize(("tool_format", "text", "asked"), CASES)
async def test_another_process_resumes_after_any_block_with_the_same_answer(
    tool_format: str, text: str, asked: dict[str, Any]
) -> None:
    media = MediaLoader(MediaLimits())
    async with echo_desk(tool_format) as first, echo_desk(tool_format) as second:
        resume_source = resume_with(services_of(second, media), DIALECTS, resume=True)
        source = await run_of(first, text, **asked)
        whole = await blocks_of(source)
        for kept in begins_of_pieces(whole):
            marks = [block.resume_state for block in whole[:kept]]
            rest = await blocks_of(resume_source(source.request, marks, nothing_attached))
            assert by_choice([*whole[:kept], *rest]) == by_choice(whole)
    await media.close()


@pytest.mark.anyio
async def test_a_resumed_run_takes_a_ticket_and_is_not_refused() -> None:
    admission = Admission(AdmissionLimits(max_prompt_tokens=1))
    media = MediaLoader(MediaLimits())
    async with echo_desk() as first, echo_desk() as second:
        source = await run_of(first, "Halo, dunia")
        whole = await blocks_of(source)
        services = replace(services_of(second, media), admission=admission)
        others = admission.ticket("other")
        others.queue(1)
        resumed = resume_with(services, DIALECTS, resume=True)(
            source.request, [whole[0].resume_state], nothing_attached
        )
        rest: list[Block] = []
        async for blocks in resumed.events():
            rest += blocks
            assert admission.used("prompt_tokens", RESUMED) == len("Halo, dunia")
        assert by_choice([whole[0], *rest]) == by_choice(whole)
        assert admission.used("prompt_tokens") == 1 and admission.num_in("generating") == 0
    await media.close()


@pytest.mark.anyio
async def test_what_another_process_makes_is_metered_to_the_key_that_began_the_run() -> None:
    counts, keys, media = LocalCounts(), ApiKeys(["sk-one"]), MediaLoader(MediaLimits())
    rates = CallRates(CallLimits(), counts)
    [name] = keys.names
    admission = Admission(meter_of=lambda caller: rates.meter_of_resumed(caller, keys))
    async with echo_desk() as first, echo_desk() as second:
        ticket = Admission().ticket("somebody", rates.meter(keys.find("sk-one"), "192.0.2.1"))
        source = await run_of(first, "Halo, dunia", ticket=ticket)
        assert f'"caller": "{name}"'.encode() in source.request and b"sk-one" not in source.request
        source.hold_ticket()
        whole = await blocks_of(source)
        made = counts.totals_here(name)
        assert made.generated_tokens == len("Halo, dunia")
        kept = begins_of_pieces(whole)[4]
        marks = [block.resume_state for block in whole[:kept]]
        num_kept = sum(mark.count(b"[0,") for mark in marks)
        services = replace(services_of(second, media), admission=admission)
        resume_source = resume_with(services, DIALECTS, resume=True)
        await blocks_of(resume_source(source.request, marks, nothing_attached))
        assert num_kept == 3
        resumed = counts.totals_here(name)
        made.add({"generated_tokens": len("Halo, dunia") - num_kept})
        assert resumed == made
        assert not counts.running
        unknown = source.request.replace(name.encode(), b"env-7")
        await blocks_of(resume_source(unknown, marks, nothing_attached))
        assert counts.totals_here(name) == resumed
    await media.close()


def pieces_of(texts: Sequence[str], finish: FinishReason, logprobs: bool) -> list[Piece]:
    entry = TokenLogprob(1, "x", b"x", 0.0)
    made = [Piece(0, text, (1,), (entry,) if logprobs else ()) for text in texts]
    return [*made[:-1], replace(made[-1], finish=finish)]


REQUEST = ResumableRequest("m", "r", [1], SamplingParams(), seed=1)
TEXTS = st.sampled_from(ANSWERS) | st.lists(
    st.sampled_from(["<think>", "</think>", CALL, "<tool_call>", "\n", "Halo", '{"name": "now"', "}"]), max_size=8
).map("".join)


def events_of(pieces: Sequence[Piece], config: ParserConfig) -> tuple[list[bytes], RunLog]:
    state = chat_writer_state("m", with_usage=False)
    log = RunLog(ChatWriter(state | {"id": "chatcmpl-1", "created": 1}), None)
    log.begin_round(REQUEST, config)
    blocks = [*log.add("begun", 1), *(block for piece in pieces for block in log.add_piece(piece, 0))]
    return [block.data for block in blocks], log


@given(TEXTS, st.lists(st.integers(min_value=0), max_size=20), st.sampled_from(["stop", "length"]), st.booleans())
def test_the_stream_folded_is_the_answer_read_whole(
    text: str, at: list[int], finish: FinishReason, logprobs: bool
) -> None:
    def folded(texts: Sequence[str]) -> tuple[Any, int]:
        events, log = events_of(pieces_of(texts, finish, logprobs), parser_config())
        return json.loads(fold(events, b"{}"))["choices"][0], log.usage.num_made

    (whole, _), (streamed, num_tokens) = folded([text]), folded(cut(text, at))
    assert streamed["message"] == whole["message"] and streamed["finish_reason"] == whole["finish_reason"]
    assert num_tokens == len(cut(text, at))
    if logprobs:
        assert len(streamed["logprobs"]["content"]) == num_tokens
    has_calls = "tool_calls" in whole["message"]
    assert whole["finish_reason"] == ("tool_calls" if has_calls and finish == "stop" else finish)


def test_each_part_has_its_own_tokens_and_log_probabilities() -> None:
    """A marker belongs to the reasoning that it opens or closes, and no text of the answer contains one."""
    numbers = {token: number for number, token in enumerate(["<think>", "Hm", "</think>", "\n\n", "Yes", "!"], 1)}
    marker_ids = {marker: numbers[marker] for marker in ("<think>", "</think>")}
    pieces = [
        Piece(0, "Hm", (1, 2), _logprobs("<think>", "Hm"), markers=((0, "<think>"),)),
        Piece(0, "\n\nYes", (3, 4, 5), _logprobs("</think>", "\n\n", "Yes"), markers=((0, "</think>"),)),
        Piece(0, "!", (6,), _logprobs("!"), finish="stop"),
    ]
    reader = PartReader(parser_config(marked=True), 0, marker_ids)
    parts = [part for piece in pieces for part in reader.read(piece)]
    texts = [part for part in parts if isinstance(part, TextDelta | ReasoningDelta)]
    assert texts == parts
    found = [(type(part), part.text, list(part.token_ids)) for part in texts]
    assert found == [
        (ReasoningDelta, "Hm", [1, 2]),
        (ReasoningDelta, "", [3]),
        (TextDelta, "Yes", [4, 5]),
        (TextDelta, "!", [6]),
    ]
    for part in texts:
        assert [one.token_id for one in part.logprobs] == list(part.token_ids)
    assert reader.num_reasoning == 3


def _logprobs(*tokens: str) -> tuple[TokenLogprob, ...]:
    numbers = ["<think>", "Hm", "</think>", "\n\n", "Yes", "!"]
    return tuple(TokenLogprob(numbers.index(token) + 1, token, token.encode(), -0.5) for token in tokens)


@pytest.mark.parametrize(
    "piece",
    [
        Piece(0, 'say "hi"\\ \u2028 😀 \ud800', (1, 2)),
        Piece(3, "", (), finish="cancelled"),
        Piece(0, "ab", (7,), (TokenLogprob(7, "ab", b"ab", -0.25, (TokenLogprob(8, "x", b"\xff", -2.0),)),), "stop"),
        Piece(1, "ab", (7, 9), markers=((1, "</think>"),)),
    ],
)
def test_the_record_of_a_piece_has_everything(piece: Piece) -> None:
    assert decode_piece(json.loads(encode_piece(piece, 5))) == (piece, 5)


def test_cached_tokens_of_a_list_are_those_of_each_prompt_also_after_a_resume() -> None:
    """Another process finds other tokens in its cache, and those of the prompts that are over count on."""
    requests = [replace(REQUEST, params=SamplingParams(n=2)), REQUEST, REQUEST]

    def new_log() -> RunLog:
        state = completion_writer_state("m", n=1, with_usage=True, echoes=(), prompt_only=False)
        log = RunLog(CompletionWriter(state), None)
        log.begin_round(requests[0], None, requests[1:])
        return log

    first, second = new_log(), new_log()
    blocks = [*first.add("begun", 4)]
    for piece, num_cached in (
        (Piece(0, "a", (1,)), 16),
        (Piece(1, "a", (1,), finish="stop"), 16),
        (Piece(2, "a", (1,), finish="stop"), 32),
        (Piece(0, "b", (1,), finish="stop"), 16),
    ):
        blocks += first.add_piece(piece, num_cached)
    assert first.usage.num_cached == 48
    second.replay([block.resume_state for block in blocks])
    second.add_piece(Piece(3, "a", (1,), finish="stop"), 8)
    assert second.usage.num_cached == 56


@pytest.mark.anyio
async def test_the_loop_turns_between_pieces_with_log_probabilities_of_a_prompt() -> None:
    turns, of_pieces = 0, []

    async def count_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async with echo_desk() as engine:
        [prepared] = await engine.prepare_raw("m", [RawPrompt("a" * 2000)], {"max_tokens": 1}, prompt_logprobs=20)
        state = completion_writer_state(
            "m", n=1, with_usage=False, echoes=[{"text": "a" * 2000, "offsets": list(range(2000))}], prompt_only=True
        )
        spec = RunSpec(COMPLETION, state["id"], state, prepared.resumable)
        services = services_of(engine, MediaLoader(MediaLimits()))
        ticket = Admission(AdmissionLimits()).resumed_ticket()
        run = Run(spec, services, CompletionWriter(state), prepared=prepared, ticket=ticket)
        run.hold_ticket()
        add_piece = run._log.add_piece

        def add_and_note(piece: Piece, num_cached: int) -> Sequence[Block]:
            if piece.prompt_logprobs:
                of_pieces.append(turns)
            return add_piece(piece, num_cached)

        run._log.add_piece = add_and_note  # type: ignore[method-assign]
        counting = asyncio.create_task(count_turns())
        await blocks_of(run)
        counting.cancel()
    assert len(of_pieces) > 10 and len(set(of_pieces)) == len(of_pieces)


@pytest.mark.anyio
@pytest.mark.parametrize(
    "request_",
    [
        b"",
        b"[]",
        b'{"kind": "chat", "asked": {}, "chunks": {}}',
        b'{"kind": "response", "asked": {}, "response": {}, "reading": null}',
        b'{"version": 3, "dialect": "chat"}',
    ],
)
async def test_a_session_of_another_version_ends_as_interrupted(request_: bytes) -> None:
    async with echo_desk() as engine:
        media = MediaLoader(MediaLimits())
        resume_source = resume_with(services_of(engine, media), DIALECTS, resume=True)
        for states in ([], [b"roles"], [b"roles", b"[0,[104],null,0]"], [b'[[0,"h",[104],0]]']):
            source = resume_source(request_, states, nothing_attached)
            with pytest.raises(GenerationInterrupted, match="cannot read the stored part"):
                await blocks_of(source)
            assert json.loads(source.failure(GenerationInterrupted("x")).data)["error"]["code"]
        await media.close()
