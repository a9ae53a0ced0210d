"""Bytes that are no good request, or never become one, and connections in numbers: by sockets, as no client does it."""

import asyncio
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from starlette.types import Receive, Scope, Send

from tests.serving import MovedClock, Served, listening, served, settings_with
from tests.test_status import until
from tis.http.errors import TooManyConnections
from tis.http.transport.connections import Connections
from tis.http.transport.limits import TransportLimits
from tis.observability.metrics import REGISTRY
from tis.setting_types import SettingsError
from tis.settings import Settings

GET = b"GET /live HTTP/1.1\r\nHost: localhost\r\n\r\n"
CHAT_HEAD = b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
ASK = json.dumps({"messages": [{"role": "user", "content": "Halo, apa kabar?"}], "stream": True}).encode()
CHUNKED = CHAT_HEAD + b"Transfer-Encoding: chunked\r\n\r\n"


def asking(body: bytes = ASK) -> bytes:
    return CHAT_HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    with served(settings_with(model_repo_id="echo?tokens_per_second=400")) as running:
        yield running


@pytest.fixture(scope="module")
def hasty() -> Iterator[Served]:
    """Its deadlines are a quarter of a second; an answer of it takes longer."""
    settings = settings_with(
        model_repo_id="echo?tokens_per_second=20", header_timeout_seconds=0.25, body_timeout_seconds=0.25
    )
    with served(settings) as running:
        yield running


def connect(server: Served | str) -> socket.socket:
    url = server if isinstance(server, str) else server.url
    host, _, port = url.removeprefix("http://").rpartition(":")
    return socket.create_connection((host, int(port)), timeout=10)


@dataclass
class RawAnswer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str:
        return str(self.json["error"]["code"])


def until_closed(sock: socket.socket) -> bytes:
    received = b""
    while data := sock.recv(65536):
        received += data
    return received


def parsed(received: bytes) -> RawAnswer:
    head, _, body = received.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    return RawAnswer(int(first.split()[1]), headers, body)


def answer_to(server: Served, data: bytes) -> RawAnswer:
    """Of a server that closes the connection."""
    with connect(server) as sock:
        sock.sendall(data)
        return parsed(until_closed(sock))


def refusals(reason: str) -> float:
    return REGISTRY.get_sample_value("tis_transport_refusals_total", {"reason": reason}) or 0


def get(path: bytes, *headers: bytes, version: bytes = b"HTTP/1.1", host: bytes = b"Host: localhost") -> bytes:
    return b"\r\n".join([b"GET %s %s" % (path, version), *([host] if host else []), *headers, b"", b""])


