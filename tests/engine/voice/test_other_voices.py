"""SpeechT5, Bark, CSM and Dia: the samples of Transformers' own `generate` with the same seed, and what they refuse."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers

from tests.engine.voice.loading import load, said
from tests.engine.voice.models import save_bark, save_csm, save_dia, save_speecht5, save_vits
from tis.engine.errors import LoadFailed
from tis.engine.voice.loaded_voice import LoadedVoice

pytestmark = [pytest.mark.model, pytest.mark.long]
TEXT = "halo"
SEED = 7


@pytest.fixture(autouse=True)
def _without_gradients() -> Iterator[None]:
    with torch.no_grad():
        yield


def require_same(made: Any, wanted: Any) -> None:
    assert len(made) > 1000 and float(np.abs(made).max()) > 0.001
    np.testing.assert_array_equal(made, wanted.squeeze().numpy())


def require_many_passes(loaded: LoadedVoice) -> None:
    """So one that hangs is seen."""
    assert loaded.new_runner().num_passes > 12


def test_a_speecht5_speaks_in_the_voices_of_its_entry(tmp_path: Path) -> None:
    folder = save_speecht5(tmp_path)
    voices = {"ani": "ani.npy", "budi": str(tmp_path / "budi.npy")}
    loaded = load(folder, voices=voices, vocoder=str(folder / "vocoder"))
    assert loaded.description.voices == ("ani", "budi") and not loaded.description.sets_pace
    model = transformers.SpeechT5ForTextToSpeech.from_pretrained(folder).eval()
    vocoder = transformers.SpeechT5HifiGan.from_pretrained(folder / "vocoder").eval()
    ids = transformers.AutoTokenizer.from_pretrained(folder)(TEXT, return_tensors="pt")["input_ids"]
    made = {}
    for name in voices:
        embedding = torch.from_numpy(np.load(folder / f"{name}.npy"))[None]
        torch.manual_seed(SEED)
        made[name] = said(loaded, TEXT, name, seed=SEED)
        require_same(made[name], model.generate_speech(ids, embedding, vocoder=vocoder))
    assert not np.array_equal(made["ani"], made["budi"])
    require_many_passes(loaded)
    assert [loaded.model.num_tokens(text) for text in ("", "!")] == [0, 0]
    np.save(folder / "budi.npy", np.ones(8))
    changed = load(folder, voices=voices, vocoder=str(folder / "vocoder")).origins
    assert changed["ani"] == loaded.origins["ani"] and changed["budi"] != loaded.origins["budi"]


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"voices": {"ani": "ani.npy"}}, "needs a vocoder in its catalogue entry, such as microsoft/speecht5_hifigan"),
        ({"vocoder": "{}/vocoder"}, "needs voices in its catalogue entry"),
        ({"vocoder": "{}/vocoder", "voices": {"ani": "none.npy"}}, "'none.npy': there is no such file"),
        ({"vocoder": "{}/vocoder", "voices": {"ani": "config.json"}}, "is no .npy file of numbers"),
        ({"vocoder": "{}/vocoder", "voices": {"ani": "long.npy"}}, "has 9 numbers, and the model takes 8"),
    ],
)
def test_a_speecht5_without_what_it_needs_is_refused(tmp_path: Path, fields: dict[str, Any], why: str) -> None:
    folder = save_speecht5(tmp_path)
    np.save(folder / "long.npy", np.zeros(9))
    if "vocoder" in fields:
        fields = {**fields, "vocoder": fields["vocoder"].format(folder)}
    with pytest.raises(LoadFailed, match=why):
        load(folder, **fields)


def test_a_vocoder_of_a_model_that_has_one_within_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LoadFailed, match="without the vocoder"):
        load(save_vits(tmp_path), vocoder="somewhere")


def test_a_bark_speaks_in_its_presets_or_in_a_voice_of_its_own(tmp_path: Path) -> None:
    folder = save_bark(tmp_path)
    model = transformers.BarkModel.from_pretrained(folder).eval()
    processor = transformers.BarkProcessor(transformers.AutoTokenizer.from_pretrained(folder))
    parts = ("semantic_prompt", "coarse_prompt", "fine_prompt")
    preset = {part: np.load(folder / f"{part}.npy") for part in parts}
    for voices, given in (({}, None), ({"id": "v2/id"}, preset)):
        loaded = load(folder, voices=voices)
        assert loaded.description.voices == (("id",) if voices else ("default",))
        inputs = processor(TEXT, voice_preset=given)
        torch.manual_seed(SEED)
        require_same(said(loaded, TEXT, seed=SEED), model.generate(**inputs))
        require_many_passes(loaded)
    with pytest.raises(LoadFailed, match="'v2/en', which this Bark does not have. It has: v2/id"):
        load(folder, voices={"en": "v2/en"})


def test_a_csm_speaks_as_its_speakers(tmp_path: Path) -> None:
    folder = save_csm(tmp_path)
    loaded = load(folder)
    model = transformers.CsmForConditionalGeneration.from_pretrained(folder).eval()
    inputs = transformers.AutoTokenizer.from_pretrained(folder)(
        f"[1]{TEXT}", return_tensors="pt", return_token_type_ids=False
    )
    torch.manual_seed(SEED)
    [wanted] = model.generate(**inputs, output_audio=True, max_new_tokens=40)
    require_same(said(loaded, TEXT, "1", seed=SEED), wanted)
    require_many_passes(loaded)


def test_a_dia_speaks_with_its_codec(tmp_path: Path) -> None:
    folder = save_dia(tmp_path)
    loaded = load(folder, vocoder=str(folder / "codec"))
    model = transformers.DiaForConditionalGeneration.from_pretrained(folder).eval()
    codec = transformers.DacModel.from_pretrained(folder / "codec").eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    processor = transformers.DiaProcessor(transformers.DiaFeatureExtractor(), tokenizer, codec)
    torch.manual_seed(SEED)
    codes = model.generate(**processor(text=[f"[S1] {TEXT}"], padding=False), max_new_tokens=100)
    require_same(said(loaded, TEXT, seed=SEED), processor.batch_decode(codes)[0])
    require_many_passes(loaded)
    with pytest.raises(LoadFailed, match="takes no voices"):
        load(folder, vocoder=str(folder / "codec"), voices={"a": 1})
