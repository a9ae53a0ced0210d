"""Preprocesses images, videos and sounds for all other families, with their official processors.

Each picture is also prepared by itself, so that a batch can show it to the model once, whatever stands around it. So is
each video and each sound. The `detail` of an image is ignored: most of these families take images of one size.
"""

import hashlib
import logging
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from tis.engine.prompt import ChatPrompt, Medium, MediumKind, Message, Picture, Sound, Video, media_of, text_of
from tis.engine.text.hf_tokenizer import HfTokenizer
from tis.engine.vision.placeholders import Span, for_chat_template
from tis.engine.vision.smart_resize import check_size
from tis.engine.vision.sounds import PROBE_SOUND, HeardSounds, noises, placeholder_of_sounds
from tis.engine.vision.video_frames import metadata_of, official_frames
from tis.engine.vision.vision_input import PictureSample, PreprocessedMedia, ShownPictures, VisionInput
from tis.errors import BadRequest

_log = logging.getLogger("tis.engine")

_TEXT_KEYS = ("input_ids", "attention_mask")
_TOKEN_TYPE_KEYS = ("token_type_ids", "mm_token_type_ids")
_PROBE_IMAGE = Picture(np.zeros((64, 64, 3), np.uint8), "a black square")
_PROBE_VIDEO = Video(np.zeros((4, 64, 64, 3), np.uint8), (0.0, 0.5, 1.0, 1.5), 2.0, "four black squares")
_USUAL_PATCH_SIZE = 16
_NUMBERS_OF_SOUND_PER_PATCH = 256  # the encoders of speech make a position of two columns of a spectrogram
_NAMES: Mapping[MediumKind, str] = {"image": "images", "video": "videos", "audio": "audio"}