class TestHeads:
    @pytest.mark.parametrize(
        ("data", "status", "code"),
        [
            (get(b"/v1/models", b"X: " + b"y" * 10_000_000), 431, "headers_too_large"),
            (get(b"/v1/models", b"X" * 100_000 + b": y"), 431, "headers_too_large"),
            (get(b"/v1/models", *[b"X-%d: y" % number for number in range(10_000)]), 431, "too_many_headers"),
            (get(b"/v1/models?q=" + b"y" * 40_000), 431, "headers_too_large"),
            (b"\r\n" * 200_000, 431, "headers_too_large"),
            (get(b"/v1/models", b"Host: localhost"), 400, "invalid_host"),
            (get(b"/v1/models", b"Host: other"), 400, "invalid_host"),
            (get(b"/v1/models", host=b""), 400, "invalid_host"),
            (get(b"/v1/models", host=b"Host: a b"), 400, "invalid_host"),
            (get(b"/v1/models", host=b"Host: localhost:3000@evil.example"), 400, "invalid_host"),
            (get(b"/v1/models", host=b"Host: localhost/v1"), 400, "invalid_host"),
            (get(b"/v1/models", host=b"Host: " + b"a" * 300), 400, "invalid_host"),
            (get(b"/v1/models", host=b"Host: \xff\xfe"), 400, "invalid_host"),
            (get(b"/v1/models", version=b"HTTP/0.9"), 505, "http_version_not_supported"),
            (get(b"/v1/models", version=b"HTTP/2.0"), 505, "http_version_not_supported"),
            (get(b"/v1/models", version=b"HTTP/3.0"), 505, "http_version_not_supported"),
            (b"GET /v1/models\r\n\r\n", 505, "http_version_not_supported"),
            (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0" * 9, 505, "http_version_not_supported"),
            (b"GET /v1/models HTTP/1.1\nHost: localhost\n\n", 400, "invalid_http"),
            (b"GET /v1/models HTTP/1.1\rHost: localhost\r\r", 400, "invalid_http"),
            (get(b"/v1/models", b"X: a\rb"), 400, "invalid_http"),
            (get(b"/v1/models", b"X: a\nb: c"), 400, "invalid_http"),
            (get(b"/v1/models", b"X: a\0b"), 400, "invalid_http"),
            (get(b"/v1/models", b"X: a\r\n folded"), 400, "invalid_http"),
            (get(b"/v1/models", b"X : a"), 400, "invalid_http"),
            (get(b"/v1/models", b": a"), 400, "invalid_http"),
            (get(b"/v1/mod\xc3\xa9ls"), 400, "invalid_http"),
            (b"CONNECT localhost:22 HTTP/1.1\r\nHost: localhost\r\n\r\n", 400, "invalid_http"),
            (bytes.fromhex("16030100a5010000a10303"), 400, "invalid_http"),  # TLS
            (b"\0" * 1000, 400, "invalid_http"),
            (CHAT_HEAD + b"Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc", 400, "invalid_http"),
            (CHAT_HEAD + b"Content-Length: -3\r\n\r\nabc", 400, "invalid_http"),
            (CHAT_HEAD + b"Content-Length: 3, 3\r\n\r\nabc", 400, "invalid_http"),
            (CHAT_HEAD + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400, "invalid_http"),
            (CHAT_HEAD + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 400, "invalid_http"),
            (CHAT_HEAD + b"Transfer-Encoding: chunked\r\n" * 2 + b"\r\n0\r\n\r\n", 400, "invalid_http"),
            (CHAT_HEAD + b"Transfer-Encoding: identity\r\n\r\n0\r\n\r\n", 400, "invalid_http"),
        ],
        ids=lambda value: repr(value[:40]) if isinstance(value, bytes) else None,
    )
    def test_are_refused_before_any_key_is_asked_for(self, server: Served, data: bytes, status: int, code: str) -> None:
        before = refusals(code)
        answer = answer_to(server, data)
        assert (answer.status, answer.code) == (status, code)
        assert answer.headers["connection"] == "close" and answer.headers["x-request-id"].startswith("req-")
        assert len(answer.body) < 1000
        assert refusals(code) == before + 1

    @pytest.mark.parametrize("path", [b"/api/products", b"/nowhere", b"http://localhost/api/products"])
    def test_outside_of_v1_the_error_is_a_detail(self, server: Served, path: bytes) -> None:
        assert list(answer_to(server, get(path, b"Host: x")).json) == ["detail"]

    @pytest.mark.parametrize("path", [b"/v1/models", b"http://localhost/v1/models", b"/%761/models"])
    def test_below_v1_it_is_the_error_of_openai(self, server: Served, path: bytes) -> None:
        body = answer_to(server, get(path, b"Host: x")).json
        assert set(body) == {"error"} and set(body["error"]) == {"message", "type", "param", "code"}

    def test_a_refusal_is_logged_with_the_id_of_the_request(
        self, server: Served, caplog: pytest.LogCaptureFixture
    ) -> None:
        with caplog.at_level("INFO", "tis.requests"):
            answer = answer_to(server, get(b"/v1/models?key=secret", b"X-Request-ID: mine-7", b"Host: x"))
        assert answer.headers["x-request-id"] == "mine-7"
        [line] = [record.getMessage() for record in caplog.records if "mine-7" in record.getMessage()]
        assert line == "GET (none) 400 invalid_host mine-7"

    @pytest.mark.parametrize(
        "data",
        [
            get(b"/live", b"Connection: close"),
            get(b"/live", b"Connection: close", host=b"Host:"),
            get(b"/live", version=b"HTTP/1.0", host=b""),
            get(b"/live", b"Connection: close", *[b"X-%d: y" % number for number in range(98)]),
            get(b"/live", b"Connection: close", b"X: " + b"y" * 31_000),
            get(b"http://localhost/live", b"Connection: close"),
            b"\r\n\r\n" + get(b"/live", b"Connection: close"),
        ],
        ids=["plain", "empty Host", "HTTP/1.0", "99 headers", "31,000 bytes", "absolute", "empty lines"],
    )
    def test_that_are_within_the_limits_pass(self, server: Served, data: bytes) -> None:
        host_checked = b"Host:\r\n" in data  # by HostMiddleware: an empty name is none of this computer's
        assert answer_to(server, data).status == (403 if host_checked else 200)

    def test_an_upgrade_is_ignored(self, server: Served) -> None:
        """As Java's client asks for HTTP/2; the bytes behind it are the next request."""
        upgrade = get(b"/live", b"Connection: Upgrade, HTTP2-Settings", b"Upgrade: h2c", b"HTTP2-Settings: AAMAAABk")
        with connect(server) as sock:
            sock.sendall(upgrade + get(b"/live", b"Connection: close"))
            assert until_closed(sock).count(b"HTTP/1.1 200 OK") == 2


class TestChunks:
    @pytest.mark.parametrize(
        "chunks",
        [
            b"0x3\r\nabc\r\n0\r\n\r\n",
            b"-3\r\nabc\r\n0\r\n\r\n",
            b"FFFFFFFFFFFFFFFFFF\r\nabc",
            b"3\nabc\n0\n\n",
            b"3\r\nabcX0\r\n\r\n",
            b"\r\n",
            b"3;" + b"x" * 300_000,
            b"0\r\nX: " + b"y" * 300_000,
        ],
        ids=lambda chunks: repr(chunks[:20]),
    )
    def test_that_are_broken_or_endless_are_refused(self, server: Served, chunks: bytes) -> None:
        with connect(server) as sock:
            for start in range(0, len(chunks), 30_000):
                sock.sendall((b"" if start else CHUNKED) + chunks[start : start + 30_000])
            assert parsed(until_closed(sock)).status in (400, 431)

    def test_trailers_do_not_become_headers(self, server: Served) -> None:
        body = b"%x\r\n%s\r\n0\r\nX-Session-Id: from-trailer\r\n\r\n" % (len(ASK), ASK)
        with connect(server) as sock:
            sock.sendall(CHUNKED + body + get(b"/live", b"Connection: close"))
            received = until_closed(sock)
        assert received.startswith(b"HTTP/1.1 200") and b"from-trailer" not in received and b"[DONE]" in received

    def test_a_body_of_small_chunks_with_extensions_is_read(self, server: Served) -> None:
        chunks = b"".join(b"1;note=x\r\n%c\r\n" % byte for byte in ASK) + b"0\r\n\r\n"
        with connect(server) as sock:
            sock.sendall(CHUNKED + chunks + get(b"/live", b"Connection: close"))
            assert b"[DONE]" in until_closed(sock)


class TestPipelines:
    def test_requests_sent_together_are_answered_in_order(self, server: Served) -> None:
        with connect(server) as sock:
            sock.sendall(asking() + GET * 9 + get(b"/nowhere", b"Connection: close"))
            received = until_closed(sock)
        assert received.count(b"HTTP/1.1 200 OK") == 10 and b"HTTP/1.1 404" in received[received.index(b"[DONE]") :]

    def test_hundreds_of_requests_sent_together_are_not_taken(self, server: Served) -> None:
        with connect(server) as sock:
            sock.sendall(GET * 2000)
            received = until_closed(sock)
        assert received.count(b"HTTP/1.1 200 OK") < 100
        assert b"More than 16 requests" in received

    def test_garbage_behind_a_request_is_refused_after_its_answer(self, server: Served) -> None:
        with connect(server) as sock:
            sock.sendall(asking() + b"garbage\r\n\r\n")
            received = until_closed(sock)
        done, refused = received.index(b"[DONE]"), received.index(b"HTTP/1.1 400")
        assert done < refused

    def test_a_client_that_leaves_while_its_requests_wait_ends_the_first_too(self) -> None:
        begun, left = threading.Event(), threading.Event()

        async def patient(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] == "http":
                begun.set()
                while (await receive())["type"] != "http.disconnect":
                    pass
                left.set()

        with listening(patient, TransportLimits()) as url:
            with connect(url) as sock:
                sock.sendall(GET + GET)
                assert begun.wait(5)
            assert left.wait(5)


class TestDeadlines:
    def test_headers_that_drip_are_a_408(self, hasty: Served) -> None:
        before = refusals("request_timeout")
        with connect(hasty) as sock:
            sock.sendall(b"GET /v1/models HTTP/1.1\r\nX: ")
            answer = drip(sock)
        assert (answer.status, answer.code) == (408, "request_timeout") and refusals("request_timeout") == before + 1

    def test_headers_that_drip_after_an_answer_are_a_408(self, hasty: Served) -> None:
        with connect(hasty) as sock:
            sock.sendall(GET)
            assert sock.recv(65536).startswith(b"HTTP/1.1 200")
            sock.sendall(b"GET /api/products HTTP/1.1\r\nX: ")
            answer = drip(sock)
        assert answer.status == 408 and list(answer.json) == ["detail"]

    def test_a_connection_that_sends_nothing_is_closed_without_an_answer(self, hasty: Served) -> None:
        with connect(hasty) as sock:
            assert until_closed(sock) == b""

    def test_a_connection_that_sends_empty_lines_is_closed(self, hasty: Served) -> None:
        with connect(hasty) as sock:
            sock.sendall(b"\r\n")
            assert until_closed(sock) == b""

    @pytest.mark.parametrize(
        "framing", [b"Content-Length: 1000\r\n\r\n{", b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n"]
    )
    @pytest.mark.parametrize("path", [b"/v1/chat/completions", b"/api/auth/login"])
    def test_a_body_that_never_ends_is_a_408(self, hasty: Served, path: bytes, framing: bytes) -> None:
        before = refusals("body_timeout")
        head = b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nX-Request-ID: slow\r\n" % path
        answer = answer_to(hasty, head + framing)
        assert answer.status == 408 and "BODY_TIMEOUT_SECONDS" in answer.body.decode()
        assert ("error" in answer.json) is path.startswith(b"/v1")
        assert answer.headers["x-request-id"] == "slow" and answer.headers["connection"] == "close"
        assert refusals("body_timeout") == before + 1

    def test_a_stream_may_take_longer_than_any_deadline(self, hasty: Served) -> None:
        with connect(hasty) as sock:
            sock.sendall(asking())
            sock.sendall(b"GET /live HTTP/1.1\r\nConnection: close\r\n")  # the next request, half of it
            received = b""
            while b"[DONE]" not in received:
                received += sock.recv(65536)
            sock.sendall(b"Host: localhost\r\n\r\n")
            assert b"HTTP/1.1 200" in until_closed(sock)
        assert b"408" not in received.partition(b"\r\n")[0]

    def test_a_reader_whose_own_body_never_comes_reads_to_the_end(self, hasty: Served) -> None:
        with connect(hasty) as sock:
            sock.sendall(asking(ASK.replace(b"{", b'{"session_id": "read-by-get", ', 1)))
            sock.recv(1)
            with connect(hasty) as reader:
                reader.sendall(get(b"/v1/stream/read-by-get", b"Content-Length: 5"))
                received = until_closed(reader)
        assert b"[DONE]" in received

    def test_a_body_that_is_never_sent_after_an_early_answer_closes_the_connection(self, hasty: Served) -> None:
        with connect(hasty) as sock:
            sock.sendall(b"POST /nowhere HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n")
            assert until_closed(sock).startswith(b"HTTP/1.1 404")

    def test_a_client_that_waits_for_a_100_is_not_waited_for_after_an_early_answer(self, server: Served) -> None:
        """Its next bytes may be the body or the next request."""
        head = b"POST /nowhere HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\nExpect: 100-continue\r\n\r\n"
        with connect(server) as sock:
            sock.sendall(head)
            received = until_closed(sock)
        assert received.startswith(b"HTTP/1.1 404") and b"100 Continue" not in received

    def test_a_client_that_closes_its_half_is_closed(self, server: Served) -> None:
        with connect(server) as sock:
            sock.sendall(b"GET /live HTTP/1.1\r\n")
            sock.shutdown(socket.SHUT_WR)
            assert until_closed(sock) == b""


class TestIdleConnections:
    def test_one_that_is_idle_too_long_is_closed_but_not_what_came_while_the_process_paused(self) -> None:
        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["path"] == "/pause":  # while the loop reads: timers come before what it has not read yet
                asyncio.get_running_loop().add_reader(woken, pause)
                waker.send(b"x")
            await send({"type": "http.response.start", "status": 204, "headers": []})
            await send({"type": "http.response.body"})

        woken, waker = socket.socketpair()

        def pause() -> None:
            woken.recv(1)
            time.sleep(0.6)

        def request(path: str) -> bytes:
            return f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()

        with (
            listening(app, TransportLimits(keep_alive_seconds=0.3)) as url,
            connect(url) as idle,
            connect(url) as other,
        ):
            idle.sendall(request("/"))
            assert idle.recv(65536).startswith(b"HTTP/1.1 204")
            other.sendall(request("/pause"))
            time.sleep(0.1)
            idle.sendall(request("/"))
            assert idle.recv(65536).startswith(b"HTTP/1.1 204")
            began = time.monotonic()
            assert until_closed(idle) == b"" and time.monotonic() - began < 5
        woken.close()
        waker.close()


class TestRefusedBodies:
    @pytest.mark.parametrize("ending", [b"Connection: close\r\n", b""], ids=["close", "keep-alive"])
    def test_a_client_that_sends_the_whole_body_first_reads_the_answer(self, server: Served, ending: bytes) -> None:
        """A connection that is closed before its bytes are read is reset, and the answer is lost."""
        num_bytes = 80 * 2**20
        head = CHAT_HEAD + ending + b"Content-Length: %d\r\n\r\n" % num_bytes
        for _ in range(3):
            with connect(server) as sock:
                sock.sendall(head)
                for _ in range(12):
                    sock.sendall(b" " * 2**20)
                received = b""
                while b"too_large" not in received and (data := sock.recv(65536)):
                    received += data
            assert received.startswith(b"HTTP/1.1 413 ") and b"too_large" in received


def drip(sock: socket.socket) -> RawAnswer:
    """Sends byte after byte until an answer comes."""
    received = b""
    sock.settimeout(0.02)
    while not received:
        try:
            sock.sendall(b"y")
            received = sock.recv(65536)
        except TimeoutError:
            pass
    sock.settimeout(10)
    return parsed(received + until_closed(sock))


class TestNumbers:
    def test_an_address_may_have_so_many_connections(self) -> None:
        limits = TransportLimits(max_connections_per_address=3, unbounded_networks=())
        with served(settings_with(), limits) as running:
            first, *others = [connect(running) for _ in range(3)]
            for sock in (first, *others):
                sock.sendall(GET)
                assert sock.recv(65536).startswith(b"HTTP/1.1 200")
            answer = answer_to(running, b"")
            assert (answer.status, answer.code, answer.headers["retry-after"]) == (429, "too_many_connections", "5")
            assert answer.json["detail"] == answer.json["error"]["message"]
            first.close()
            until(lambda: answer_to(running, get(b"/live", b"Connection: close")).status == 200)
            for sock in others:
                sock.close()


@pytest.mark.anyio
class TestBook:
    @pytest.mark.parametrize(
        "address", ["127.0.0.1", "127.8.8.8", "::1", "::ffff:127.0.0.1", "10.1.2.3", "/run/tis.sock"]
    )
    async def test_this_computer_and_trusted_proxies_may_have_any_number(self, address: str) -> None:
        book = connections(unbounded_networks=("127.0.0.0/8", "::1", "10.1.0.0/16"))
        assert [book.admit(Waiter(), address, 9) for _ in range(20)] == [None] * 20

    @pytest.mark.parametrize(
        ("one", "other", "is_same"),
        [
            ("192.0.2.1", "192.0.2.2", False),
            ("192.0.2.1", "::ffff:192.0.2.1", True),
            ("2001:db8::1", "2001:db8::ffff:1", True),
            ("fe80::1%eth0", "fe80::1%eth0", True),
            ("2001:db8::1", "2001:db8:0:1::1", False),
        ],
    )
    async def test_a_home_has_a_network_of_ipv6_and_one_address_of_ipv4(
        self, one: str, other: str, is_same: bool
    ) -> None:
        book = connections()
        for _ in range(2):
            assert book.admit(Waiter(), one, 9) is None
        assert isinstance(book.admit(Waiter(), other, 9), TooManyConnections) is is_same

    async def test_those_that_wait_longest_close_when_descriptors_run_short(self) -> None:
        book = connections(max_descriptors=100)
        waiters = [Waiter() for _ in range(3)]
        for number, waiter in enumerate(waiters):
            assert book.admit(waiter, f"192.0.2.{number}", 9 + number) is None
        book.stop_waiting_for(waiters[0])  # it is being answered
        book.wait_for(waiters[1])
        for number in range(3):
            assert book.admit(Waiter(), f"198.51.100.{number}", 60) is None
        assert [waiter.end for waiter in waiters] == ["", "aborted", "aborted"]

    async def test_a_new_connection_is_refused_when_all_others_are_busy(self) -> None:
        book = connections(max_descriptors=100)
        busy = Waiter()
        book.admit(busy, "192.0.2.1", 9)
        book.stop_waiting_for(busy)
        refused = book.admit(Waiter(), "192.0.2.2", 60)
        assert refused and refused.code == "too_many_open_files" and not busy.end

    async def test_the_clock_of_a_connection_begins_anew_with_its_request(self) -> None:
        clock = MovedClock()
        book = connections(clock=clock)
        one, other = Waiter(), Waiter()
        book.admit(one, None, 9)
        book.admit(other, None, 9)
        clock.move(15)
        book.wait_for(one)
        clock.move(15)
        book.end(book.overdue())
        assert (one.end, other.end) == ("", "overdue")

    async def test_what_a_client_sent_while_the_server_paused_counts(self) -> None:
        clock = MovedClock()
        book = connections(clock=clock)
        one, other = Waiter(), Waiter()
        book.admit(one, None, 9)
        book.admit(other, None, 9)
        clock.move(30)
        overdue = book.overdue()
        book.stop_waiting_for(one)  # its request is read only now
        book.end(overdue)
        assert (one.end, other.end) == ("", "overdue")


@pytest.mark.parametrize("value", ["10.0.0.300", "proxy.example", "10.0.0.0/33"])
def test_a_proxy_that_is_no_address_stops_the_start(value: str) -> None:
    with pytest.raises(SettingsError, match="TRUSTED_PROXIES"):
        Settings.from_env({"TRUSTED_PROXIES": value}, env_file=None)


class Waiter:
    end = ""

    def on_overdue(self) -> None:
        self.end = "overdue"

    def abort(self) -> None:
        self.end = "aborted"


def connections(
    max_descriptors: int | None = None, clock: Callable[[], float] = time.monotonic, **limits: Any
) -> Connections:
    chosen = TransportLimits(**{"max_connections_per_address": 2, "unbounded_networks": (), **limits})
    return Connections(chosen, max_descriptors, clock)
