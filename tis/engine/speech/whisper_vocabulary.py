"""The special tokens of a Whisper, the prompts that are made of them, and the text of the others."""

from collections.abc import Mapping, Sequence
from typing import Any

from tis.engine.errors import LoadFailed
from tis.engine.speech.heard import HearingOptions, SpeechTask
from tis.engine.text.hf_tokenizer import HfTokenizer
from tis.errors import BadRequest


class WhisperVocabulary:
    def __init__(self, tokenizer: Any, generation: Any, config: Any) -> None:
        """`generation`: the model's generation config, which names most of the tokens."""
        ids: Mapping[str, int] = tokenizer.get_vocab()
        self.start = int(generation.decoder_start_token_id or config.decoder_start_token_id)
        eos = generation.eos_token_id if generation.eos_token_id is not None else config.eos_token_id
        self.end = int(eos[0] if isinstance(eos, list) else eos)
        self.previous = ids.get("<|startofprev|>")
        no_times = getattr(generation, "no_timestamps_token_id", None) or ids.get("<|notimestamps|>")
        if no_times is None:
            raise LoadFailed("Its vocabulary has no <|notimestamps|>: it is no Whisper that can be served.")
        self.no_times = int(no_times)
        self.first_time = self.no_times + 1
        self.no_speech = self.no_times - 1
        self.languages = _languages(ids, generation)
        self.tasks = _tasks(ids, generation) if self.languages else {}
        self._tokenizer = HfTokenizer(tokenizer, {self.end}, config.vocab_size)
        self._max_previous = config.max_target_positions // 2 - 1
        self._max_positions = int(config.max_target_positions)

    @property
    def language_ids(self) -> list[int]:
        return list(self.languages.values())

    def code_of(self, language_id: int) -> str:
        return next(code for code, one in self.languages.items() if one == language_id)

    def init_ids(self, language: str | None, task: SpeechTask, *, with_times: bool) -> list[int]:
        """What the model is told of a window. `language` counts only where the model tells some apart."""
        ids = [self.start]
        if self.languages:
            assert language is not None
            ids += [self.languages[language], self.tasks[task]]
        return ids if with_times else [*ids, self.no_times]

    def previous_ids(self, prompt: str) -> list[int]:
        """The text before the window, of which the end counts."""
        text = prompt.strip()
        if not text or self.previous is None:
            return []
        kept = text[-(self._max_positions * _MAX_CHARACTERS_PER_TOKEN) :]
        return [self.previous, *self._tokenizer.encode_text(f" {kept}")[-self._max_previous :]]

    def check(self, options: HearingOptions) -> None:
        """Raises BadRequest for what the model cannot do."""
        if options.language is not None and options.language not in (self.languages or {"en": 0}):
            raise BadRequest(
                f"The model does not know the language {options.language!r}.", param="language", code="unknown_language"
            )
        if options.task == "translate" and "translate" not in self.tasks:
            raise BadRequest("This model knows English alone: it does not translate.", param="model")

    def is_text(self, token_id: int) -> bool:
        return token_id < self.end

    def text_of(self, ids: Sequence[int]) -> str:
        return "".join(self.texts_of(ids))

    def texts_of(self, ids: Sequence[int]) -> list[str]:
        """Of each token. A character of several tokens belongs to its last one."""
        written = self._tokenizer.new_detokenizer()
        texts = [written.feed(token_id) if self.is_text(token_id) else "" for token_id in ids]
        if rest := written.flush():
            texts[-1] += rest
        return texts

    def bytes_of(self, token_id: int) -> bytes:
        return self._tokenizer.token_bytes(token_id) if self.is_text(token_id) else b""


_MAX_CHARACTERS_PER_TOKEN = 16


def _languages(ids: Mapping[str, int], generation: Any) -> dict[str, int]:
    """The token of each language, by its code. Empty: the model knows English alone."""
    if not getattr(generation, "is_multilingual", True):
        return {}
    known = getattr(generation, "lang_to_id", None)
    if known is None:
        from transformers.models.whisper.tokenization_whisper import LANGUAGES

        known = {token: ids[token] for code in LANGUAGES if (token := f"<|{code}|>") in ids}
    return {token.removeprefix("<|").removesuffix("|>"): int(token_id) for token, token_id in known.items()}


def _tasks(ids: Mapping[str, int], generation: Any) -> dict[str, int]:
    known = getattr(generation, "task_to_id", None) or {
        task: ids[token] for task in ("transcribe", "translate") if (token := f"<|{task}|>") in ids
    }
    if "transcribe" not in known:
        raise LoadFailed("It tells languages apart and has no token for the task: it is no Whisper that can be served.")
    return {task: int(token_id) for task, token_id in known.items()}
