"""Tokens, languages and features equal those of Transformers, alone and in company."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers

from tests.engine.speech.hearing import PLAIN, heard, load, prepared
from tests.engine.speech.models import SAMPLE_RATE, extractor, save_whisper, sound
from tis.engine.batching.limits import BatchLimits
from tis.engine.speech.heard import HearingOptions
from tis.engine.speech.log_mel import LogMel

pytestmark = pytest.mark.model

SOUNDS = [sound(*one) for one in ((1, 2.0), (2, 0.7), (3, 1.3), (4, 0.25))]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_whisper(tmp_path_factory.mktemp("whisper"))


@pytest.fixture(autouse=True)
def nothing_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """Random tokens are broken characters, which repeat each other."""
    monkeypatch.setattr("tis.engine.speech.running_window.repeats_itself", lambda text: False)


@cache
def official(folder: Path) -> Any:
    return transformers.WhisperForConditionalGeneration.from_pretrained(folder).eval()


@cache
def expected(
    folder: Path, at: int, options: HearingOptions, language: str | None = None, task: str | None = None
) -> list[int]:
    """What `generate()` writes of a sound behind its prompt, without the end."""
    model, more = official(folder), {"language": language, "task": task}
    words = transformers.WhisperTokenizer.from_pretrained(folder)
    made = transformers.WhisperFeatureExtractor.from_pretrained(folder)
    features = made(SOUNDS[at], sampling_rate=SAMPLE_RATE, return_tensors="pt").input_features
    if options.prompt:
        first, *others = words.get_prompt_ids(options.prompt)
        more["prompt_ids"] = torch.tensor([first, *others[-(model.config.max_target_positions // 2 - 1) :]])
    ids: list[int] = model.generate(
        features, return_timestamps=options.with_times, force_unique_generate_call=True, temperature=0.0, **more
    )[0].tolist()
    start = ids.index(model.generation_config.decoder_start_token_id)
    num_told = 1 + 2 * bool(model.generation_config.is_multilingual) + (not options.with_times)
    written = ids[start + num_told :]
    return written[: written.index(words.eos_token_id)] if words.eos_token_id in written else written


@pytest.mark.parametrize(
    "options",
    [
        PLAIN,
        replace(PLAIN, with_times=False),
        replace(PLAIN, language="en", task="translate"),
        replace(PLAIN, prompt="Kopi Gayo, kata saya"),
        replace(PLAIN, prompt="kopi dari Aceh " * 20, with_times=False),
    ],
    ids=["times", "plain", "translate", "prompt", "long prompt"],
)
def test_tokens_are_those_of_generate_alone_and_in_company(folder: Path, options: HearingOptions) -> None:
    wanted = [expected(folder, at, options, options.language, options.task) for at in range(len(SOUNDS))]
    for kernels in (True, False):
        loaded = load(folder, batch=BatchLimits(native_kernels=kernels))
        together = heard(loaded, [prepared(loaded, one, options) for one in SOUNDS])
        assert [list(one.tokens) for one in together] == wanted
        [alone] = heard(loaded, [prepared(loaded, SOUNDS[1], options)])
        assert list(alone.tokens) == wanted[1]
    assert len({tuple(one) for one in wanted}) > 2  # else the comparison says little


def test_the_language_is_that_of_transformers(folder: Path) -> None:
    loaded = load(folder)
    model = official(folder)
    codes = {token_id: token.strip("<|>") for token, token_id in model.generation_config.lang_to_id.items()}
    sounds = [sound(seed) for seed in range(8)]
    wanted = [codes[int(model.detect_language(loaded.features(one)[None])[0])] for one in sounds]
    windows = [replace(prepared(loaded, one), is_detected_only=True) for one in sounds]
    assert [one.language for one in heard(loaded, windows)] == wanted and len(set(wanted)) > 1
    [whole] = heard(loaded, [prepared(loaded, SOUNDS[0], replace(PLAIN, language=None))])
    assert list(whole.tokens) == expected(folder, 0, PLAIN, whole.language, "transcribe")


def test_an_english_model_is_told_no_language(tmp_path: Path) -> None:
    folder = save_whisper(tmp_path, english_only=True)
    loaded = load(folder)
    assert loaded.description.languages == {"en": "english"} and loaded.description.tasks == {"transcribe"}
    options = replace(PLAIN, language=None)
    [made] = heard(loaded, [prepared(loaded, SOUNDS[2], options)])
    assert list(made.tokens) == expected(folder, 2, options) and made.language == "en"


def test_no_speech_and_logprobs_are_those_of_transformers(folder: Path) -> None:
    loaded = load(folder)
    model = official(folder)
    features = loaded.features(sound(1))[None]
    made = model.generate(
        features, language="id", task="transcribe", return_timestamps=False, output_scores=True,
        return_dict_in_generate=True, force_unique_generate_call=True, temperature=0.0,
    )  # fmt: skip
    [ours] = heard(loaded, [prepared(loaded, sound(1), replace(PLAIN, with_times=False))])
    ids = made.sequences[0].tolist()
    generated = ids[len(ids) - len(made.scores) :]
    wanted = [float(row[0].log_softmax(-1)[token]) for row, token in zip(made.scores, generated, strict=True)]
    np.testing.assert_allclose(ours.logprobs, wanted[: len(ours.logprobs)], atol=2e-4)
    start = torch.tensor([[model.generation_config.decoder_start_token_id]])
    with torch.no_grad():
        first = model(features, decoder_input_ids=start).logits[0, -1].softmax(-1)
    assert ours.no_speech_prob == pytest.approx(
        float(first[model.generation_config.no_timestamps_token_id - 1]), rel=1e-3
    )


@pytest.mark.parametrize("seconds", [0.001, 0.3, 1.0, 1.97, 1.9999, 2.0])
def test_features_are_those_of_the_official_extractor(tmp_path: Path, seconds: float) -> None:
    theirs = extractor(tmp_path)
    samples = sound(7, seconds)
    [wanted] = theirs(samples, sampling_rate=SAMPLE_RATE).input_features
    np.testing.assert_allclose(LogMel(theirs)(samples).numpy(), wanted, atol=1e-5)


def test_features_of_a_real_window_are_those_of_the_official_extractor() -> None:
    theirs = transformers.WhisperFeatureExtractor(feature_size=128)
    samples = np.concatenate([sound(seed) for seed in range(9)])
    [wanted] = theirs(samples, sampling_rate=SAMPLE_RATE).input_features
    np.testing.assert_allclose(LogMel(theirs)(samples).numpy(), wanted, atol=1e-5)


def test_sampled_tokens_do_not_depend_on_company(folder: Path) -> None:
    loaded = load(folder)
    options = [replace(PLAIN, temperatures=(0.8,), seed=seed) for seed in (1, 2, 1)]

    def tokens(windows: Sequence[Any]) -> list[tuple[int, ...]]:
        return [one.tokens for one in heard(loaded, windows)]

    windows = [prepared(loaded, sound(seed), one) for seed, one in zip((1, 1, 2), options, strict=True)]
    together = tokens(windows)
    assert [tokens([window])[0] for window in windows] == together
    assert together[0] != together[1]
