"""A bucket of S3, MinIO, R2, GCS and the like: PUT, GET and DELETE of whole objects, signed here.

Why no SDK: docs/decisions/0133-pictures.md.
"""

import configparser
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal
from urllib.parse import parse_qs, unquote, urlsplit

from tis.marketplace.kit.picture_links import PICTURE_SIZES, PictureSize
from tis.marketplace.picture_files.aws_signature import AwsCredentials, quoted_path, signed_headers
from tis.marketplace.picture_files.picture_store import PicturesUnavailable
from tis.setting_types import SettingsError

_OPTIONS = frozenset({"endpoint", "region", "addressing"})
_CONNECT_SECONDS, _READ_SECONDS = 3.0, 5.0
_MAX_SECONDS = 10.0  # of a request with its second try
_MAX_BYTES = 8 * 2**20
_MAX_CONNECTIONS = 16
_WORTH_A_RETRY = frozenset({500, 502, 503, 504})
Method = Literal["GET", "PUT", "DELETE"]


def s3_store_of(url: str, environ: Mapping[str, str]) -> "S3Store":
    """`s3://BUCKET/PREFIX?endpoint=https://...&region=...&addressing=path|virtual`."""
    parts = urlsplit(url)
    options = {name: values[-1] for name, values in parse_qs(parts.query).items()}
    if unknown := options.keys() - _OPTIONS:
        raise SettingsError(f"PICTURES_URL has the unknown option {min(unknown)}; there are {', '.join(_OPTIONS)}")
    if parts.username or parts.password:
        raise SettingsError("PICTURES_URL takes no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
    region = options.get("region") or environ.get("AWS_REGION") or environ.get("AWS_DEFAULT_REGION") or "us-east-1"
    endpoint = options.get("endpoint") or f"https://s3.{region}.amazonaws.com"
    place = urlsplit(endpoint)
    if place.scheme not in ("http", "https") or not place.hostname or place.path.strip("/") or place.query:
        raise SettingsError("PICTURES_URL: endpoint must be http(s)://HOST or http(s)://HOST:PORT")
    addressing = options.get("addressing") or ("path" if "endpoint" in options else "virtual")
    if addressing not in ("path", "virtual"):
        raise SettingsError("PICTURES_URL: addressing must be path or virtual")
    credentials_of(environ)  # who has none shall know it at the start
    bucket, prefix = parts.netloc, unquote(parts.path).strip("/")
    host, folder = (f"{bucket}.{place.netloc}", "") if addressing == "virtual" else (place.netloc, f"/{bucket}")
    return S3Store(
        f"{place.scheme}://{host}", f"{folder}/{prefix}".rstrip("/"), region, lambda: credentials_of(environ)
    )


def credentials_of(environ: Mapping[str, str]) -> AwsCredentials:
    """Of the environment, else of the file of credentials, which may be renewed while the server runs."""
    key_id, secret = environ.get("AWS_ACCESS_KEY_ID"), environ.get("AWS_SECRET_ACCESS_KEY")
    if key_id and secret:
        return AwsCredentials(key_id, secret, environ.get("AWS_SESSION_TOKEN") or None)
    path = Path(environ.get("AWS_SHARED_CREDENTIALS_FILE") or Path.home() / ".aws" / "credentials")
    profile = environ.get("AWS_PROFILE") or "default"
    file = configparser.ConfigParser(interpolation=None)
    try:
        file.read_string(path.read_text(encoding="utf-8"))
        section = file[profile]
        token = section.get("aws_session_token") or None
        return AwsCredentials(section["aws_access_key_id"], section["aws_secret_access_key"], token)
    except (OSError, UnicodeDecodeError, KeyError, configparser.Error):
        raise SettingsError(
            "PICTURES_URL names a bucket, and there are no credentials: set AWS_ACCESS_KEY_ID and "
            f"AWS_SECRET_ACCESS_KEY, or write them under [{profile}] in {path}"
        ) from None


class S3Store:
    def __init__(
        self,
        origin: str,
        folder: str,
        region: str,
        credentials: Callable[[], AwsCredentials],
        *,
        max_seconds: float = _MAX_SECONDS,
    ) -> None:
        """Objects are called `folder/HASH/SIZE.webp`. Connections are kept open and shared by all threads."""
        import httpx2

        self._origin, self._folder, self._region, self._credentials = origin, folder, region, credentials
        self._max_seconds = max_seconds
        self._client = httpx2.Client(
            timeout=httpx2.Timeout(_READ_SECONDS, connect=_CONNECT_SECONDS),
            limits=httpx2.Limits(max_connections=_MAX_CONNECTIONS, max_keepalive_connections=_MAX_CONNECTIONS),
            trust_env=False,
            follow_redirects=False,  # the signature is for this host alone
        )

    def put(self, picture_id: str, size: PictureSize, data: bytes) -> None:
        self._ask("PUT", picture_id, size, data)

    def get(self, picture_id: str, size: PictureSize) -> bytes | None:
        return self._ask("GET", picture_id, size)

    def delete(self, picture_id: str) -> None:
        for size in PICTURE_SIZES:
            self._ask("DELETE", picture_id, size)

    def tidy(self) -> None:
        """An object is whole or is not there."""

    def close(self) -> None:
        self._client.close()

    def _ask(self, method: Method, picture_id: str, size: PictureSize, body: bytes = b"") -> bytes | None:
        """The body of the answer; None if there is no such object."""
        ends = time.monotonic() + self._max_seconds
        path = quoted_path(f"{self._folder}/{picture_id}/{size}.webp")
        for is_last in (False, True):
            status, answer = self._sent(method, path, body, ends)
            if status in (200, 204, 206):
                return answer
            if status == 404 and method != "PUT" and b"NoSuchBucket" not in answer:
                return None
            if is_last or status not in _WORTH_A_RETRY or time.monotonic() > ends:
                break
        raise PicturesUnavailable(f"{method} got {status or 'no answer'}: {_shown(answer)}")

    def _sent(self, method: Method, path: str, body: bytes, ends: float) -> tuple[int, bytes]:
        """Status 503 if there is no answer."""
        import httpx2

        headers = {"content-type": "image/webp"} if method == "PUT" else {}
        host = self._origin.partition("://")[2]
        try:
            credentials = self._credentials()
            signed = signed_headers(method, host, path, body, self._region, credentials, datetime.now(UTC), headers)
            with self._client.stream(method, f"{self._origin}{path}", content=body or None, headers=signed) as answer:
                return answer.status_code, self._read(answer, ends)
        except httpx2.HTTPError as error:
            return 503, type(error).__name__.encode()
        except SettingsError as error:  # the file of credentials is gone
            return 403, str(error).encode()

    def _read(self, answer: Any, ends: float) -> bytes:
        data = bytearray()
        for chunk in answer.iter_raw():
            data += chunk
            if len(data) > _MAX_BYTES or time.monotonic() > ends:
                raise PicturesUnavailable("an answer was too long, or too slow")
        return bytes(data)


def _shown(answer: bytes) -> str:
    """Error documents are XML; what is wrong stands in their beginning."""
    text = answer[:300].decode("utf-8", "replace")
    return "".join(one if one.isprintable() else " " for one in text)
