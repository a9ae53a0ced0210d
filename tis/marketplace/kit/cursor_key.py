"""Signs cursors, so that a client cannot make one of its own."""

import base64
import binascii
import hashlib
import hmac
import secrets

from tis.errors import BadRequest

FOREIGN_CURSOR = "This cursor is not of this list: filters and sort must stay as they were."
_SIGNATURE_BYTES = 16


class CursorKey:
    """Servers with the same secret read each other's cursors; without a secret, cursors end with the process."""

    def __init__(self, secret: bytes | None = None) -> None:
        secret = secret or secrets.token_bytes(32)
        self._key = hmac.digest(secret, b"cursors of lists", "sha256")

    def encode(self, payload: bytes, of_list: bytes) -> str:
        """`of_list` says which list it is, with its filters: the cursor is valid there only."""
        return base64.urlsafe_b64encode(self._signature(payload, of_list) + payload).rstrip(b"=").decode()

    def decode(self, cursor: str, of_list: bytes) -> bytes:
        try:
            padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
            raw = base64.b64decode(padded, altchars=b"-_", validate=True)
        except (ValueError, binascii.Error):
            raise BadRequest(FOREIGN_CURSOR) from None
        signature, payload = raw[:_SIGNATURE_BYTES], raw[_SIGNATURE_BYTES:]
        if not hmac.compare_digest(signature, self._signature(payload, of_list)):
            raise BadRequest(FOREIGN_CURSOR)
        return payload

    def _signature(self, payload: bytes, of_list: bytes) -> bytes:
        signed = len(of_list).to_bytes(8) + of_list + payload
        return hashlib.blake2b(signed, digest_size=_SIGNATURE_BYTES, key=self._key).digest()
