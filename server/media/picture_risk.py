"""Which pictures could keep a thread busy for minutes: they are decoded in a process, where they can be killed.

Thousands of scans over a JPEG and millions of strips in a TIFF are allowed, and do not show in width and height. What
is wrongly suspected only takes a quarter of a second longer.
"""

_MOST_SCANS = 64  # a progressive JPEG has about ten


def is_risky(data: bytes) -> bool:
    if data.startswith(b"\xff\xd8"):
        return data.count(b"\xff\xda") > _MOST_SCANS
    return data.startswith((b"II", b"MM")) or data[4:8] == b"ftyp"  # TIFF and HEIF
