"""Many windows in one batch: faults stay with their window, places come free, text and words come out."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.engine.speech.hearing import PLAIN, heard, load, prepared
from tests.engine.speech.models import save_whisper, sound
from tis.engine.errors import WrongTask
from tis.engine.local_engine import EngineLimits, LocalEngine
from tis.engine.models.catalogue import CatalogueEntry, entry_of
from tis.engine.models.echo import load_echo
from tis.engine.models.loading import LoadOptions
from tis.engine.speech.heard import HeardWindow, HearingOptions, SpeechWindow
from tis.engine.speech.load_speech import load_speech
from tis.engine.speech.loaded_speech import LoadedSpeech
from tis.engine.speech.speech_request import SpeechRequest
from tis.errors import BadRequest, GenerationFailed

pytestmark = pytest.mark.model

LIVELY = HearingOptions(temperatures=(2.0,))  # so hot that a random model does not repeat itself


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_whisper(tmp_path_factory.mktemp("whisper"))


@pytest.fixture(scope="module")
def loaded(folder: Path) -> LoadedSpeech:
    return load(folder)


def text_of(window: HeardWindow) -> str:
    return "".join(segment.text for segment in window.segments)


def test_a_window_that_fails_fails_alone(loaded: LoadedSpeech) -> None:
    windows = [prepared(loaded, sound(seed)) for seed in range(4)]
    broken = replace(windows[1], features=windows[1].features * float("nan"), digest=b"broken")
    misshapen = replace(windows[2], features=windows[2].features[:7], digest=b"misshapen")
    good = heard(loaded, [windows[0], windows[3]])
    first, nan, shape, last = heard(loaded, [windows[0], broken, misshapen, windows[3]])
    assert [first.tokens, last.tokens] == [one.tokens for one in good]
    assert isinstance(nan, GenerationFailed) and "NaN" in nan.message and isinstance(shape, GenerationFailed)


def test_a_cancelled_window_frees_its_place_at_the_next_step(loaded: LoadedSpeech) -> None:
    uses: list[float] = []

    def between(step: int, runner: Any, requests: list[SpeechRequest]) -> None:
        uses.append(runner.cache_use)
        if step == 5:
            requests[1].cancel()

    windows = [prepared(loaded, sound(seed)) for seed in range(2)]
    [alone] = heard(loaded, windows[:1])
    first, cancelled = heard(loaded, windows, between)
    assert first.tokens == alone.tokens and isinstance(cancelled, asyncio.CancelledError)
    assert uses[5] == 2 * uses[6]


def test_more_windows_than_places_wait_their_turn(loaded: LoadedSpeech) -> None:
    windows = [prepared(loaded, sound(seed % 3)) for seed in range(11)]
    made = heard(loaded, windows)
    assert [one.tokens for one in made[:3]] == [one.tokens for one in made[3:6]] == [one.tokens for one in made[6:9]]


def test_a_doubtful_window_is_heard_again_and_silence_gives_nothing(loaded: LoadedSpeech, monkeypatch: Any) -> None:
    from tis.engine.speech.token_rules import TokenRules

    options = replace(PLAIN, temperatures=(0.0, 0.4, 1.0))
    [doubtful] = heard(loaded, [prepared(loaded, sound(1), options)])
    assert doubtful.avg_logprob < -1  # a random model is never sure
    assert doubtful.temperature == 1.0 and doubtful.num_tokens > len(doubtful.tokens)
    monkeypatch.setattr(TokenRules, "no_speech_prob", lambda self, logits: 0.9)
    [silent] = heard(loaded, [prepared(loaded, sound(1), options)])
    assert silent.tokens == () and silent.temperature == 0.0
    assert loaded.text.heard(silent, prepared(loaded, sound(1))).segments == ()


def test_text_words_and_tokens_of_a_window(loaded: LoadedSpeech) -> None:
    options = replace(LIVELY, language="id", with_words=True, with_logprobs=True)
    for seed in (1, 2):
        window = prepared(loaded, sound(seed, 1.7), options)
        [made] = heard(loaded, [window])
        transcript = loaded.text.heard(made, window)
        assert transcript.segments and transcript.language == "id"
        assert tuple(token for one in transcript.segments for token in one.token_ids if token < 320) == tuple(
            token for token in made.tokens if token < 320
        )
        before = 0.0
        for segment in transcript.segments:
            assert before <= segment.start <= segment.end <= 1.7
            assert "".join(word.text for word in segment.words) == segment.text
            assert "".join(token.text for token in segment.tokens) == segment.text
            assert b"".join(token.utf8 for token in segment.tokens).decode(errors="replace") == segment.text
            times = [time for word in segment.words for time in (word.start, word.end)]
            assert times == sorted(times) and segment.start <= times[0] and times[-1] <= segment.end
            before = segment.end


def with_engine(folder: Path, ask: Any) -> Any:
    entries = [entry_of([], str(folder)), CatalogueEntry("chat", "echo")]

    def load_any(entry: CatalogueEntry, report: Any) -> Any:
        if entry.task == "chat":
            return load_echo(entry.repo)
        return load_speech(entry, LoadOptions(device_map="cpu"), report)

    async def run() -> Any:
        engine = LocalEngine(entries, load_any, EngineLimits(warms_up=True))
        await engine.open()
        try:
            return await ask(engine, entries[0].id)
        finally:
            await engine.close()

    return asyncio.run(run())


def test_an_engine_hears_detects_and_refuses(folder: Path, loaded: LoadedSpeech) -> None:
    async def ask(engine: LocalEngine, ear: str) -> None:
        described = await engine.describe_speech(ear)
        assert described.sample_rate == 16_000 and described.languages["id"] == "indonesian"
        samples = sound(1)
        language = await engine.detect_language(ear, samples)
        windows = [SpeechWindow(sound(seed), LIVELY) for seed in (1, 2)]
        first, second = await asyncio.gather(*(engine.hear(ear, window) for window in windows))
        assert first.language == language and text_of(first) != text_of(second) and first.num_tokens > 0
        silent = SpeechWindow(np.zeros(16_000, dtype=np.float32))
        assert await engine.hear(ear, silent) == HeardWindow(None, (), 0)
        with pytest.raises(BadRequest, match="language 'xx'"):
            await engine.hear(ear, SpeechWindow(samples, HearingOptions(language="xx")))
        with pytest.raises(WrongTask):
            await engine.hear("chat", windows[0])
        with pytest.raises(WrongTask):
            await engine.template_variables(ear)
        waiting = asyncio.create_task(engine.hear(ear, windows[0]))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        status = next(one for one in engine.statuses if one.id == ear)
        assert status.state == "ready" and status.footprint and status.footprint.cache_bytes > 0
        await engine.unload(ear)

    with_engine(folder, ask)


def test_a_folder_of_a_whisper_is_for_transcription(folder: Path) -> None:
    assert entry_of([], str(folder)).task == "transcription"
