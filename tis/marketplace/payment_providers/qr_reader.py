"""Reads the QR code of a picture, in a process that is killed when it takes too long."""

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tis.errors import Unavailable, Unprocessable
from tis.sandbox.process import NoAnswer, SandboxProcess
from tis.sandbox.program import SandboxProgram, module_command

if TYPE_CHECKING:
    from tis.media.media_types import Pixels

COMMAND = module_command(f"{__package__}.qr_process")
NO_CODE = "No QR code was found in this picture: send a sharper one, or the text of the code."
_SECONDS = 10.0
_MAX_SIDE = 2000
_WAIT_SECONDS = 20.0


class QrReader:
    """One picture at a time, each in a process of its own: shops upload a code once."""

    def __init__(self, seconds: float = _SECONDS, command: Sequence[str] = COMMAND) -> None:
        self._seconds = seconds
        self._program = SandboxProgram("read QR codes", command, {"OMP_NUM_THREADS": "1", "OPENCV_LOG_LEVEL": "OFF"})
        self._turn = threading.Lock()

    def text_in(self, pixels: "Pixels") -> str:
        """In a thread. Raises Unprocessable if there is none."""
        message = _message(pixels)
        if not self._turn.acquire(timeout=_WAIT_SECONDS):
            raise Unavailable("Other codes are being read. Retry shortly.", retry_after=5)
        process = SandboxProcess(self._program)
        try:
            process.start()
            text = process.ask(self._seconds, message).decode("utf-8", "replace")
        except NoAnswer:
            raise Unprocessable(NO_CODE) from None
        except OSError:  # the process or its thread could not be started
            raise Unavailable("QR codes cannot be read right now. Retry later.", retry_after=5) from None
        finally:
            process.close()
            self._turn.release()
        if not text:
            raise Unprocessable(NO_CODE)
        return text


def _message(pixels: "Pixels") -> bytes:
    """The width, in four bytes, and the rows of grey: a code needs no colours, and no more than 2,000 pixels."""
    import numpy as np
    from PIL import Image

    picture = Image.fromarray(pixels).convert("L")
    picture.thumbnail((_MAX_SIDE, _MAX_SIDE))
    return picture.width.to_bytes(4) + np.asarray(picture, np.uint8).tobytes()
