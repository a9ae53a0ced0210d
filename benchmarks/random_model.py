"""The model that benchmarks compare servers with: a Qwen3 of 28 layers, hidden size 1024, 0.45 B bfloat16 weights.

It has the demo model's tokenizer. A greedy answer walks through the words of the vocabulary, each once: it does not
end early, every token has text to time, and none follows from a repetition. (Weights that are random throughout repeat
one token, which would flatter a server that guesses tokens from those before.)
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from chat import prompt_text

_DEMO = Path(__file__).resolve().parent.parent / "models" / "demo"
_TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "generation_config.json")
_PADDED_VOCABULARY = 8192


def build_model(folder: Path, *, layers: int = 28) -> None:
    if (folder / "model.safetensors").exists():
        return
    import torch

    print(f"building the model in {folder}", flush=True)
    model = new_model(torch.bfloat16, layers=layers, vocab_size=_PADDED_VOCABULARY, tie_word_embeddings=False)
    words = torch.tensor(list(_plain_text_tokens(demo_tokenizer())))
    vectors = torch.randn(_PADDED_VOCABULARY, model.config.hidden_size, dtype=torch.bfloat16)
    model.get_input_embeddings().weight.data.copy_(vectors)  # large enough to outweigh what 28 random layers add
    output = torch.zeros_like(vectors)
    output[words.roll(-1)] = vectors[words] * 0.02  # each word is followed by the next of the vocabulary
    model.get_output_embeddings().weight.data.copy_(output)
    folder.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(folder)
    copy_tokenizer(folder)


def copy_tokenizer(folder: Path) -> None:
    """That of the demo model."""
    for name in _TOKENIZER_FILES:
        (folder / name).write_bytes((_DEMO / name).read_bytes())


def demo_tokenizer() -> Any:
    return _tokenizer(_DEMO)


def new_model(dtype: Any, *, layers: int = 28, vocab_size: int = 151_936, tie_word_embeddings: bool = True) -> Any:
    """Random weights throughout, in memory only."""
    import torch
    import transformers

    torch.manual_seed(0)
    torch.set_default_dtype(dtype)
    try:
        config = transformers.Qwen3Config(
            vocab_size=vocab_size,
            hidden_size=1024,
            intermediate_size=3072,
            num_hidden_layers=layers,
            num_attention_heads=16,
            num_key_value_heads=8,
            head_dim=128,
            max_position_embeddings=8192,
            tie_word_embeddings=tie_word_embeddings,
        )
        return transformers.Qwen3ForCausalLM(config).eval()
    finally:
        torch.set_default_dtype(torch.float32)


def words_for(folder: Path, num_tokens: int) -> int:
    """How many words of the driver make a prompt of about so many tokens."""
    tokens_per_word = len(_tokenizer(folder).encode(prompt_text(400, "count")).ids) / 400
    return max(1, round(num_tokens / tokens_per_word))


def _tokenizer(folder: Path) -> Any:
    from tokenizers import Tokenizer

    return Tokenizer.from_file(str(folder / "tokenizer.json"))


def _plain_text_tokens(tokenizer: Any) -> Iterator[int]:
    """Tokens whose text is shown at once wherever they stand: words, with a space before them or not."""
    for number in range(tokenizer.get_vocab_size(with_added_tokens=False)):
        text = tokenizer.decode([number])
        if text.strip().isalpha() and text.isascii():
            yield number
