"""The OCR engine, which is imported and loaded with the first picture."""

import threading
from collections.abc import Callable
from datetime import date
from importlib.util import find_spec
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from tis.ktp.errors import RETRY_SECONDS, OcrUnavailable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from tis.ktp.ocr_card_reader import OcrCard

Stage: TypeAlias = Literal["found", "rectified", "read", "checked"]
OnStage: TypeAlias = Callable[[Stage], None]

_OCR_PACKAGES = ("rapidocr", "onnxruntime", "cv2")


class PictureReader(Protocol):
    def read(self, picture: "NDArray[np.uint8]", today: date, on_stage: OnStage) -> "OcrCard":
        """Blocks. May be called from several threads; calls `on_stage` there."""
        ...


def load_ocr() -> PictureReader:
    """Blocks for a second: it imports onnxruntime and OpenCV, and loads 30 MB of weights."""
    from tis.ktp.ocr import RapidTextReader
    from tis.ktp.ocr_card_reader import OcrCardReader
    from tis.ktp.regions import regions

    return OcrCardReader(RapidTextReader(), regions())


class LazyOcr:
    """The OCR engine, loaded with the first picture. A load that failed is repeated with the next one."""

    def __init__(self, load: Callable[[], PictureReader] = load_ocr) -> None:
        self._load = load
        self._reader: PictureReader | None = None
        self._lock = threading.Lock()
        # Looked for once: to ask the disk takes as long as the rest of /health.
        missing = [] if load is not load_ocr else [name for name in _OCR_PACKAGES if find_spec(name) is None]
        self.is_installed = not missing
        self.failure = f"The OCR engine is not installed: {', '.join(missing)}." if missing else None

    @property
    def is_loaded(self) -> bool:
        return self._reader is not None

    def reader(self) -> PictureReader:
        """Blocks. Raises OcrUnavailable."""
        with self._lock:
            if self._reader is None:
                self._reader = self._loaded()
            return self._reader

    def _loaded(self) -> PictureReader:
        try:
            reader = self._load()
        except Exception as fault:  # boundary to onnxruntime and OpenCV: what they raise is not ours
            self.failure = f"The OCR engine could not be loaded ({type(fault).__name__})."
            raise OcrUnavailable(self.failure, retry_after=RETRY_SECONDS) from None
        self.failure = None
        return reader
