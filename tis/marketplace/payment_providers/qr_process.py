"""The child process of `QrReader`: looks for a QR code in each picture that it receives, and sends back its text."""

from typing import TYPE_CHECKING, Any

from tis.sandbox.child import connect_to_server, exit_after, limit_files, limit_memory, say_ready

# The server kills this process earlier, unless the server itself was killed.
_MAX_SECONDS = 30
_MEMORY_BYTES = 4 << 30  # address space: OpenCV maps most of it before it begins
_HEADER_BYTES = 4
_LEAST_SIDE = 21  # modules of the smallest code

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def main() -> None:
    server = connect_to_server()
    limit_memory(_MEMORY_BYTES)
    limit_files(0)
    import cv2

    cv2.setNumThreads(1)
    say_ready(server)
    while True:
        exit_after(None)
        try:
            message = server.recv_bytes()
        except EOFError:  # the server has closed the connection or died
            return
        exit_after(_MAX_SECONDS)
        server.send_bytes(_text_in(_picture(message)).encode("utf-8", "replace"))


def _picture(message: bytes) -> "NDArray[np.uint8]":
    """The width, in four bytes, and the rows of grey."""
    import numpy as np

    width = int.from_bytes(message[:_HEADER_BYTES])
    return np.frombuffer(message, np.uint8, offset=_HEADER_BYTES).reshape(-1, width)


def _text_in(picture: "NDArray[np.uint8]") -> str:
    """The two detectors find different codes, and a photo may be found in one size only."""
    import cv2

    detectors: tuple[Any, ...] = cv2.QRCodeDetector(), cv2.QRCodeDetectorAruco()
    for scale in (1.0, 0.5, 2.0, 0.7, 1.4):
        if (scale > 1 and picture.size > 2 << 20) or min(picture.shape) * scale < _LEAST_SIDE:
            continue
        sized = cv2.resize(picture, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
        for detector in detectors:
            if text := detector.detectAndDecode(sized)[0]:
                return str(text)
    return ""


if __name__ == "__main__":
    main()
