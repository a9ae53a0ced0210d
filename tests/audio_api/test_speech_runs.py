"""A speech that another process goes on with, event by event, with an engine that hums instead of a model."""

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest
from starlette.types import Message

from tests.faults.mortal_server import until
from tis.admission.admission import Admission
from tis.admission.limits import AdmissionLimits
from tis.audio_api.begin_speech import SoundFile
from tis.audio_api.interrupted_answer import InterruptedAnswer
from tis.audio_api.running_files import RunningFiles
from tis.audio_api.sound_ahead import SoundAhead
from tis.audio_api.speech_run import SpeechRun, resumed_speech
from tis.audio_api.speech_spec import SpeechSpec
from tis.audio_api.spoken_file import SoundPart, require_sayable, spoken_file
from tis.audio_api.transcription_spec import TranscriptionSpec
from tis.chat.run_spec import OtherVersion, Services
from tis.engine.errors import GenerationInterrupted
from tis.engine.voice.spoken import SentenceToSay, VoiceDescription
from tis.errors import BadRequest
from tis.media.audio.protocol import CutRules
from tis.observability.spans import NO_TRACER
from tis.streaming.source import Block

RATE = 16_000
VOICES = {"default": "two speakers"}
SPEC = SpeechSpec(
    model_id="hum",
    revision="one",
    sample_rate=RATE,
    sets_pace=False,
    sentences=["satu", "dua", "tiga", "empat"],
    num_tokens=16,
    voice="default",
    origin="two speakers",
    speed=1.5,
    seed=5,
    form="opus",
    max_seconds=60,
)


class HummingEngine:
    def __init__(
        self,
        hertz: float = 200,
        revision: str = "one",
        voices: Mapping[str, str] = VOICES,
        seconds: float = 1,
    ) -> None:
        self._hertz, self._revision = hertz, revision
        self.begun: list[bool] = []
        self._voices, self._seconds = voices, seconds

    async def describe_voice(self, model_id: str) -> VoiceDescription:
        return VoiceDescription(RATE, list(self._voices), False, self._revision, self._voices)

    async def say(self, model_id: str, sentence: SentenceToSay, ticket: object, *, is_begun: bool) -> Any:
        self.begun.append(is_begun)
        times = np.arange(int(RATE * self._seconds)) / RATE
        return np.sin(times * 6.28 * self._hertz * sentence.seed).astype(np.float32)


def services(engine: HummingEngine) -> Services:
    return cast(Services, _Services(engine))


class _Services:
    def __init__(self, engine: HummingEngine) -> None:
        self.engine = engine
        self.admission = Admission(AdmissionLimits())
        self.tracer = NO_TRACER


def blocks_of(run: SpeechRun | InterruptedAnswer) -> list[Block]:
    async def collect() -> list[Block]:
        return [block async for blocks in run.events() for block in blocks]

    return asyncio.run(collect())


def resumed(states: Sequence[bytes], engine: HummingEngine, *, resume: bool = True) -> SpeechRun | InterruptedAnswer:
    return resumed_speech(SPEC.to_json(), states, services(engine), resume=resume)


@pytest.fixture
def whole() -> list[Block]:
    return blocks_of(resumed([], HummingEngine()))


def test_another_process_goes_on_behind_any_sentence(whole: list[Block]) -> None:
    data = [block.data for block in whole]
    assert len(data) > 4
    for number, block in enumerate(whole[1:], 1):
        if block.resume_state:
            run = resumed([one.resume_state for one in whole[:number]], HummingEngine())
            assert run.is_waiting_to_resume
            assert [one.data for one in blocks_of(run)] == data[number:]
            assert run.outcome == "finished"


def test_a_speech_that_is_over_makes_nothing(whole: list[Block]) -> None:
    run = resumed([one.resume_state for one in whole], HummingEngine())
    assert not run.is_waiting_to_resume and blocks_of(run) == []


def test_other_sound_ends_the_stream_instead_of_joining_two_voices(whole: list[Block]) -> None:
    states = [one.resume_state for one in whole[:3]]
    with pytest.raises(GenerationInterrupted, match="makes other sound"):
        blocks_of(resumed(states, HummingEngine(hertz=333)))
    with pytest.raises(GenerationInterrupted, match="hum is another model now"):
        blocks_of(resumed(states, HummingEngine(revision="two")))
    for voices in ({"default": "three speakers"}, {"another": "two speakers"}):
        with pytest.raises(GenerationInterrupted, match="default is another voice now"):
            blocks_of(resumed(states, HummingEngine(voices=voices)))


def test_sound_that_is_shorter_than_what_readers_have_is_no_finished_file(whole: list[Block]) -> None:
    run = resumed([one.resume_state for one in whole[:-1]], HummingEngine(seconds=0.1))
    with pytest.raises(GenerationInterrupted, match="makes other sound"):
        blocks_of(run)


def test_a_resumed_speech_that_is_cancelled_at_once_counts_what_readers_have(whole: list[Block]) -> None:
    run = resumed([one.resume_state for one in whole[:-1]], HummingEngine())
    run.cancel()
    [end] = blocks_of(run)
    assert end.data == whole[-1].data.replace(b"}}", b'},"cancelled":true}')


