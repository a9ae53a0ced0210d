"""Preprocessed images, videos and sounds, and the protocol of the processors that make them."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from tis.engine.prompt import ChatPrompt, Medium, MediumKind
from tis.errors import BadRequest


@dataclass(frozen=True, slots=True, eq=False)
class ShownPictures:
    """A medium as its official processor prepares it for `model.forward`, or several that belong together."""

    inputs: Mapping[str, Any]  # tokens and pixels
    places: Sequence[int]  # of the placeholders among its tokens


@dataclass(frozen=True, slots=True, eq=False)
class VisionInput:
    """One image, video or sound: its placeholders in the prompt, and its numbers as the tower takes them."""

    kind: MediumKind
    digest: bytes  # of all that its features and positions depend on: content, kind, grid, seconds_per_grid
    grid: tuple[int, int, int]  # patches in time, height and width
    spans: tuple[tuple[int, int], ...]  # its placeholder tokens: the first, and one behind the last
    patches: Any  # a slice of it is a float32 tensor with a row for each patch
    seconds_per_grid: float | None = None  # of a video, if positions depend on it (Qwen2.5-VL)
    shown: ShownPictures | None = None  # instead of `patches`, where an official processor prepares them

    @property
    def patches_per_time_step(self) -> int:
        return self.grid[1] * self.grid[2]

    @property
    def num_tokens(self) -> int:
        return sum(stop - start for start, stop in self.spans)


@dataclass(frozen=True, slots=True, eq=False)
class PreprocessedMedia:
    inputs: Sequence[VisionInput]
    # Arguments of `model.generate()` beside the tokens of this prompt: pixel_values, grids, token types.
    generate_kwargs: Callable[[], Mapping[str, Any]]
    num_bytes: int = 0  # of the pixels that it holds

    @property
    def num_audio_tokens(self) -> int:
        return sum(one.num_tokens for one in self.inputs if one.kind == "audio")


@dataclass(frozen=True, slots=True, eq=False)
class PictureSample:
    prompt_ids: Sequence[int]
    media: PreprocessedMedia


class VisionProcessor(Protocol):
    @property
    def kinds(self) -> Collection[MediumKind]: ...

    def sample(self) -> PictureSample | None:
        """A prompt with random pictures, on which a batch is tried. None: the batch knows this family."""
        ...

    def encode(self, prompt: ChatPrompt) -> list[int]:
        """Returns the tokens of a prompt, with all placeholders of its images and videos. Computes no pixels."""
        ...

    def preprocess(self, prompt_ids: Sequence[int], media: Sequence[Medium]) -> PreprocessedMedia:
        """Computes the pixels. Raises ValueError if these media do not match the placeholders of the prompt."""
        ...


def preprocessed(vision: VisionProcessor, prompt_ids: Sequence[int], media: Sequence[Medium]) -> PreprocessedMedia:
    """Of a request: its media are the cause if the processor fails, whose message may contain more than it should."""
    try:
        return vision.preprocess(prompt_ids, media)
    except ValueError as error:
        message = "The model's processor refused the messages: it cannot process these media together."
        raise BadRequest(message, param="messages") from error
