"""Preprocesses images for all other families, with their official processors.

Each picture is also prepared by itself, so that a batch can show it to the model once, whatever stands around it.
The `detail` of an image is ignored: most of these families take images of one size.
"""

import hashlib
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tis.engine.prompt import ChatPrompt, Medium, MediumKind, Message, Picture, media_of, text_of
from tis.engine.text.hf_tokenizer import HfTokenizer
from tis.engine.vision.placeholders import Span, for_chat_template
from tis.engine.vision.vision_input import PictureSample, PreprocessedMedia, ShownPictures, VisionInput
from tis.errors import BadRequest

_TEXT_KEYS = ("input_ids", "attention_mask")
_TOKEN_TYPE_KEYS = ("token_type_ids", "mm_token_type_ids")
# SmolVLM's own processor needs one more package, for videos; Idefics3's makes the same inputs of images.
_SUBSTITUTES = {"SmolVLMProcessor": "Idefics3Processor"}
_PROBE_IMAGE = Picture(np.zeros((64, 64, 3), np.uint8), "a black square")
_USUAL_PATCH_SIZE = 16


class OfficialVision:
    kinds: frozenset[MediumKind] = frozenset({"image"})

    def __init__(self, processor: Any, tokenizer: HfTokenizer, config: Any) -> None:
        """Raises whatever the processor raises if it cannot process an image at all."""
        self._processor = processor
        self._placeholder = getattr(config, "image_token_id", None)
        self._patch_size = _patch_size_of(config)
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

    def sample(self) -> PictureSample | None:
        noise = np.random.default_rng(1)
        pictures = [
            Picture(noise.integers(0, 256, (*size, 3)).astype(np.uint8), f"noise {size}")
            for size in ((40, 60), (64, 32))
        ]
        try:
            return self._sample_of(pictures)
        except (BadRequest, ValueError):  # some templates take a single picture
            return self._sample_of(pictures[:1])

    def _sample_of(self, pictures: Sequence[Picture]) -> PictureSample:
        parts: list[Mapping[str, Any]] = [{"type": "text", "text": "Compare "}]
        for picture in pictures:
            parts += [{"type": "image", "image": picture}, {"type": "text", "text": " with "}]
        prompt_ids = self.encode(ChatPrompt([{"role": "user", "content": parts}]))
        return PictureSample(prompt_ids, self.preprocess(prompt_ids, pictures))

    def preprocess(self, prompt_ids: Sequence[int], media: Sequence[Medium]) -> PreprocessedMedia:
        pictures = [medium for medium in media if isinstance(medium, Picture)]
        if len(pictures) < len(media):
            raise ValueError("a video, but this model accepts images only")
        shown: dict[str, ShownPictures] = {}  # a repeated image is computed once
        for picture in pictures:
            if picture.digest not in shown:
                shown[picture.digest] = self._shown([picture])
        places = self._places(prompt_ids)
        parts = [([picture], shown[picture.digest]) for picture in pictures]
        if pictures and len(places) != sum(len(one.places) for _, one in parts):
            # LLaVA-OneVision cuts a picture into tiles only where it is the only one.
            parts = [(pictures, self._shown(pictures))]
        num_needed = sum(len(one.places) for _, one in parts)
        if len(places) != num_needed:
            raise ValueError(f"{len(places)} placeholders, but the media need {num_needed}")
        vision_inputs, at = [], 0
        for some, one in parts:
            vision_inputs.append(self._vision_input(some, one, places[at : at + len(one.places)]))
            at += len(one.places)
        num_bytes = sum(_num_bytes(inputs) for inputs in {id(one): one.inputs for _, one in parts}.values())
        num_bytes += sum(pixels.nbytes for pixels in {id(one): one.pixels for one in pictures}.values())
        return PreprocessedMedia(vision_inputs, lambda: self._generate_kwargs(prompt_ids, pictures), num_bytes)

    def _shown(self, media: Sequence[Medium]) -> ShownPictures:
        processed = self._process_alone(media, self._can_sanitise)
        inputs = {key: value for key, value in processed.items() if key != "attention_mask"}
        return ShownPictures(inputs, self._places(processed["input_ids"][0].tolist()))

    def _places(self, ids: Sequence[int]) -> list[int]:
        """Where the placeholders are."""
        tokens = self._processor.image_token_ids if self._placeholder is None else [self._placeholder]
        places: list[int] = np.flatnonzero(np.isin(np.asarray(ids), tokens)).tolist()
        return places

    def _vision_input(self, pictures: Sequence[Medium], shown: ShownPictures, places: Sequence[int]) -> VisionInput:
        digest = hashlib.sha256("\0".join(["image", *(picture.digest for picture in pictures)]).encode()).digest()
        num_values = sum(value.numel() for value in shown.inputs.values() if _is_pixels(value))
        num_patches = max(1, num_values // (3 * self._patch_size**2))
        return VisionInput("image", digest, (1, 1, num_patches), tuple(_spans(places)), None, shown=shown)

    def _generate_kwargs(self, prompt_ids: Sequence[int], media: Sequence[Medium]) -> Mapping[str, Any]:
        if not media:
            return {}
        processed = self._process_alone(media, self._can_sanitise)
        inputs = {key: processed[key] for key in _inputs_of(processed)}
        for key in _TOKEN_TYPE_KEYS:
            if key in processed:
                inputs[key] = torch.tensor(self._processor.create_mm_token_type_ids([list(prompt_ids)]))
        return inputs

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


def _patch_size_of(config: Any) -> int:
    size = getattr(getattr(config, "vision_config", None), "patch_size", None)
    return size if isinstance(size, int) and size > 0 else _USUAL_PATCH_SIZE


def _is_pixels(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.is_floating_point()


def _num_bytes(inputs: Mapping[str, Any]) -> int:
    return sum(value.nbytes for value in inputs.values() if isinstance(value, torch.Tensor))


def _spans(places: Sequence[int]) -> Iterator[Span]:
    """Runs of places that follow each other."""
    begin = 0
    for at in range(1, len(places) + 1):
        if at == len(places) or places[at] != places[at - 1] + 1:
            yield places[begin], places[at - 1] + 1
            begin = at


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
