"""Raw texts are encoded and decoded as the library does it, control tokens and all."""

from typing import Any

import pytest
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

from tis.engine.models.loaded_model import LoadedModel
from tis.engine.text.hf_tokenizer import HfTokenizer
from tis.engine.text.text_encoder import TooManyTokens

TEXTS = ["Halo dunia", " Halo  dunia\n\n", "<s>Halo</s>", "你好 😀", "", "a" * 500]


def _byte_level() -> Tokenizer:
    alphabet = {letter: number for number, letter in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()), 3)}
    made = Tokenizer(models.BPE({"<s>": 0, "</s>": 1, "<unk>": 2, **alphabet}, []))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    return made


def _sentence_piece() -> Tokenizer:
    letters = "▁Halodunia"
    pieces = {"<s>": 0, "</s>": 1, "<unk>": 2, **{f"<0x{byte:02X}>": 3 + byte for byte in range(256)}}
    pieces |= {letter: 300 + number for number, letter in enumerate(dict.fromkeys(letters))}
    made = Tokenizer(models.BPE(pieces, [], unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    made.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    made.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    return made


@pytest.fixture(params=[_byte_level, _sentence_piece])
def library(request: pytest.FixtureRequest) -> Any:
    made = request.param()
    made.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
    return PreTrainedTokenizerFast(tokenizer_object=made, bos_token="<s>", eos_token="</s>", unk_token="<unk>")


@pytest.fixture
def ours(library: Any) -> HfTokenizer:
    return HfTokenizer(library, {1}, 400)


@pytest.mark.parametrize("adds_special_tokens", [True, False])
def test_tokens_are_those_of_the_library(ours: HfTokenizer, library: Any, adds_special_tokens: bool) -> None:
    for text in TEXTS:
        expected = library.encode(text, add_special_tokens=adds_special_tokens)
        assert ours.encode_raw(text, adds_special_tokens=adds_special_tokens) == expected
        assert ours.decode_raw(expected) == library.decode(expected)
        assert ours.token_names(expected) == library.convert_ids_to_tokens(expected)


def test_the_texts_of_tokens_are_the_whole(ours: HfTokenizer, library: Any) -> None:
    for text in TEXTS:
        ids = library.encode(text)
        shown = ours.visible_texts(ids)
        assert len(shown) == len(ids)
        assert "".join(shown).replace(" ", "") == library.decode(ids).replace(" ", "")


def test_offsets_cut_a_text_into_its_tokens(ours: HfTokenizer, library: Any) -> None:
    for text in TEXTS:
        ids = library.encode(text)
        offsets = ours.text_offsets(text, ids, adds_special_tokens=True)
        assert len(offsets) == len(ids) and offsets == sorted(offsets)
        assert offsets[0] == 0 and offsets[-1] <= len(text)
        assert "".join(text[at:to] for at, to in zip(offsets, [*offsets[1:], len(text)], strict=True)) == text
    assert ours.text_offsets("Halo", library.encode("Halo"), adds_special_tokens=True)[:2] == [0, 0], "BOS has no text"


def test_a_text_that_is_far_too_long_is_not_encoded_to_its_end(ours: HfTokenizer) -> None:
    with pytest.raises(TooManyTokens):
        ours.encode_raw("Halo " * 200_000, adds_special_tokens=True, max_tokens=100)


@pytest.mark.model
def test_the_demo_model(demo: LoadedModel) -> None:
    library: Any = demo.tokenizer._tokenizer  # type: ignore[attr-defined]
    text = "<|im_start|>user\nHalo 你好 😀<|im_end|>"
    ids = library.encode(text)
    assert demo.tokenizer.encode_raw(text, adds_special_tokens=True) == ids
    assert "".join(demo.tokenizer.visible_texts(ids)) == demo.tokenizer.decode_raw(ids) == text
    offsets = demo.tokenizer.text_offsets(text, ids, adds_special_tokens=True)
    assert text[offsets[1] :].startswith("user")
