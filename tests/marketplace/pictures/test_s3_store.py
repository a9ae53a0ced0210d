"""Pictures in a bucket: signatures as AWS documents them, and a real server that checks them."""

import socket
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import httpx2
import pytest

from tests.marketplace.accounts import register_supplier
from tests.marketplace.conftest import SECRET
from tests.marketplace.market_server import new_product
from tests.marketplace.pictures.bucket_server import BUCKET, BucketServer, bucket_server
from tests.marketplace.pictures.photos import opened, photo, upload, uploaded
from tests.serving import served, settings_with
from tis.marketplace.picture_files.aws_signature import AwsCredentials, quoted_path, signed_headers
from tis.marketplace.picture_files.picture_storage import open_picture_store
from tis.marketplace.picture_files.picture_store import PicturesUnavailable
from tis.marketplace.picture_files.s3_store import S3Store, credentials_of
from tis.setting_types import SettingsError

HASH = "ab" * 32
# Those of the examples in the documentation of AWS, known to everybody.
_EXAMPLE = AwsCredentials("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")
_THEN = datetime(2013, 5, 24, tzinfo=UTC)


@pytest.fixture(scope="module")
def bucket() -> Iterator[BucketServer]:
    with bucket_server() as running:
        yield running


@pytest.fixture
def store(bucket: BucketServer) -> Iterator[S3Store]:
    store = open_picture_store(bucket.pictures_url(), bucket.environ)
    assert isinstance(store, S3Store)
    yield store
    store.close()


def test_a_get_is_signed_as_in_the_documentation_of_aws() -> None:
    headers = signed_headers(
        "GET",
        "examplebucket.s3.amazonaws.com",
        "/test.txt",
        b"",
        "us-east-1",
        _EXAMPLE,
        _THEN,
        {"Range": "bytes=0-9"},
    )
    assert headers["authorization"] == (
        "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, "
        "SignedHeaders=host;range;x-amz-content-sha256;x-amz-date, "
        "Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"
    )


def test_a_put_is_signed_as_in_the_documentation_of_aws() -> None:
    headers = signed_headers(
        "PUT",
        "examplebucket.s3.amazonaws.com",
        quoted_path("/test$file.text"),
        b"Welcome to Amazon S3.",
        "us-east-1",
        _EXAMPLE,
        _THEN,
        {"Date": "Fri, 24 May 2013 00:00:00 GMT", "x-amz-storage-class": "REDUCED_REDUNDANCY"},
    )
    assert headers["authorization"].endswith(
        "Signature=98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"
    )


def test_a_token_of_temporary_credentials_is_signed_and_nothing_secret_is_shown() -> None:
    temporary = AwsCredentials("AKIA", "a-secret", "a-token")
    headers = signed_headers("GET", "h", "/", b"", "us-east-1", temporary, _THEN)
    assert headers["x-amz-security-token"] == "a-token" and "x-amz-security-token" in headers["authorization"]
    assert "a-secret" not in repr(temporary) + str(headers) and "a-token" not in repr(temporary)


def test_what_is_put_can_be_read_until_it_is_deleted(store: S3Store) -> None:
    assert store.get(HASH, "small") is None
    store.put(HASH, "small", b"RIFF one")
    store.put(HASH, "small", b"RIFF two")
    assert store.get(HASH, "small") == b"RIFF two" and store.get(HASH, "large") is None
    store.delete(HASH)
    store.delete(HASH)
    assert store.get(HASH, "small") is None


def test_a_wrong_secret_or_a_bucket_that_is_not_there_is_a_503_and_the_log_says_why(
    bucket: BucketServer, caplog: pytest.LogCaptureFixture
) -> None:
    wrong = open_picture_store(bucket.pictures_url(), {**bucket.environ, "AWS_SECRET_ACCESS_KEY": "another"})
    absent = open_picture_store(bucket.pictures_url().replace(f"//{BUCKET}/", "//no-such-bucket/"), bucket.environ)
    for store, reason in ((wrong, "SignatureDoesNotMatch"), (absent, "NoSuchBucket")):
        with pytest.raises(PicturesUnavailable) as raised:
            store.put(HASH, "small", b"x")
        assert raised.value.status == 503 and reason not in raised.value.message
        assert reason in caplog.text
        with pytest.raises(PicturesUnavailable):
            store.get(HASH, "small")
        store.close()


