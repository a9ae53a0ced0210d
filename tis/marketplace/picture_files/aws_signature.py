"""Signature Version 4 of AWS, for requests to S3 whose whole body is at hand. Pure functions."""

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from urllib.parse import quote

_ALGORITHM = "AWS4-HMAC-SHA256"
_TERMINATOR = "aws4_request"
_SERVICE = "s3"


@dataclass(frozen=True)
class AwsCredentials:
    key_id: str
    secret: str = field(repr=False)
    token: str | None = field(default=None, repr=False)  # of temporary credentials


def quoted_path(path: str) -> str:
    """As S3 signs it and as it has to be sent: quoted once, slashes as they are."""
    return quote(path, safe="/-_.~")


def signed_headers(
    method: str,
    host: str,
    path: str,
    body: bytes,
    region: str,
    credentials: AwsCredentials,
    moment: datetime,
    headers: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """All headers of the request, of which `headers` are those beyond the ones that are always signed.

    `path` is a `quoted_path`; there is no query. `moment` is in UTC.
    """
    body_hash = hashlib.sha256(body).hexdigest()
    timestamp = moment.strftime("%Y%m%dT%H%M%SZ")
    sent = {name.lower(): value.strip() for name, value in (headers or {}).items()}
    sent |= {"host": host, "x-amz-content-sha256": body_hash, "x-amz-date": timestamp}
    if credentials.token:
        sent["x-amz-security-token"] = credentials.token
    names = ";".join(sorted(sent))
    lines = "".join(f"{name}:{sent[name]}\n" for name in sorted(sent))
    canonical = f"{method}\n{path}\n\n{lines}\n{names}\n{body_hash}"
    scope = f"{timestamp[:8]}/{region}/{_SERVICE}/{_TERMINATOR}"
    text = f"{_ALGORITHM}\n{timestamp}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
    key = f"AWS4{credentials.secret}".encode()
    for part in (timestamp[:8], region, _SERVICE, _TERMINATOR):
        key = hmac.digest(key, part.encode(), "sha256")
    signature = hmac.digest(key, text.encode(), "sha256").hex()
    credential = f"{credentials.key_id}/{scope}"
    sent["authorization"] = f"{_ALGORITHM} Credential={credential}, SignedHeaders={names}, Signature={signature}"
    return sent
