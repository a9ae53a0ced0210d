"""The data types of this package: what a request names, and what the loader makes of it."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:  # a server that receives no images never imports numpy
    import numpy as np
    from numpy.typing import NDArray

    Pixels: TypeAlias = NDArray[np.uint8]
    Samples: TypeAlias = NDArray[np.float32]

MediaKind: TypeAlias = Literal["image", "video", "audio"]


@dataclass(frozen=True, slots=True)
class MediaSource:
    kind: MediaKind
    value: str
    param: str  # the place in the request, for the error's `param`
    # url: http(s):, data:, file:, a path, or raw base64 if it is none of these. base64: raw, or a data: URI.
    encoding: Literal["url", "base64"] = "url"


@dataclass(frozen=True, slots=True, eq=False)
class LoadedImage:
    pixels: "Pixels"  # height x width x 3
    data: bytes  # the file as the client sent it
    digest: str

    @property
    def num_bytes(self) -> int:
        return self.pixels.nbytes


@dataclass(frozen=True, slots=True, eq=False)
class LoadedVideo:
    frames: "Pixels"  # frames x height x width x 3
    times: tuple[float, ...]  # when the video shows each frame, in seconds from its first frame
    fps: float  # of the video, not of the sampled frames
    data: bytes
    digest: str

    @property
    def num_bytes(self) -> int:
        return self.frames.nbytes


@dataclass(frozen=True, slots=True, eq=False)
class LoadedSound:
    samples: "Samples"  # of one channel, from -1 to 1, at `MediaLimits.sound_rate`
    data: bytes
    digest: str

    @property
    def num_bytes(self) -> int:
        return self.samples.nbytes


LoadedMedium: TypeAlias = LoadedImage | LoadedVideo | LoadedSound