def test_a_bucket_that_does_not_answer_is_given_up_in_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        store = S3Store(f"http://127.0.0.1:{port}", "/b", "us-east-1", lambda: _EXAMPLE, max_seconds=0.2)
        store._client.timeout = httpx2.Timeout(0.2)
        with pytest.raises(PicturesUnavailable):
            store.get(HASH, "small")
        store.close()
    refused = S3Store(f"http://127.0.0.1:{port}", "/b", "us-east-1", lambda: _EXAMPLE)
    with pytest.raises(PicturesUnavailable):
        refused.put(HASH, "small", b"x")
    refused.close()


def test_an_answer_without_end_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def pour() -> None:
            for _ in range(2):
                connection, _ = listener.accept()
                with connection:
                    connection.recv(65536)
                    connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
                    try:
                        while True:
                            connection.sendall(bytes(2**20))
                    except OSError:
                        return

        thread = threading.Thread(target=pour)
        thread.start()
        port = listener.getsockname()[1]
        store = S3Store(f"http://127.0.0.1:{port}", "/b", "us-east-1", lambda: _EXAMPLE)
        with pytest.raises(PicturesUnavailable):
            store.get(HASH, "small")
        store.close()
        thread.join(60)
        assert not thread.is_alive()


def test_credentials_come_from_the_environment_or_from_the_file_which_may_change(tmp_path: Path) -> None:
    assert credentials_of({"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}) == AwsCredentials("a", "b")
    file = tmp_path / "credentials"
    environ = {"AWS_SHARED_CREDENTIALS_FILE": str(file)}
    with pytest.raises(SettingsError, match="no credentials"):
        credentials_of(environ)
    file.write_text("[default]\naws_access_key_id = c\naws_secret_access_key = d%d\n[shop]\naws_access_key_id=e\n")
    assert credentials_of(environ) == AwsCredentials("c", "d%d")
    with pytest.raises(SettingsError, match="shop"):
        credentials_of({**environ, "AWS_PROFILE": "shop"})
    file.write_text("[default]\naws_access_key_id=c\naws_secret_access_key=new\naws_session_token=t\n")
    assert credentials_of(environ) == AwsCredentials("c", "new", "t")


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("ftp://x/y", "must be file"),
        ("file://elsewhere/pictures", "must be file"),
        ("/var/pictures", "must be file"),
        ("s3://", "must be file"),
        ("s3://key:secret@bucket/x", "no credentials"),
        ("s3://bucket/x?endpoint=ftp://x", "endpoint must be"),
        ("s3://bucket/x?endpoint=https://x/y", "endpoint must be"),
        ("s3://bucket/x?addressing=odd", "addressing must be"),
        ("s3://bucket/x?secret=1", "unknown option secret"),
    ],
)
def test_an_address_of_no_store_is_refused_at_the_start(url: str, why: str) -> None:
    with pytest.raises(SettingsError, match=why):
        open_picture_store(url, {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"})


def test_a_server_keeps_pictures_in_a_bucket_and_serves_them(
    bucket: BucketServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in bucket.environ.items():
        monkeypatch.setenv(name, value)
    settings = settings_with(
        marketplace_auth="open", jwt_secret_key=SECRET, pictures_url=bucket.pictures_url("of the server")
    )
    with served(settings) as running, httpx2.Client(base_url=running.url, timeout=60) as client:
        product = new_product(client, register_supplier(client)["id"])["id"]
        made = uploaded(client, product, photo(1, (600, 400)))
        assert opened(client.get(made["urls"]["medium"])).size == (480, 320)
        assert client.get(f"/api/pictures/{HASH}/small.webp").status_code == 404
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "revoked")
        refused = upload(client, product, photo(2))
        assert (refused.status_code, refused.json()["detail"]) == (
            503,
            "The store of pictures does not answer. Retry later.",
        )
        assert len(client.get(f"/api/products/{product}").json()["pictures"]) == 1
