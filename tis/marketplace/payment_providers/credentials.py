"""Seals what a shop's account at a provider is opened with. The key comes from the signing secret of the server.

Encrypt, then MAC, both by HMAC-SHA-256 of keys that serve nothing else: a stream of HMAC(key, nonce, counter), and a
tag over nonce, text and the row that it belongs to. The standard library has no cipher. Another secret, another shop
or another provider: it does not open.
"""

import base64
import binascii
import hashlib
import hmac
import json
import secrets
from collections.abc import Mapping

from tis.marketplace.kit.signing import Signer

_VERSION = "v1."
_NONCE_BYTES, _TAG_BYTES, _BLOCK_BYTES = 16, 32, 32


class CredentialsLost(Exception):
    """They were sealed with another signing secret, or the row was changed."""


def seal(signer: Signer, supplier_id: int, provider: str, values: Mapping[str, str]) -> str:
    nonce = secrets.token_bytes(_NONCE_BYTES)
    hidden = _mixed(signer, nonce, json.dumps(dict(values)).encode())
    tag = _tag(signer, supplier_id, provider, nonce + hidden)
    return _VERSION + base64.b64encode(nonce + hidden + tag).decode()


def unseal(signer: Signer, supplier_id: int, provider: str, sealed: str) -> dict[str, str]:
    try:
        data = base64.b64decode(sealed.removeprefix(_VERSION), validate=True)
    except binascii.Error:
        raise CredentialsLost from None
    content, tag = data[:-_TAG_BYTES], data[-_TAG_BYTES:]
    if not hmac.compare_digest(tag, _tag(signer, supplier_id, provider, content)):
        raise CredentialsLost
    values = json.loads(_mixed(signer, content[:_NONCE_BYTES], content[_NONCE_BYTES:]))
    return {str(name): str(value) for name, value in values.items()}


def _key(signer: Signer, use: str) -> bytes:
    return bytes.fromhex(signer.digest(f"credentials of payment providers: {use}".encode()))


def _mixed(signer: Signer, nonce: bytes, data: bytes) -> bytes:
    """Its own inverse."""
    key = _key(signer, "cipher")
    stream = b"".join(
        hmac.digest(key, nonce + counter.to_bytes(4), hashlib.sha256)
        for counter in range(-(-len(data) // _BLOCK_BYTES))
    )
    return bytes(one ^ other for one, other in zip(data, stream, strict=False))


def _tag(signer: Signer, supplier_id: int, provider: str, content: bytes) -> bytes:
    return hmac.digest(_key(signer, "tag"), f"{supplier_id} {provider} ".encode() + content, hashlib.sha256)
