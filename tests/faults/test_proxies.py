"""The files of deploy/ in the real nginx and Caddy: streams flow, addresses are right, large bodies end early."""

import os
import re
import shutil
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest

from tests.cli.test_tls import NEW
from tests.faults.forms import short_or_long
from tests.openai_api.test_chat import CHAT, said
from tests.serving import REPOSITORY, Served, free_port, served, settings_with, until_listening

pytestmark = pytest.mark.slow

NAME = "tis.example.com"
NUM_CALLS = 2  # a minute, of one address
SILENT_SECONDS = short_or_long(2, 600)


@dataclass(frozen=True)
class Proxied:
    port: int
    server: Served
    certificate: Path

    def client(self, address: str = "127.0.0.1") -> httpx2.Client:
        """A client with this address on the computer."""
        trusted = ssl.create_default_context(cafile=str(self.certificate))
        transport = httpx2.HTTPTransport(verify=trusted, local_address=address)
        return httpx2.Client(
            base_url=f"https://127.0.0.1:{self.port}",
            transport=transport,
            headers={"Host": NAME},
            event_hooks={"request": [lambda request: request.extensions.update(sni_hostname=NAME)]},
            timeout=30,
        )

    def socket(self) -> ssl.SSLSocket:
        trusted = ssl.create_default_context(cafile=str(self.certificate))
        plain = socket.create_connection(("127.0.0.1", self.port), timeout=10)
        return trusted.wrap_socket(plain, server_hostname=NAME)


def nginx(folder: Path, port: int, upstream: int) -> list[str]:
    written = (REPOSITORY / "deploy" / "nginx" / "tis.conf").read_text()
    for before, after in (
        ("listen 443 ", f"listen 127.0.0.1:{port} "),
        ("127.0.0.1:3000", f"127.0.0.1:{upstream}"),
        ("/etc/ssl/tis/fullchain.pem", str(folder / "cert.pem")),
        ("/etc/ssl/tis/privkey.pem", str(folder / "key.pem")),
    ):
        assert before in written
        written = written.replace(before, after)
    (folder / "tis.conf").write_text(written)
    temporary = [f"{kind}_temp_path {folder}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")]
    main = f"pid {folder}/pid; events {{}} http {{ access_log off; {' '.join(temporary)} include {folder}/tis.conf; }}"
    (folder / "nginx.conf").write_text(f"{'user root; ' if os.geteuid() == 0 else ''}daemon off; {main}")
    return ["nginx", "-e", str(folder / "error.log"), "-p", str(folder), "-c", str(folder / "nginx.conf")]


def caddy(folder: Path, port: int, upstream: int) -> list[str]:
    written = (REPOSITORY / "deploy" / "caddy" / "Caddyfile").read_text()
    assert "127.0.0.1:3000" in written
    written = written.replace("127.0.0.1:3000", f"127.0.0.1:{upstream}")
    site = f"{NAME}:{port} {{\n\tbind 127.0.0.1\n\ttls {folder}/cert.pem {folder}/key.pem\n"
    written, changed = re.subn(rf"(?m)^{NAME} {{\n", site, written)
    assert changed == 1
    (folder / "Caddyfile").write_text(f"{{\n\tadmin off\n\tauto_https disable_redirects\n}}\n{written}")
    return ["caddy", "run", "--config", str(folder / "Caddyfile"), "--adapter", "caddyfile"]


