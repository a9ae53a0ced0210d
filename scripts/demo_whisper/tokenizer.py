"""Whisper's tokenizer over a small vocabulary: bytes, pieces of the forty sentences, and the tokens of the family."""

from collections import Counter
from collections.abc import Iterable, Sequence

from tokenizers import AddedToken, pre_tokenizers
from transformers import WhisperTokenizer
from transformers.models.whisper.tokenization_whisper import LANGUAGES

NUM_MERGES = 300
NUM_TIMESTAMPS = 1501
END_OF_TEXT = "<|endoftext|>"
# The order counts: detection of silence reads the token before `<|notimestamps|>`, times begin after it.
CONTROL_TOKENS = (
    "<|startoftranscript|>",
    *(f"<|{code}|>" for code in LANGUAGES),
    "<|translate|>",
    "<|transcribe|>",
    "<|startoflm|>",
    "<|startofprev|>",
    "<|nospeech|>",
    "<|notimestamps|>",
)
# Signs that are written but not spoken: Whisper never begins a piece of text with them, nor with a lone quote or dash.
_UNSPOKEN = (*'"#()*+/:;<=>@[\\]^_`{|}~', "<<", ">>", "--", "((", "))", "[[", "]]", "{{", "}}", "♪", "♫", "「", "」")
Piece = tuple[str, str]


def trained_tokenizer(texts: Iterable[str]) -> WhisperTokenizer:
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges = _merges(texts)
    vocabulary = [*letters, *(first + second for first, second in merges), END_OF_TEXT]
    tokenizer = WhisperTokenizer(
        vocab={token: number for number, token in enumerate(vocabulary)},
        merges=merges,
        pad_token=END_OF_TEXT,
        extra_special_tokens=list(CONTROL_TOKENS),
        model_max_length=1024,
    )
    times = [f"<|{number * 0.02:.2f}|>" for number in range(NUM_TIMESTAMPS)]
    tokenizer.add_tokens([AddedToken(time, normalized=False, special=False) for time in times])
    return tokenizer


def _merges(texts: Iterable[str]) -> list[Piece]:
    """Byte-pair encoding, written out: the trainer of `tokenizers` breaks ties in the order of a hash."""
    split = pre_tokenizers.ByteLevel(add_prefix_space=False)
    counts = Counter(word for text in texts for word, _ in split.pre_tokenize_str(f" {text}"))
    words = {word: list(word) for word in counts}
    merges: list[Piece] = []
    while len(merges) < NUM_MERGES:
        pairs: Counter[Piece] = Counter()
        for word, pieces in words.items():
            for pair in zip(pieces, pieces[1:], strict=False):
                pairs[pair] += counts[word]
        best = max(pairs, key=lambda pair: (pairs[pair], pair))
        merges.append(best)
        words = {word: _merged(pieces, best) for word, pieces in words.items()}
    return merges


def _merged(pieces: Sequence[str], pair: Piece) -> list[str]:
    made: list[str] = []
    for piece in pieces:
        if made and (made[-1], piece) == pair:
            made[-1] += piece
        else:
            made.append(piece)
    return made


def unspoken_ids(tokenizer: WhisperTokenizer) -> list[int]:
    """Single tokens of signs that nobody speaks, and the control tokens that may not be written."""
    texts = [form for sign in _UNSPOKEN for form in (sign, f" {sign}")] + [" -", " '"]
    encoded = [tokenizer.encode(text, add_special_tokens=False) for text in texts]
    control = [token for token in CONTROL_TOKENS if token != "<|notimestamps|>" and token[2:-2] not in LANGUAGES]
    return sorted({ids[0] for ids in encoded if len(ids) == 1} | set(tokenizer.convert_tokens_to_ids(control)))
