"""A text as a QR code, drawn as SVG."""

import io

_QUIET_ZONE = 4  # modules, as the standard asks


def qr_svg(text: str) -> str:
    """Black on white in any theme: scanners want it so. It is sized by the page that shows it."""
    import segno

    drawn = io.BytesIO()
    code = segno.make_qr(text, error="m")
    code.save(drawn, kind="svg", border=_QUIET_ZONE, light="#fff", omitsize=True, xmldecl=False, nl=False)
    return drawn.getvalue().decode("ascii")
