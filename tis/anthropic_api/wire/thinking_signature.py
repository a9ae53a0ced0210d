"""The signatures of thinking blocks: a client sends the blocks of earlier answers back, and the server tells its own.

A signature is a checksum of the text. It is no secret: the model is the client's own, and whoever wants other thoughts
in a conversation may write them into a chat. It keeps away what was cut on the way, and the thoughts of other services,
which this model never had. If the client wants no thinking shown, the signature carries the text.
"""

import hashlib
from base64 import urlsafe_b64decode, urlsafe_b64encode

_DIGEST, _TEXT = "tis1.", "tis1t."
_LABEL = b"thinking of tis\n"


class ThinkingSignature:
    """Of a block that grows."""

    def __init__(self, *, carries_text: bool) -> None:
        self._digest = None if carries_text else hashlib.sha256(_LABEL)
        self._texts: list[bytes] = []

    def add(self, text: str) -> None:
        data = text.encode(errors="surrogatepass")
        if self._digest:
            self._digest.update(data)
        else:
            self._texts.append(data)

    def whole(self) -> str:
        if self._digest:
            return _DIGEST + _encoded(self._digest.digest())
        return _TEXT + _encoded(b"".join(self._texts))


def signed_thinking(thinking: str, signature: str) -> str | None:
    """The text that the signature is of; None if this server made no such block."""
    if signature.startswith(_TEXT):
        try:
            return _decoded(signature.removeprefix(_TEXT)).decode(errors="surrogatepass")
        except ValueError:
            return None
    made = ThinkingSignature(carries_text=False)
    made.add(thinking)
    return thinking if thinking and signature == made.whole() else None


def _encoded(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def _decoded(text: str) -> bytes:
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))
