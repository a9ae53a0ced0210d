"""QR codes as pictures: what is drawn is read back, also from a photo; a picture without one is refused."""

import sys
from typing import TypeAlias

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from tests.marketplace.payments.codes import drawn, qris_text
from tis.errors import ServiceError, Unprocessable
from tis.marketplace.payment_providers.qr_reader import QrReader
from tis.marketplace.payments.qr_drawing import qr_svg
from tis.marketplace.payments.qris import read_qris

Pixels: TypeAlias = NDArray[np.uint8]


def photographed(code: Pixels) -> Pixels:
    """Turned, blurred and darker, on a larger page."""
    page = np.full((1500, 1200, 3), 235, np.uint8)
    page[300 : 300 + code.shape[0], 250 : 250 + code.shape[1]] = code
    turned = cv2.warpAffine(page, cv2.getRotationMatrix2D((600, 750), 6, 0.95), (1200, 1500), borderValue=(90, 90, 90))
    return (cv2.GaussianBlur(turned, (5, 5), 0) * 0.8).astype(np.uint8)


@pytest.mark.parametrize("amount", [1, 15_000, 9_999_999_999])
def test_what_is_drawn_is_read_back(amount: int) -> None:
    text = read_qris(qris_text()).with_amount(amount).text
    assert QrReader().text_in(drawn(text)) == text


def test_a_code_is_read_from_a_photo() -> None:
    text = qris_text()
    assert QrReader().text_in(photographed(drawn(text, scale=10))) == text


@pytest.mark.parametrize(("height", "width"), [(1, 1), (1, 900), (900, 1), (20, 20), (3000, 3000), (1, 6000)])
def test_a_picture_without_a_code_is_refused(height: int, width: int, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(Unprocessable, match="No QR code"):
        QrReader().text_in(np.full((height, width, 3), 200, np.uint8))
    assert not caplog.records  # the reading process did not die of it


def test_a_reader_that_hangs_is_killed_and_the_next_picture_is_read() -> None:
    hanging = (
        "import time; from tis.sandbox.child import connect_to_server as connect, say_ready; "
        "say_ready(connect()); time.sleep(600)"
    )
    reader = QrReader(seconds=0.5, command=(sys.executable, "-c", hanging))
    for _ in range(2):
        with pytest.raises(Unprocessable):
            reader.text_in(np.full((50, 50, 3), 200, np.uint8))


def test_a_reader_that_does_not_start_is_no_fault_of_the_picture() -> None:
    with pytest.raises(ServiceError) as failure:
        QrReader(command=(sys.executable, "-c", "raise SystemExit(3)")).text_in(np.full((50, 50, 3), 200, np.uint8))
    assert failure.value.status == 500


def test_the_drawing_is_an_svg_of_dark_modules_on_white() -> None:
    svg = qr_svg(qris_text())
    assert svg.startswith("<svg ") and svg.endswith("</svg>") and 'fill="#fff"' in svg
    assert "<script" not in svg and "style=" not in svg
