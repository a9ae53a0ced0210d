"""Preprocesses images for all other families, with their official processors. The batch cannot use them.

The `detail` of an image is ignored: most of these families take images of one size.
"""

import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tis.engine.prompt import ChatPrompt, Medium, MediumKind, Message, Picture, Video, media_of, text_of
from tis.engine.text.hf_tokenizer import HfTokenizer
from tis.engine.vision.placeholders import for_chat_template
from tis.engine.vision.vision_input import PreprocessedMedia
from tis.errors import BadRequest

_TEXT_KEYS = ("input_ids", "attention_mask")
_TOKEN_TYPE_KEYS = ("token_type_ids", "mm_token_type_ids")
# SmolVLM's own processor needs one more package, for videos; Idefics3's makes the same inputs of images.
_SUBSTITUTES = {"SmolVLMProcessor": "Idefics3Processor"}
_PROBE_IMAGE = Picture(np.zeros((64, 64, 3), np.uint8), "a black square")


class OfficialVision:
    kinds: frozenset[MediumKind] = frozenset({"image"})
    is_batchable = False

    def __init__(self, processor: Any, tokenizer: HfTokenizer) -> None:
        """Raises whatever the processor raises if it cannot process an image at all."""
        self._processor = processor
        self._tokenizer = tokenizer
        # The processor has a tokenizer of its own, which needs a lock for the same reason as ours: see HfTokenizer.
        self._lock = threading.Lock()
        self._supports_string_content = _supports_strings(processor)
        tokens = [token for token in processor.tokenizer.added_tokens_encoder if not token.isspace()]
        self._control_token = re.compile("|".join(map(re.escape, tokens)) or "(?!)")
        self._can_sanitise = self._try_to_sanitise()
        self._require_inputs_independent_of_text()

    def encode(self, prompt: ChatPrompt) -> list[int]:
        media = media_of(prompt.messages)
        messages = [self._to_official(message) for message in prompt.messages]
        if not media:
            return self._with_bos(self._tokenizer.encode_chat(replace(prompt, messages=messages)))
        if prompt.max_tokens is not None:  # the processor encodes all of it in one go, and holds the lock
            self._tokenizer.require_few_tokens("\n".join(map(text_of, prompt.messages)), prompt.max_tokens)
        self._tokenizer.refuse_control_tokens_in_keys(prompt)
        if not self._can_sanitise:
            self._refuse_control_tokens(prompt)
        try:
            processed = self._process(
                messages,
                self._can_sanitise,
                tools=list(prompt.tools) or None,
                add_generation_prompt=prompt.add_generation_prompt,
                continue_final_message=prompt.continue_final_message,
                **self._template_options_of(prompt.template_options),
            )
        except Exception as error:  # templates and processors may raise anything; the messages are always the cause
            # About images, the library's message may contain more than a client should see.
            why = "it cannot process these images." if media else error
            raise BadRequest(
                f"The model's processor refused the messages: {why}",
                param="messages",
                code="invalid_image",
            ) from error
        ids: list[int] = processed["input_ids"][0].tolist()
        return self._with_bos(ids)

    def preprocess(self, prompt_ids: Sequence[int], media: Sequence[Medium]) -> PreprocessedMedia:
        if not media:
            return PreprocessedMedia((), dict)
        if any(isinstance(medium, Video) for medium in media):
            raise ValueError("a video, but this model accepts images only")
        processed = self._process_alone(media, self._can_sanitise)
        placeholders = self._processor.image_token_ids
        num_in_prompt, num_needed = (
            int(np.isin(ids, placeholders).sum()) for ids in (prompt_ids, processed["input_ids"][0].numpy())
        )
        if num_in_prompt != num_needed:
            raise ValueError(f"{num_in_prompt} placeholders, but the media need {num_needed}")
        inputs = {key: processed[key] for key in _inputs_of(processed)}
        for key in _TOKEN_TYPE_KEYS:
            if key in processed:
                inputs[key] = torch.tensor(self._processor.create_mm_token_type_ids([list(prompt_ids)]))
        num_bytes = sum(value.nbytes for value in inputs.values() if isinstance(value, torch.Tensor))
        return PreprocessedMedia((), lambda: inputs, num_bytes)

    def _template_options_of(self, options: Mapping[str, Any]) -> Mapping[str, Any]:
        """Drops options that the template does not use: the library gives them to the processor (URLs to fetch)."""
        from transformers.utils.chat_template_utils import _get_template_variables

        known = _get_template_variables(self._processor.chat_template)
        return {name: value for name, value in options.items() if name in known}

    def _try_to_sanitise(self) -> bool:
        """Some processors parse their text again, and fail when it was sanitised."""
        try:
            self._process_alone([_PROBE_IMAGE], sanitise=True)
        except (ValueError, NotImplementedError, KeyError, TypeError, AttributeError):
            return False
        return True

    def _require_inputs_independent_of_text(self) -> None:
        """`preprocess` makes the inputs without the text. Mllama cannot: its masks are as long as the text."""
        image = {"type": "image", "image": _PROBE_IMAGE}
        alone, with_text = (
            self._process([self._to_official({"role": "user", "content": [image, *more]})], self._can_sanitise)
            for more in ([], [{"type": "text", "text": "some text"}])
        )
        for key in _inputs_of(alone):
            if alone[key].shape != with_text[key].shape:
                raise ValueError(f"its {key} depends on the text around the images")

    def _refuse_control_tokens(self, prompt: ChatPrompt) -> None:
        for text in _texts([*prompt.messages, *prompt.tools, prompt.template_options]):
            if found := self._control_token.search(text):
                raise BadRequest(
                    f"With images, this model accepts no text that contains the control token {found.group()!r}.",
                    param="messages",
                )

    def _process_alone(self, media: Sequence[Medium], sanitise: bool) -> Mapping[str, Any]:
        """The inputs made of images do not depend on the text between them."""
        content = [{"type": "image", "image": medium} for medium in media]
        return self._process([self._to_official({"role": "user", "content": content})], sanitise)

    def _process(self, messages: Sequence[Message], sanitise: bool, **options: Any) -> Mapping[str, Any]:
        with self._lock:
            processed: Mapping[str, Any] = self._processor.apply_chat_template(
                list(messages),
                tokenize=True,
                return_dict=True,
                return_tensors="pt",
                sanitize_control_tokens=sanitise,
                # Not possible together with sanitising; `_with_bos` adds the BOS token where the template writes none.
                processor_kwargs={"add_special_tokens": False},
                **options,
            )
        return processed

    def _to_official(self, message: Message) -> dict[str, Any]:
        content = message.get("content")
        if isinstance(content, list) and any(part["type"] == "video" for part in content):
            raise BadRequest("This model accepts no videos.", param="messages", code="unsupported_content")
        if isinstance(content, list) and any(part["type"] == "image" for part in content):
            return {**message, "content": [_to_official_part(part) for part in content]}
        if self._supports_string_content:
            return dict(for_chat_template(message))
        if isinstance(content, str):
            return {**message, "content": [{"type": "text", "text": content}]}
        return dict(message)

    def _with_bos(self, ids: list[int]) -> list[int]:
        tokenizer = self._processor.tokenizer
        begins = tokenizer("")["input_ids"][:1]
        return ids if begins != [tokenizer.bos_token_id] or ids[:1] == begins else begins + ids


