"""The input of a model: messages, tools, images, videos and sounds; or a raw text."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

Detail = Literal["low", "high", "auto"]
MediumKind = Literal["image", "video", "audio"]
SOUND_RATE = 16_000  # samples in a second


@dataclass(frozen=True, slots=True, eq=False)
class Picture:
    kind: ClassVar[MediumKind] = "image"
    pixels: Any  # numpy, height x width x 3, uint8
    digest: str  # of the bytes that it was decoded from
    detail: Detail = "auto"
    data: bytes = b""  # the file, for an engine elsewhere


@dataclass(frozen=True, slots=True, eq=False)
class Video:
    """Frames sampled from a video file."""

    kind: ClassVar[MediumKind] = "video"
    frames: Any  # numpy, frames x height x width x 3, uint8
    times: tuple[float, ...]  # of each frame, in seconds
    fps: float  # of the file
    digest: str
    detail: Detail = "auto"
    data: bytes = b""


@dataclass(frozen=True, slots=True, eq=False)
class Sound:
    kind: ClassVar[MediumKind] = "audio"
    detail: ClassVar[Detail] = "auto"
    samples: Any  # numpy, float32 from -1 to 1, one channel, SOUND_RATE of them in a second
    digest: str
    data: bytes = b""

    @property
    def seconds(self) -> float:
        return len(self.samples) / SOUND_RATE


Medium = Picture | Video | Sound

# A message is what chat templates take: {"role": ..., "content": ..., ...}, nested as its JSON was. Its content is a
# string, or parts in order: {"type": "text", "text": str}, {"type": "image", "image": Picture},
# {"type": "video", "video": Video}, {"type": "audio", "audio": Sound}.
Message = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ChatPrompt:
    messages: Sequence[Message]
    tools: Sequence[Mapping[str, Any]] = ()
    template_options: Mapping[str, Any] = field(default_factory=dict)
    add_generation_prompt: bool = True
    continue_final_message: bool = False
    may_truncate: bool = False  # drop the oldest turns if it is too long, whatever EngineLimits.compress says
    max_tokens: int | None = None  # a longer prompt is refused, if possible before all of it is encoded
    prediction: str = ""  # what the client expects the answer to be: the more of it is right, the sooner it is there
    is_only_counted: bool = False  # it may be longer than the context, as nothing follows it
    one_call: bool = False  # the client takes one call of a tool in an answer
    emit_markers: bool = False  # markers of reasoning and tool calls appear in the text, as marker characters


@dataclass(frozen=True, slots=True)
class RawPrompt:
    """A text that goes to the model as it is, without a chat template; or the token ids of one."""

    text: str | Sequence[int]
    adds_special_tokens: bool = True  # those that the tokenizer puts around a text, such as BOS


def text_of(message: Message) -> str:
    content = message.get("content")
    if isinstance(content, str):
        return content
    return "".join(part["text"] for part in content or () if part["type"] == "text")


def media_of(messages: Sequence[Message]) -> list[Medium]:
    """Images, videos and sounds in the order of the prompt."""
    return [part[part["type"]] for message in messages for part in _parts(message) if part["type"] != "text"]


def with_placeholders(message: Message) -> Message:
    """The message as a chat template takes it: with the places of media, without their data."""
    if not isinstance(message.get("content"), list):
        return message
    parts = [part if part["type"] == "text" else {"type": part["type"]} for part in _parts(message)]
    return {**message, "content": parts}


def _parts(message: Message) -> Iterator[Mapping[str, Any]]:
    content = message.get("content")
    if isinstance(content, list):
        yield from content