class OfficialVision:
    def __init__(self, processor: Any, tokenizer: HfTokenizer, config: Any) -> None:
        """Raises whatever the processor raises if it can process no medium at all."""
        self._processor = processor
        self._sees = getattr(processor, "image_processor", None) is not None
        has_videos = getattr(processor, "video_processor", None) is not None
        self._of_videos = getattr(config, "video_token_id", None) if has_videos else None
        self._of_sounds = placeholder_of_sounds(processor, config)
        self._placeholders = self._placeholders_of(config)
        self._patch_size = _patch_size_of(config)
        self._tokenizer = tokenizer
        # The processor has a tokenizer of its own, which needs a lock for the same reason as ours: see HfTokenizer.
        self._lock = threading.Lock()
        self._supports_string_content = _supports_strings(processor)
        tokens = [token for token in processor.tokenizer.added_tokens_encoder if not token.isspace()]
        self._control_token = re.compile("|".join(map(re.escape, tokens)) or "(?!)")
        self._can_sanitise = self._try_to_sanitise()
        self._require_inputs_independent_of_text()
        self._refused: dict[MediumKind, str] = {} if self._sees else {"image": "its processor takes none"}
        if not has_videos:
            self.refuse("video", "its processor takes none")
        elif reason := self._why_not([_PROBE_VIDEO]):
            self.refuse("video", reason)
        self._heard = HeardSounds(processor)
        if self._of_sounds is None:
            self.refuse("audio", "its processor takes none")
        elif reason := self._heard.why_none or self._why_not([PROBE_SOUND]) or self._why_no_limit():
            self.refuse("audio", reason)

    @property
    def kinds(self) -> frozenset[MediumKind]:
        return frozenset(_NAMES) - frozenset(self._refused)

    def refuse(self, kind: MediumKind, reason: str) -> None:
        self._refused[kind] = reason

    def encode(self, prompt: ChatPrompt) -> list[int]:
        media = media_of(prompt.messages)
        messages = [self._to_official(message) for message in prompt.messages]
        if not media:
            return self._with_bos(self._tokenizer.encode_chat(replace(prompt, messages=messages)))
        for medium in media:
            if not isinstance(medium, Sound):
                height, width = _array_of(medium).shape[-3:-1]
                check_size((height, width))
        if prompt.max_tokens is not None:  # the processor encodes all of it in one go, and holds the lock
            self._tokenizer.require_few_tokens("\n".join(map(text_of, prompt.messages)), prompt.max_tokens)
        self._tokenizer.refuse_control_tokens_in_keys(prompt)
        if not self._can_sanitise:
            self._refuse_control_tokens(prompt)
        sounds = [medium for medium in media if isinstance(medium, Sound)]
        self._heard.check(sounds)
        try:
            processed = self._process(
                messages,
                self._can_sanitise,
                videos=_videos_of(media),
                tools=list(prompt.tools) or None,
                add_generation_prompt=prompt.add_generation_prompt,
                continue_final_message=prompt.continue_final_message,
                **self._template_options_of(prompt.template_options),
            )
        except Exception as error:  # templates and processors may raise anything; the messages are always the cause
            # The library's message may contain more than a client should see.
            why = f"it cannot process these {' and '.join(dict.fromkeys(_NAMES[one.kind] for one in media))}."
            if len({len(video.frames) for video in _videos_of(media)}) > 1:
                why = "several videos in one request may need the same number of frames. Send one."
            elif len(sounds) > 1:
                why += " It may take one recording in a request."
            raise BadRequest(
                f"The model's processor refused the messages: {why}",
                param="messages",
                code="invalid_audio" if len(sounds) == len(media) else "invalid_image",
            ) from error
        ids: list[int] = processed["input_ids"][0].tolist()
        return self._with_bos(ids)

    def sample(self) -> PictureSample | None:
        if not self._sees:
            return self.sound_sample()
        noise = np.random.default_rng(1)
        pictures = [
            Picture(noise.integers(0, 256, (*size, 3)).astype(np.uint8), f"noise {size}")
            for size in ((40, 60), (64, 32))
        ]
        return self._sample_of_some(pictures)

    def sound_sample(self) -> PictureSample:
        return self._sample_of_some(noises())

    def video_sample(self) -> PictureSample:
        noise = np.random.default_rng(2)
        times = _PROBE_VIDEO.times
        videos = [
            Video(noise.integers(0, 256, (len(times), *size, 3)).astype(np.uint8), times, 2.0, f"noise {size}")
            for size in ((40, 60), (64, 32))
        ]
        return self._sample_of(videos)

    def _sample_of_some(self, media: Sequence[Medium]) -> PictureSample:
        try:
            return self._sample_of(media)
        except (BadRequest, ValueError):  # some templates take a single picture, some processors a single sound
            return self._sample_of(media[:1])

    def _sample_of(self, media: Sequence[Medium]) -> PictureSample:
        parts: list[Mapping[str, Any]] = [{"type": "text", "text": "Compare "}]
        for medium in media:
            parts += [_part(medium), {"type": "text", "text": " with "}]
        prompt_ids = self.encode(ChatPrompt([{"role": "user", "content": parts}]))
        return PictureSample(prompt_ids, self.preprocess(prompt_ids, media))

    def preprocess(self, prompt_ids: Sequence[int], media: Sequence[Medium]) -> PreprocessedMedia:
        if refused := {medium.kind for medium in media} & self._refused.keys():
            raise ValueError(f"the model does not accept {', '.join(sorted(refused))}")
        shown: dict[tuple[MediumKind, str], ShownPictures] = {}  # a repeated image is computed once
        for medium in media:
            if _key(medium) not in shown:
                shown[_key(medium)] = self._shown([medium])
        places = self._places(prompt_ids)
        parts: list[tuple[Sequence[Medium], ShownPictures]] = [([one], shown[_key(one)]) for one in media]
        if media and len(places) != sum(len(one.places) for _, one in parts):
            # LLaVA-OneVision cuts a picture into tiles only where it is the only one. Other media have other tokens.
            pictures = [one for one in media if isinstance(one, Picture)]
            others: list[Medium] = [*_videos_of(media), *(one for one in media if isinstance(one, Sound))]
            parts = [(pictures, self._shown(pictures))] if pictures else []
            parts += [([one], shown[_key(one)]) for one in others]
            ranks = {self._of_videos: 1, self._of_sounds: 2}
            places.sort(key=lambda at: ranks.get(prompt_ids[at], 0))
        num_needed = sum(len(one.places) for _, one in parts)
        if len(places) != num_needed:
            raise ValueError(f"{len(places)} placeholders, but the media need {num_needed}")
        vision_inputs, at = [], 0
        for some, one in parts:
            vision_inputs.append(self._vision_input(some, one, places[at : at + len(one.places)]))
            at += len(one.places)
        num_bytes = sum(_num_bytes(inputs) for inputs in {id(one): one.inputs for _, one in parts}.values())
        num_bytes += sum(array.nbytes for array in {id(one): _array_of(one) for one in media}.values())
        return PreprocessedMedia(vision_inputs, lambda: self._generate_kwargs(prompt_ids, media), num_bytes)

    def _shown(self, media: Sequence[Medium]) -> ShownPictures:
        processed = self._process_alone(media, self._can_sanitise)
        inputs = {key: value for key, value in processed.items() if key != "attention_mask"}
        return ShownPictures(inputs, self._places(processed["input_ids"][0].tolist()))

    def _places(self, ids: Sequence[int]) -> list[int]:
        """Where the placeholders are."""
        places: list[int] = np.flatnonzero(np.isin(np.asarray(ids), self._placeholders)).tolist()
        return places

    def _vision_input(self, media: Sequence[Medium], shown: ShownPictures, places: Sequence[int]) -> VisionInput:
        kind = media[0].kind
        digest = hashlib.sha256("\0".join([kind, *map(_identity, media)]).encode()).digest()
        num_values = sum(value.numel() for value in shown.inputs.values() if _is_pixels(value))
        numbers = _NUMBERS_OF_SOUND_PER_PATCH if kind == "audio" else 3 * self._patch_size**2
        num_patches = max(1, num_values // numbers)
        return VisionInput(kind, digest, (1, 1, num_patches), tuple(_spans(places)), None, shown=shown)

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
            self._process_alone([self._probe], sanitise=True)
        except (ValueError, NotImplementedError, KeyError, TypeError, AttributeError):
            return False
        return True

    @property
    def _probe(self) -> Medium:
        return _PROBE_IMAGE if self._sees else PROBE_SOUND

    def _why_not(self, media: Sequence[Medium]) -> str:
        """Returns why the processor does not take such media, or nothing."""
        try:
            if self._shown(media).places:
                return ""
        except Exception as error:  # processors and templates may raise anything
            _log.debug("the processor takes no %s", media[0].kind, exc_info=True)
            return f"its processor fails ({type(error).__name__})"
        return "its processor makes no placeholders of them"

    def _why_no_limit(self) -> str:
        try:
            self._heard.find_limit(lambda sound: len(self._shown([sound]).places))
        except Exception as error:  # processors may raise anything
            _log.debug("the processor takes no longer sound", exc_info=True)
            return f"its processor fails with longer ones ({type(error).__name__})"
        return ""

    def _require_inputs_independent_of_text(self) -> None:
        """`preprocess` makes the inputs without the text. Mllama cannot: its masks are as long as the text."""
        part = self._to_official_part(_part(self._probe))
        alone, with_text = (
            self._process([{"role": "user", "content": [part, *more]}], self._can_sanitise)
            for more in ([], [{"type": "text", "text": "some text"}])
        )
        for key in _inputs_of(alone):
            if alone[key].shape != with_text[key].shape:
                raise ValueError(f"its {key} depends on the text around the media")

    def _refuse_control_tokens(self, prompt: ChatPrompt) -> None:
        for text in _texts([*prompt.messages, *prompt.tools, prompt.template_options]):
            if found := self._control_token.search(text):
                raise BadRequest(
                    f"With media, this model accepts no text that contains the control token {found.group()!r}.",
                    param="messages",
                )

    def _process_alone(self, media: Sequence[Medium], sanitise: bool) -> Mapping[str, Any]:
        """The inputs made of images do not depend on the text between them."""
        message = {"role": "user", "content": [self._to_official_part(_part(medium)) for medium in media]}
        return self._process([message], sanitise, videos=_videos_of(media))

    def _process(
        self, messages: Sequence[Message], sanitise: bool, videos: Sequence[Video] = (), **options: Any
    ) -> Mapping[str, Any]:
        # Not possible together with sanitising; `_with_bos` adds the BOS token where the template writes none.
        arguments: dict[str, Any] = {"add_special_tokens": False}
        if videos:
            processor = self._processor.video_processor
            arguments["do_sample_frames"] = False
            arguments["video_metadata"] = [dict(metadata_of(video, processor)) for video in videos]
        with self._lock:
            processed: Mapping[str, Any] = self._processor.apply_chat_template(
                list(messages),
                tokenize=True,
                return_dict=True,
                return_tensors="pt",
                sanitize_control_tokens=sanitise,
                processor_kwargs=arguments,
                **options,
            )
        return processed

    def _to_official(self, message: Message) -> dict[str, Any]:
        content = message.get("content")
        kinds = {part["type"] for part in content} if isinstance(content, list) else set()
        for kind in sorted(kinds & self._refused.keys()):
            raise BadRequest(f"This model accepts no {_NAMES[kind]}.", param="messages", code="unsupported_content")
        if kinds & _NAMES.keys():
            return {**message, "content": [self._to_official_part(part) for part in content or ()]}
        if self._supports_string_content:
            return dict(for_chat_template(message))
        if isinstance(content, str):
            return {**message, "content": [{"type": "text", "text": content}]}
        return dict(message)

    def _to_official_part(self, part: Mapping[str, Any]) -> Mapping[str, Any]:
        from PIL import Image

        if part["type"] == "audio":
            return {"type": "audio", "audio": part["audio"].samples}
        if part["type"] == "video":
            return {"type": "video", "video": official_frames(part["video"], self._processor.video_processor)}
        # From an array, the processor would have to guess the axis of the colours.
        return part if part["type"] == "text" else {"type": "image", "image": Image.fromarray(part["image"].pixels)}

    def _placeholders_of(self, config: Any) -> list[int]:
        of_images: list[int] = []
        if self._sees:
            token = getattr(config, "image_token_id", None)
            of_images = list(self._processor.image_token_ids) if token is None else [token]
        return [*of_images, *(token for token in (self._of_videos, self._of_sounds) if token is not None)]

    def _with_bos(self, ids: list[int]) -> list[int]:
        tokenizer = self._processor.tokenizer
        begins = tokenizer("")["input_ids"][:1]
        return ids if begins != [tokenizer.bos_token_id] or ids[:1] == begins else begins + ids


def _patch_size_of(config: Any) -> int:
    size = getattr(getattr(config, "vision_config", None), "patch_size", None)
    return size if isinstance(size, int) and size > 0 else _USUAL_PATCH_SIZE


def _part(medium: Medium) -> Mapping[str, Any]:
    return {"type": medium.kind, medium.kind: medium}


def _videos_of(media: Sequence[Medium]) -> list[Video]:
    return [medium for medium in media if isinstance(medium, Video)]


def _array_of(medium: Medium) -> Any:
    if isinstance(medium, Sound):
        return medium.samples
    return medium.frames if isinstance(medium, Video) else medium.pixels


def _key(medium: Medium) -> tuple[MediumKind, str]:
    """A file may be a video here and a sound there."""
    return medium.kind, medium.digest


def _identity(medium: Medium) -> str:
    """The times of a video say which of its frames were sampled."""
    return f"{medium.digest} {medium.times}" if isinstance(medium, Video) else medium.digest


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
