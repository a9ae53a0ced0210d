import random
from collections.abc import Sequence
from typing import Any

import pytest
from tokenizers import Tokenizer, decoders, models

from tis.engine.models.loaded_model import LoadedModel
from tis.engine.text.detokenizer import BROKEN, ByteDetokenizer, Detokenizer, WindowDetokenizer


def pieces_of(detokenizer: Detokenizer, ids: list[int]) -> list[str]:
    return [*(detokenizer.feed(token_id) for token_id in ids), detokenizer.flush()]


@pytest.fixture(scope="module")
def byte_fallback() -> Tokenizer:
    """A vocabulary as SentencePiece makes it: words with a leading space character, and single bytes."""
    words = ["▁Halo", "▁dunia", "lah", "▁", "é"]
    vocabulary = {f"<0x{byte:02X}>": byte for byte in range(256)} | {word: 256 + n for n, word in enumerate(words)}
    tokenizer = Tokenizer(models.BPE(vocabulary, [], byte_fallback=True))
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    return tokenizer


def window(tokenizer: Tokenizer) -> WindowDetokenizer:
    return WindowDetokenizer(lambda ids: str(tokenizer.decode(list(ids), skip_special_tokens=True)))


def test_half_a_character_waits() -> None:
    detokenizer = ByteDetokenizer({n: bytes([byte]) for n, byte in enumerate("a😀b".encode())})
    assert pieces_of(detokenizer, [0, 1, 2, 3, 4, 5]) == ["a", "", "", "", "😀", "b", ""]


def test_an_incomplete_last_character_becomes_one_replacement() -> None:
    detokenizer = ByteDetokenizer({n: bytes([byte]) for n, byte in enumerate("😀".encode())})
    assert pieces_of(detokenizer, [0, 1, 2]) == ["", "", "", BROKEN]


def test_invalid_bytes_do_not_delay_the_text_after_them() -> None:
    detokenizer = ByteDetokenizer({0: b"\xff", 1: b"a"})
    assert "".join(pieces_of(detokenizer, [0, 0, 1])) == BROKEN * 2 + "a"


def test_windows_keep_the_spaces_between_words(byte_fallback: Tokenizer) -> None:
    ids = [256, 257, 258, 259, 260]
    assert pieces_of(window(byte_fallback), ids) == ["Halo", " dunia", "lah", " ", "é", ""]


def test_windows_wait_for_the_rest_of_a_character(byte_fallback: Tokenizer) -> None:
    ids = [256, *"你好".encode(), 257]
    assert pieces_of(window(byte_fallback), ids) == ["Halo", "", "", "你", "", "", "好", " dunia", ""]


def test_windows_do_not_wait_for_ever(byte_fallback: Tokenizer) -> None:
    pieces = pieces_of(window(byte_fallback), [0xFF] * 30)
    assert "".join(pieces) == BROKEN * 30 and pieces[-1] != BROKEN * 30


@pytest.mark.model
def test_random_tokens_of_a_real_vocabulary_decode_as_the_library_does(demo: LoadedModel) -> None:
    tokenizer: Any = demo.tokenizer
    library = tokenizer._tokenizer
    draw = random.Random(1)
    for _ in range(200):
        ids = [draw.randrange(tokenizer.vocabulary_size) for _ in range(40)]
        ids = [token_id for token_id in ids if token_id < len(library)]
        pieces = pieces_of(tokenizer.new_detokenizer(), ids)
        assert "".join(pieces) == library.decode(ids, skip_special_tokens=True)
        assert all(BROKEN not in piece or "".join(pieces).count(BROKEN) for piece in pieces)


@pytest.mark.model
def test_encoding_and_decoding_preserve_text(demo: LoadedModel) -> None:
    tokenizer: Any = demo.tokenizer
    text = "Selamat pagi, dunia! 😀 你好 <think> Rp 12.500 \u00e9\u0301"
    ids = tokenizer._tokenizer.encode(text, add_special_tokens=False)
    pieces = pieces_of(tokenizer.new_detokenizer(), ids)
    assert "".join(pieces) == tokenizer._tokenizer.decode(ids) and not any(BROKEN in piece for piece in pieces)


def test_a_window_stays_short_however_many_tokens_have_no_text(byte_fallback: Tokenizer) -> None:
    byte_fallback.add_special_tokens(["<control>"])
    control, sizes = byte_fallback.token_to_id("<control>"), list[int]()
    assert control is not None

    def decode(ids: Sequence[int]) -> str:
        sizes.append(len(ids))
        return str(byte_fallback.decode(list(ids), skip_special_tokens=True))

    pieces = pieces_of(WindowDetokenizer(decode), [256, *[control] * 500, 257, 258])
    assert "".join(pieces) == "Halo dunialah" and max(sizes) <= 24
