"""A byte-level BPE tokenizer learned from the dialogues, with the special tokens of the Qwen3-VL family."""

import re
from collections.abc import Iterable
from itertools import islice
from pathlib import Path

from tokenizers import AddedToken, Regex, Tokenizer, decoders, normalizers, pre_tokenizers
from tokenizers.models import BPE
from tokenizers.trainers import BpeTrainer
from transformers import PreTrainedTokenizerFast

from scripts.demo_model.architecture import CONTEXT_LENGTH
from scripts.demo_model.curriculum import FIRST_COURSE, dialogues

SPECIAL_TOKENS = (
    "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|object_ref_start|>", "<|object_ref_end|>", "<|box_start|>",
    "<|box_end|>", "<|quad_start|>", "<|quad_end|>", "<|vision_start|>", "<|vision_end|>", "<|vision_pad|>",
    "<|image_pad|>", "<|video_pad|>",
)  # fmt: skip
# Not special, so that decoding with skip_special_tokens keeps them for the parsers of thoughts and calls.
MARKUP_TOKENS = ("<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "<think>", "</think>")
VOCABULARY_SIZE = 2048
TRAINING_DIALOGUES = 12000
TRAINING_SEED = 11
TEMPLATE = Path(__file__).with_name("chat_template.jinja")
# Words with their leading space, every digit alone, runs of signs, line ends, spaces.
_WORD_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def _empty_tokenizer() -> Tokenizer:
    tokenizer = Tokenizer(BPE())
    tokenizer.normalizer = normalizers.NFC()
    words = pre_tokenizers.Split(Regex(_WORD_PATTERN), behavior="isolated")
    letters = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([words, letters])
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def _wrapped(tokenizer: Tokenizer) -> PreTrainedTokenizerFast:
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        additional_special_tokens=list(SPECIAL_TOKENS),
        clean_up_tokenization_spaces=False,
        model_max_length=CONTEXT_LENGTH,
    )
    fast.chat_template = TEMPLATE.read_text(encoding="utf-8")
    return fast


def _training_texts() -> Iterable[str]:
    """What the model will read and write, cut at the tokens that are never learned."""
    wrapped = _wrapped(_empty_tokenizer())
    never_learned = re.compile("|".join(re.escape(token) for token in (*SPECIAL_TOKENS, *MARKUP_TOKENS)))
    for dialogue in islice(dialogues(FIRST_COURSE, TRAINING_SEED), TRAINING_DIALOGUES):
        prompt = wrapped.apply_chat_template(list(dialogue.messages), tools=list(dialogue.tools), tokenize=False)
        yield from never_learned.split(str(prompt) + dialogue.answer)


def trained_tokenizer() -> PreTrainedTokenizerFast:
    tokenizer = _empty_tokenizer()
    trainer = BpeTrainer(
        vocab_size=VOCABULARY_SIZE - len(SPECIAL_TOKENS) - len(MARKUP_TOKENS),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(_training_texts(), trainer)
    tokenizer.add_special_tokens([AddedToken(token, normalized=False, special=True) for token in SPECIAL_TOKENS])
    tokenizer.add_tokens([AddedToken(token, normalized=False, special=False) for token in MARKUP_TOKENS])
    return _wrapped(tokenizer)
