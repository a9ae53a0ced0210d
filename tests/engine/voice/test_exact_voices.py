"""What a model says is what Transformers' own code says with the same seed, sample by sample."""

import json
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers

from tests.engine.voice.loading import load, said
from tests.engine.voice.models import save_vits
from tis.engine.errors import LoadFailed
from tis.engine.models.catalogue import entry_of
from tis.errors import BadRequest

pytestmark = pytest.mark.model
TEXT = "Selamat pagi, dunia."


@pytest.mark.parametrize("stochastic", [True, False])
def test_a_vits_says_what_its_own_forward_says(tmp_path: Path, *, stochastic: bool) -> None:
    folder = save_vits(tmp_path, use_stochastic_duration_prediction=stochastic)
    assert entry_of([], str(folder)).task == "speech"
    loaded = load(folder)
    model = transformers.VitsModel.from_pretrained(folder).eval()
    inputs = transformers.AutoTokenizer.from_pretrained(folder)(TEXT, return_tensors="pt")
    for pace in (1.0, 1.5):
        torch.manual_seed(7)
        with torch.no_grad():
            wanted = model(**inputs, speaking_rate=pace).waveform[0].numpy()
        made = said(loaded, pace=pace)
        assert len(made) > 1000 and float(np.abs(made).max()) > 0.01
        np.testing.assert_array_equal(made, wanted)
    assert not np.array_equal(said(loaded, seed=8)[:1000], said(loaded)[:1000])


def test_the_speakers_of_a_vits_have_their_numbers_or_the_names_of_the_catalogue(tmp_path: Path) -> None:
    folder = save_vits(tmp_path, 3)
    assert load(folder).description.voices == ("0", "1", "2")
    loaded = load(folder, voices={"ani": 2, "budi": 0})
    assert loaded.description.voices == loaded.voices == ("ani", "budi")
    origins, named = load(folder).description.origins, loaded.description.origins
    assert named == {"ani": origins["2"], "budi": origins["0"]} and len(set(origins.values())) == 3
    inputs = transformers.AutoTokenizer.from_pretrained(folder)(TEXT, return_tensors="pt")
    model = transformers.VitsModel.from_pretrained(folder).eval()
    torch.manual_seed(7)
    with torch.no_grad():
        wanted = model(**inputs, speaker_id=2).waveform[0].numpy()
    np.testing.assert_array_equal(said(loaded, voice="ani"), wanted)
    with pytest.raises(LoadFailed, match="the speakers 0 to 2"):
        load(folder, voices={"ani": 3})


def test_noise_of_other_threads_changes_nothing(tmp_path: Path) -> None:
    loaded = load(save_vits(tmp_path))
    alone, stop = said(loaded), threading.Event()

    def draw() -> None:
        while not stop.is_set():
            torch.randn(64)

    drawing = threading.Thread(target=draw)
    drawing.start()
    try:
        np.testing.assert_array_equal(said(loaded), alone)
    finally:
        stop.set()
        drawing.join()


def test_what_a_model_cannot_say_is_left_out_of_a_text(tmp_path: Path) -> None:
    model = load(save_vits(tmp_path)).model
    assert [model.num_tokens(text) for text in ("ab", "!?", "<unk>", "日本")] == [5, 0, 7, 0]


def test_a_sentence_without_end_is_refused_before_it_is_computed(tmp_path: Path) -> None:
    with pytest.raises(BadRequest, match="more than 60 seconds"):
        said(load(save_vits(tmp_path, use_stochastic_duration_prediction=False)), "a " * 90, pace=0.01)


@pytest.mark.parametrize("kind", ["qwen3", "whisper"])
def test_what_does_not_speak_is_refused_by_its_type(tmp_path: Path, kind: str) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": kind, "architectures": ["Some"]}))
    with pytest.raises(LoadFailed, match=f"type '{kind}' is not served for speech"):
        load(tmp_path)


def test_a_tokenizer_that_needs_a_package_is_refused_by_name(tmp_path: Path) -> None:
    save_vits(tmp_path)
    path = tmp_path / "tokenizer_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "phonemize": True}))
    with pytest.raises(LoadFailed, match="needs the package phonemizer"):
        load(tmp_path)


def test_uromans_data_are_read_once_for_all_sentences(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import uroman

    real, num_made = uroman.Uroman(), 0

    def made() -> Any:
        nonlocal num_made
        num_made += 1
        return real

    monkeypatch.setattr(uroman, "Uroman", made)
    save_vits(tmp_path)
    path = tmp_path / "tokenizer_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "is_uroman": True}))
    voice: Any = load(tmp_path).model
    official = transformers.AutoTokenizer.from_pretrained(tmp_path)
    texts = ["नमस्ते दुनिया", "Selamat pagi", "你好, Dunia! 20 ℃", "", "<unk> Ω № ñ", "日本"]
    ids = [voice._ids(text) for text in texts]
    assert num_made == 1
    assert ids == [
        [one for one in official(text)["input_ids"] if one < voice._model.config.vocab_size] for text in texts
    ]
    assert num_made > 3 and len(ids[0]) > 20
    assert [voice.num_tokens(text) > 0 for text in texts] == [True, True, True, False, True, True]
