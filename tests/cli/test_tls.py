"""https by the server itself, with a certificate that is renewed while it runs."""

import shutil
import socket
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from tests.cli.tis_process import tis
from tests.openai_api.test_chat import CHAT, said
from tests.serving import Process, free_port, server_process, until_listening
from tests.test_status import until
from tis.cli.tls import CertificateError, Certificates

pytestmark = pytest.mark.long

CERTIFICATE, KEY = "cert.pem", "key.pem"
NEW = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=tis"


def write_pair(folder: Path, certificate: str = CERTIFICATE, key: str = KEY) -> bytes:
    """A new certificate for localhost that vouches for itself; returns it as a client sees it."""
    made = [*NEW.split(), "-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", certificate]
    subprocess.run(made, cwd=folder, check=True, capture_output=True)
    return ssl.PEM_cert_to_DER_cert((folder / certificate).read_text())


def shown(port: int, server_name: str | None = "localhost") -> bytes | None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with (
        socket.create_connection(("127.0.0.1", port), timeout=10) as plain,
        context.wrap_socket(plain, server_hostname=server_name) as secured,
    ):
        return secured.getpeercert(binary_form=True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tls")
    write_pair(folder)
    return folder


@pytest.fixture(scope="module")
def process(folder: Path) -> Iterator[Process]:
    port = free_port()
    files = {"SSL_CERTFILE": str(folder / "cert.pem"), "SSL_KEYFILE": str(folder / "key.pem")}
    with server_process(PORT=str(port), API_KEYS="sk-of-tls", **files) as running:
        until_listening(port)
        yield Process(f"https://localhost:{port}", running.popen)


def test_a_client_that_knows_the_certificate_chats_and_streams(process: Process, folder: Path) -> None:
    trusted = ssl.create_default_context(cafile=str(folder / "cert.pem"))
    with httpx2.Client(base_url=process.url, headers={"X-Api-Key": "sk-of-tls"}, verify=trusted) as client:
        assert client.post(CHAT, json=said("Halo")).json()["choices"][0]["message"]["content"] == "Halo"
        with client.stream("POST", CHAT, json=said("Halo", stream=True)) as answer:
            assert "[DONE]" in answer.read().decode()
        with pytest.raises(httpx2.TransportError):
            httpx2.get(f"{process.url.replace('https', 'http')}/live")


def test_a_renewed_certificate_is_used_for_new_connections_and_half_a_pair_is_not(
    process: Process, folder: Path
) -> None:
    port = int(process.url.rpartition(":")[2])
    first = ssl.PEM_cert_to_DER_cert((folder / CERTIFICATE).read_text())
    assert shown(port) == first
    second = write_pair(folder, "new.pem", "new-key.pem")
    shutil.copy(folder / "new.pem", folder / CERTIFICATE)
    with pytest.raises(CertificateError, match="SSL_CERTFILE"):
        Certificates(folder / CERTIFICATE, folder / KEY)
    assert shown(port) == first
    shutil.copy(folder / "new-key.pem", folder / KEY)
    until(lambda: shown(port) == second)
    assert shown(port, server_name=None) == second


def test_what_cannot_be_used_ends_the_start_with_one_line(tmp_path: Path) -> None:
    write_pair(tmp_path)
    (tmp_path / "key.pem").write_text("no key")
    settings = {"MODEL_REPO_ID": "echo", "SSL_CERTFILE": "cert.pem"}
    for more, why in (({"SSL_KEYFILE": "key.pem"}, "SSL_KEYFILE=key.pem"), ({}, "belong together")):
        failed = tis("serve", folder=tmp_path, **settings, **more)
        assert failed.returncode and why in failed.stderr and "Traceback" not in failed.stderr