def test_what_cannot_be_read_or_may_not_go_on_is_interrupted(whole: list[Block]) -> None:
    states = [one.resume_state for one in whole[:3]]
    older = SPEC.to_json().replace(b'"version": 2', b'"version": 1')
    cases = [
        resumed_speech(older, states, services(HummingEngine()), resume=True),
        resumed([*states, b'["unknown"]'], HummingEngine()),
        resumed([*states, b""], HummingEngine()),  # an event without its record
        resumed(states, HummingEngine(), resume=False),
    ]
    for run in cases:
        with pytest.raises(GenerationInterrupted):
            blocks_of(run)


def test_a_transcription_whose_windows_an_older_version_cut_is_interrupted() -> None:
    spec = TranscriptionSpec(
        model_id="ears",
        task="transcribe",
        file="digest",
        sample_rate=RATE,
        window_seconds=30,
        rules=CutRules(),
        language=None,
        languages=[],
        language_names={},
        prompt="",
        temperatures=[0],
        with_words=False,
        with_logprobs=False,
        with_segments=False,
    )
    assert TranscriptionSpec.from_json(json.loads(spec.to_json())) == spec
    with pytest.raises(OtherVersion):
        TranscriptionSpec.from_json({**json.loads(spec.to_json()), "version": 1})


def test_a_full_queue_stops_no_speech_that_has_begun() -> None:
    engine = HummingEngine()
    blocks_of(resumed([], engine))
    assert engine.begun == [True] * 4
    new = HummingEngine()
    ticket = Admission(AdmissionLimits()).ticket("somebody")
    blocks_of(SpeechRun(SPEC, services(new), ticket))
    assert new.begun == [False, True, True, True]


def test_the_speed_is_in_the_sound_and_in_its_usage(whole: list[Block]) -> None:
    slow = resumed_speech(replace(SPEC, speed=1.0).to_json(), [], services(HummingEngine()), resume=True)
    assert b'"output_tokens":230,' in blocks_of(slow)[-1].data  # four seconds, and three pauses of 0.2
    fast = int(whole[-1].data.partition(b'"output_tokens":')[2].partition(b",")[0])
    assert fast == pytest.approx(230 / 1.5, abs=8)


@pytest.mark.parametrize("breaks", [True, False])
def test_a_file_that_breaks_off_has_no_last_chunk_and_a_server_that_stops_waits_for_it(*, breaks: bool) -> None:
    async def sent() -> list[tuple[bytes, bool]]:
        files, held, messages = RunningFiles(), asyncio.Event(), list[Message]()

        async def data() -> AsyncGenerator[SoundPart, None]:
            yield SoundPart(b"", 0)
            await held.wait()
            if breaks:
                raise BadRequest("too long")

        async def send(message: Message) -> None:
            messages.append(message)

        ahead = SoundAhead(b"first", data(), Admission().ticket("somebody"), 60)
        sending = asyncio.create_task(SoundFile(files, ahead, "audio/mpeg").stream_response(send))
        await until(lambda: len(messages) == 2)
        waiting = asyncio.create_task(files.wait_until_idle(30))
        await files.wait_until_idle(0.01)
        assert not waiting.done() and len(messages) == 2
        held.set()
        await sending
        await asyncio.wait_for(waiting, 1)
        return [(message["body"], message["more_body"]) for message in messages[1:]]

    assert asyncio.run(sent()) == [(b"first", True), *([] if breaks else [(b"", False)])]


def test_sound_is_sent_while_a_later_sentence_is_made_and_who_leaves_asks_for_no_more() -> None:
    class HeldEngine(HummingEngine):
        async def say(self, model_id: str, sentence: SentenceToSay, ticket: object, *, is_begun: bool) -> Any:
            samples = await super().say(model_id, sentence, ticket, is_begun=is_begun)
            if sentence.text == "tiga":
                await asyncio.Event().wait()
            return samples

    async def leave() -> list[bool]:
        engine = HeldEngine()
        spec = replace(SPEC, form="pcm", speed=1.0)
        parts = spoken_file(spec, services(engine).engine, None, asyncio.Event())
        assert (await asyncio.wait_for(anext(parts), 20)).data
        assert (await asyncio.wait_for(anext(parts), 20)).num_samples > 2 * RATE
        await parts.aclose()
        await asyncio.sleep(0.05)
        return engine.begun

    assert len(asyncio.run(leave())) < len(SPEC.sentences)


def test_what_is_surely_too_long_is_refused_by_its_pauses_and_its_tokens() -> None:
    slow = replace(SPEC, sentences=["a"] * 76, speed=0.25, num_tokens=0)
    require_sayable(slow, 0)  # 75 pauses of 0.8 s
    with pytest.raises(BadRequest, match="longer than 60 seconds"):
        require_sayable(replace(slow, sentences=["a"] * 77), 0)
    tokens = replace(SPEC, sentences=["a"], sets_pace=True, speed=4, num_tokens=3000)
    require_sayable(tokens, 0.02)
    with pytest.raises(BadRequest, match="longer than 60 seconds"):
        require_sayable(replace(tokens, num_tokens=3001), 0.02)
