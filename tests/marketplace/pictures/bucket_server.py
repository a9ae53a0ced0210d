"""moto as a process: a server that speaks the protocol of S3 and checks signatures as AWS does."""

import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import httpx2

from tests.serving import bare_environment, free_port

BUCKET = "goods"
_POLICY = '{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"s3:*","Resource":"*"}]}'
# What it answers to anybody: a bucket, a user, its policy and its key. Then it asks for signatures.
_NUM_FREE_REQUESTS = 4


@dataclass(frozen=True)
class BucketServer:
    url: str
    key_id: str
    secret: str

    @property
    def environ(self) -> dict[str, str]:
        return {"AWS_ACCESS_KEY_ID": self.key_id, "AWS_SECRET_ACCESS_KEY": self.secret}

    def pictures_url(self, prefix: str = "shop/pictures") -> str:
        return f"s3://{BUCKET}/{prefix}?endpoint={self.url}&region=ap-southeast-3"


@contextmanager
def bucket_server() -> Iterator[BucketServer]:
    port = free_port()
    popen = subprocess.Popen(
        [sys.executable, "-m", "moto.server", "--host", "127.0.0.1", "--port", str(port)],
        env={**bare_environment(), "INITIAL_NO_AUTH_ACTION_COUNT": str(_NUM_FREE_REQUESTS)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        url = f"http://127.0.0.1:{port}"
        _wait_until_it_listens(popen, url)
        yield _prepared(url)
    finally:
        popen.kill()
        popen.wait()


def _wait_until_it_listens(popen: "subprocess.Popen[bytes]", url: str) -> None:
    ends = time.monotonic() + 60
    while popen.poll() is None and time.monotonic() < ends:
        try:
            httpx2.get(f"{url}/moto-api/data.json", timeout=5)
            return
        except httpx2.TransportError:
            time.sleep(0.05)
    raise AssertionError(f"moto does not listen (exit code {popen.poll()})")


def _prepared(url: str) -> BucketServer:
    httpx2.put(f"{url}/{BUCKET}", timeout=30).raise_for_status()
    _iam(url, Action="CreateUser", UserName="shop")
    _iam(url, Action="PutUserPolicy", UserName="shop", PolicyName="all", PolicyDocument=_POLICY)
    answer = _iam(url, Action="CreateAccessKey", UserName="shop")
    found = [re.search(f"<{name}>([^<]+)<", answer) for name in ("AccessKeyId", "SecretAccessKey")]
    assert found[0] and found[1], answer
    return BucketServer(url, found[0][1], found[1][1])


def _iam(url: str, **action: str) -> str:
    scope = "AWS4-HMAC-SHA256 Credential=anybody/20261128/us-east-1/iam/aws4_request, SignedHeaders=host, Signature=0"
    answer = httpx2.post(url, data={**action, "Version": "2010-05-08"}, headers={"Authorization": scope}, timeout=30)
    assert answer.status_code == 200, answer.text
    return answer.text
