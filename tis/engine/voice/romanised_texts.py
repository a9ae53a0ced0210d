"""Romanises texts as `VitsTokenizer` does, which builds uroman's data anew for each of them: that takes seconds."""

import threading
from typing import Any


class RomanisedTexts:
    """Takes the place of a tokenizer with `is_uroman`. Threads may share it."""

    def __init__(self, tokenizer: Any) -> None:
        import uroman

        self._uroman = uroman.Uroman()
        self._romanising = threading.Lock()
        self._tokenizer = tokenizer
        tokenizer.is_uroman = False

    @property
    def add_blank(self) -> bool:
        return bool(self._tokenizer.add_blank)

    def __call__(self, text: str) -> Any:
        tokenizer = self._tokenizer
        if tokenizer.normalize:
            text = tokenizer.normalize_text(text)
        text = tokenizer._preprocess_char(text)
        if not text.isascii():
            with self._romanising:
                text = self._uroman.romanize_string(text)
        if tokenizer.normalize and not tokenizer.phonemize:
            text = "".join(char for char in text if char in tokenizer.encoder).strip()
        return tokenizer(text, normalize=False)