@contextmanager
def proxy(make: Callable[[Path, int, int], list[str]], folder: Path, upstream: int) -> Iterator[int]:
    port = free_port()
    command = make(folder, port, upstream)
    if (program := shutil.which(command[0], path=f"{os.environ.get('PATH', '')}:/usr/sbin")) is None:
        if os.environ.get("SERVICES") == "required" and os.environ.get("PROXIES") != "none":
            pytest.fail(f"no {command[0]} here")
        pytest.skip(f"no {command[0]} here: `apt-get install {command[0]}`")
    home = {**os.environ, "HOME": str(folder), "XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
    with (folder / "log").open("w") as log:
        process = subprocess.Popen([program, *command[1:]], cwd=folder, env=home, stdout=log, stderr=log)
    try:
        until_listening(port)
        yield port
    finally:
        process.terminate()
        process.wait(timeout=10)


def folder_with_certificate(folder: Path) -> Path:
    made = [*NEW.split(), "-addext", f"subjectAltName=DNS:{NAME}", "-keyout", "key.pem", "-out", "cert.pem"]
    subprocess.run(made, cwd=folder, check=True, capture_output=True)
    return folder


@pytest.fixture(scope="module", params=[nginx, caddy], ids=lambda make: make.__name__)
def proxied(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxied]:
    folder = folder_with_certificate(tmp_path_factory.mktemp("proxy"))
    settings = settings_with(
        model_repo_id="echo?tokens_per_second=20", allowed_hosts=NAME, requests_per_minute=NUM_CALLS
    )
    with served(settings) as server, proxy(request.param, folder, int(server.url.rpartition(":")[2])) as port:
        yield Proxied(port, server, folder / "cert.pem")


def test_a_stream_flows_while_it_is_made(proxied: Proxied) -> None:
    admission = proxied.server.app.state.admission
    with (
        proxied.client() as client,
        client.stream("POST", CHAT, json=said("x" * 20, stream=True)) as answer,
    ):
        blocks = answer.iter_lines()
        while '"x' not in next(blocks):
            pass
        assert admission.num_in("generating") == 1  # the end is not made yet
        assert [line for line in blocks if line][-1] == "data: [DONE]"


def test_limits_count_the_address_of_the_client_and_no_invented_one(proxied: Proxied) -> None:
    def statuses(address: str) -> list[int]:
        with proxied.client(address) as client:
            invented = [{"X-Forwarded-For": f"192.0.2.{number}"} for number in range(NUM_CALLS + 1)]
            return [client.post(CHAT, json=said("x"), headers=headers).status_code for headers in invented]

    assert statuses("127.0.0.2") == statuses("127.0.0.3") == [200] * NUM_CALLS + [429]


def test_an_upload_of_100_mb_is_refused_before_it_comes(proxied: Proxied) -> None:
    head = f"POST {CHAT} HTTP/1.1\r\nHost: {NAME}\r\nContent-Type: application/json\r\nContent-Length: {10**8}\r\n\r\n"
    with proxied.socket() as client:
        client.sendall(head.encode() + b"{")
        answer = client.recv(65536)
    assert answer.split(b"\r\n")[0].split()[1] == b"413"
    assert proxied.server.app.state.admission.budgets["body_bytes"].max_used < 2**20


@pytest.mark.parametrize("make", [nginx, caddy], ids=lambda make: make.__name__)
def test_a_silent_answer_is_not_cut(make: Callable[[Path, int, int], list[str]], tmp_path: Path) -> None:
    folder = folder_with_certificate(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=_answer_late, args=[listener], daemon=True).start()
        with proxy(make, folder, listener.getsockname()[1]) as port:
            trusted = ssl.create_default_context(cafile=str(folder / "cert.pem"))
            plain = socket.create_connection(("127.0.0.1", port), timeout=SILENT_SECONDS + 30)
            with trusted.wrap_socket(plain, server_hostname=NAME) as client:
                client.sendall(f"GET /x HTTP/1.1\r\nHost: {NAME}\r\nConnection: close\r\n\r\n".encode())
                answer = b"".join(iter(lambda: client.recv(65536), b""))
    assert answer.startswith(b"HTTP/1.1 200") and b"begun" in answer and b"ended" in answer


def _answer_late(listener: socket.socket) -> None:
    connection, _ = listener.accept()
    with connection:
        connection.recv(65536)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nbegun")
        time.sleep(SILENT_SECONDS)  # as the silence is what is tested
        connection.sendall(b"ended")
