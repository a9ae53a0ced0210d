"""Models that hear and are no Whisper: what their own code writes, and those that are refused by name."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import transformers

from tests.engine.speech.hearing import PLAIN, heard, load, prepared
from tests.engine.speech.models import sound
from tis.admission.admission import Admission
from tis.admission.limits import AdmissionLimits
from tis.engine.errors import LoadFailed
from tis.engine.local_engine import EngineLimits, LocalEngine
from tis.engine.models.catalogue import CatalogueEntry, entry_of
from tis.engine.speech.heard import SpeechWindow
from tis.errors import BadRequest, QueueFull

pytestmark = pytest.mark.model

_LETTERS = ["<pad>", "<s>", "</s>", "<unk>", "|", *"abcdefgh"]


def save_wav2vec2(folder: Path) -> Path:
    (folder / "vocab.json").write_text(json.dumps({letter: number for number, letter in enumerate(_LETTERS)}))
    transformers.Wav2Vec2CTCTokenizer(str(folder / "vocab.json")).save_pretrained(folder)
    transformers.Wav2Vec2FeatureExtractor().save_pretrained(folder)
    config = transformers.Wav2Vec2Config(
        vocab_size=len(_LETTERS),
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=64,
        conv_dim=(16, 16, 16, 16, 16, 16, 16),
        num_conv_pos_embeddings=16,
        num_conv_pos_embedding_groups=4,
        pad_token_id=0,
    )
    torch.manual_seed(0)
    model = transformers.Wav2Vec2ForCTC(config)
    model.lm_head.weight.data.normal_(0, 2)
    model.save_pretrained(folder)
    return folder


def test_a_ctc_model_writes_what_transformers_writes_with_the_times_of_words(tmp_path: Path) -> None:
    folder = save_wav2vec2(tmp_path)
    assert entry_of([], str(folder)).task == "transcription"
    loaded = load(folder)
    assert loaded.description.has_words and not loaded.description.has_times and not loaded.description.languages
    window = prepared(loaded, sound(3, 1.5))
    model = transformers.AutoModelForCTC.from_pretrained(folder).eval()
    with torch.no_grad():
        best = model(window.features["input_values"]).logits[0].argmax(-1)
    wanted = transformers.AutoTokenizer.from_pretrained(folder).decode(best)
    [made] = heard(loaded, [window])
    assert made.text == wanted and any(letter in wanted for letter in "abcdefgh")
    assert "".join(word.text for word in made.words).split() == wanted.split()
    times = [time for word in made.words for time in (word.start, word.end)]
    assert times == sorted(times) and 0 <= times[0] and times[-1] <= 1.5
    with pytest.raises(BadRequest, match="does not translate"):
        loaded.check(replace(PLAIN, task="translate"))


def test_a_moonshine_writes_what_generate_writes(tmp_path: Path) -> None:
    from tokenizers import Tokenizer, models

    words = Tokenizer(models.WordLevel({f"w{number}": number for number in range(64)}, unk_token="w0"))
    transformers.PreTrainedTokenizerFast(tokenizer_object=words, bos_token="w60", eos_token="w2").save_pretrained(
        tmp_path
    )
    transformers.Wav2Vec2FeatureExtractor(do_normalize=False).save_pretrained(tmp_path)
    config = transformers.MoonshineConfig(
        vocab_size=64,
        hidden_size=32,
        intermediate_size=64,
        encoder_num_hidden_layers=1,
        decoder_num_hidden_layers=1,
        encoder_num_attention_heads=2,
        decoder_num_attention_heads=2,
    )
    torch.manual_seed(0)
    transformers.MoonshineForConditionalGeneration(config).save_pretrained(tmp_path)
    loaded = load(tmp_path)
    window = prepared(loaded, sound(3, 1.5))
    model = transformers.MoonshineForConditionalGeneration.from_pretrained(tmp_path).eval()
    wanted = model.generate(window.features["input_values"], max_new_tokens=9, do_sample=False)[0].tolist()
    [made] = heard(loaded, [window])
    assert list(made.token_ids) == wanted[1:] and made.text == loaded_text(tmp_path, wanted)


def loaded_text(folder: Path, ids: list[int]) -> str:
    return str(transformers.AutoTokenizer.from_pretrained(folder).decode(ids, skip_special_tokens=True))


@pytest.mark.parametrize("kind", ["qwen3", "voxtral"])
def test_what_does_not_transcribe_is_refused_by_its_type(tmp_path: Path, kind: str) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": kind, "architectures": ["Some"]}))
    with pytest.raises(LoadFailed, match=f"type '{kind}' is not served for transcription"):
        load(tmp_path)


@pytest.mark.anyio
async def test_a_full_queue_refuses_no_window_of_a_file_that_has_begun(tmp_path: Path) -> None:
    folder = save_wav2vec2(tmp_path)
    engine = LocalEngine(
        [CatalogueEntry("ear", str(folder), "transcription")],
        lambda entry, report: load(folder),
        EngineLimits(queue_size=1),
    )
    await engine.open()
    try:
        window = SpeechWindow(sound(3, 0.5), PLAIN)
        wanted = await engine.hear("ear", window)
        ticket = Admission(AdmissionLimits(max_prompt_tokens=1)).ticket("a")
        waits = [engine.hear("ear", window, ticket, is_begun=True) for _ in range(60)]
        assert await asyncio.gather(*waits) == [wanted] * 60
        results = await asyncio.gather(*(engine.hear("ear", window) for _ in range(60)), return_exceptions=True)
        assert any(isinstance(one, QueueFull) for one in results)
    finally:
        await engine.close()
