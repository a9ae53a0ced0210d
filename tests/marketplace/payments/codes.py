"""QRIS codes of shops that do not exist."""

import io
from typing import TypeAlias

import numpy as np
import segno
from numpy.typing import NDArray
from PIL import Image

from tis.marketplace.payments.qris import crc16

Picture: TypeAlias = NDArray[np.uint8]


def qris_text(**changed: str) -> str:
    """A static code; `f54="1000"` sets the field 54, and an empty value leaves one out."""
    fields = {
        "00": "01",
        "01": "11",
        "26": _template({"00": "ID.CO.CONTOH.WWW", "01": "936009990000000017", "02": "000000000000002", "03": "UMI"}),
        "51": _template({"00": "ID.CO.QRIS.WWW", "02": "ID1020000000001", "03": "UMI"}),
        "52": "5732",
        "53": "360",
        "58": "ID",
        "59": "TOKO CONTOH",
        "60": "PONTIANAK",
        "61": "78111",
    } | {name.removeprefix("f"): value for name, value in changed.items()}
    return sealed(_template(dict(sorted((tag, value) for tag, value in fields.items() if value))))


def sealed(fields: str) -> str:
    """With the CRC behind."""
    content = fields + "6304"
    return content + f"{crc16(content.encode()):04X}"


def _template(fields: dict[str, str]) -> str:
    return "".join(f"{tag}{len(value):02d}{value}" for tag, value in fields.items())


def drawn(text: str, scale: int = 6) -> Picture:
    """The picture of a code."""
    file = io.BytesIO()
    segno.make_qr(text, error="m").save(file, kind="png", scale=scale, border=4)
    return np.asarray(Image.open(file).convert("RGB"), np.uint8)


def png(text: str) -> bytes:
    file = io.BytesIO()
    Image.fromarray(drawn(text)).save(file, "PNG")
    return file.getvalue()