def _inputs_of(processed: Mapping[str, Any]) -> list[str]:
    return [key for key in processed if key not in (*_TEXT_KEYS, *_TOKEN_TYPE_KEYS)]


def _to_official_part(part: Mapping[str, Any]) -> Mapping[str, Any]:
    from PIL import Image

    # From an array, the processor would have to guess the axis of the colours.
    return part if part["type"] == "text" else {"type": "image", "image": Image.fromarray(part["image"].pixels)}


def _supports_strings(processor: Any) -> bool:
    """Some templates support lists as content only, and silently skip a string."""
    word = "probe"
    try:
        return word in processor.apply_chat_template([{"role": "user", "content": word}])
    except Exception:  # templates may raise anything; in any case this one does not support strings
        return False


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _texts(inner)


def load_processor(folder: Path, config: Any) -> Any:
    """Loads the official processor of a model folder, with as many parts as load without torchvision.

    Raises whatever the library raises if that fails: ImportError, OSError, ValueError and others.
    """
    import transformers

    try:
        processor = transformers.AutoProcessor.from_pretrained(folder, trust_remote_code=False)
    except ImportError:
        # Processors require all their parts, and the one for videos needs torchvision.
        processor = _load_for_images_only(folder, config)
    processor.chat_template = processor.chat_template or processor.tokenizer.chat_template
    if isinstance(processor.chat_template, dict):
        processor.chat_template = processor.chat_template["default"]
    return processor


def _load_for_images_only(folder: Path, config: Any) -> Any:
    import transformers
    from transformers.models.auto.processing_auto import PROCESSOR_MAPPING

    official: Any = PROCESSOR_MAPPING[type(config)]
    if official.__name__ in _SUBSTITUTES:
        official = getattr(transformers, _SUBSTITUTES[official.__name__])

    class ImagesOnly(official):  # type: ignore[misc]
        def check_argument_for_proper_class(self, argument_name: str, argument: Any) -> Any:
            if argument is not None:
                return super().check_argument_for_proper_class(argument_name, argument)
            return None

    parts = {
        "image_processor": transformers.AutoImageProcessor.from_pretrained(folder, trust_remote_code=False),
        "tokenizer": transformers.AutoTokenizer.from_pretrained(folder, trust_remote_code=False),
    }
    processor_dict, _ = official.get_processor_dict(folder)
    return ImagesOnly.from_args_and_dict([parts.get(part) for part in official.get_attributes()], processor_dict)
