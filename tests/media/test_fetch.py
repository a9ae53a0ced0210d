"""Fetching URLs of untrusted clients: no private address is reached, and no remote server can block the fetcher."""

import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.media.images import make_image
from tests.media.loading import load, load_all, load_error, media_loader
from tests.media.web import (
    PUBLIC,
    Answer,
    Web,
    body,
    endless,
    raw_response,
    redirect,
    serve_web,
    silent,
    status,
    trickling,
    trickling_head,
)
from tis.errors import Unavailable
from tis.media.fetch import MediaFetcher
from tis.media.limits import MediaBudget, MediaLimits
from tis.media.loader import MediaSource
from tis.network.dialling import Dialler

pytestmark = pytest.mark.anyio
PNG = make_image()
CERTIFICATE = Path(__file__).with_name("pictures.example.pem")


@pytest.fixture(params=[False, True], ids=["asyncio", "uvloop"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, Any]]:
    """uvicorn uses uvloop where it is installed, which implements connections and TLS itself."""
    return "asyncio", {"use_uvloop": request.param}


@pytest.fixture
def web() -> Iterator[Web]:
    with serve_web() as web:
        web.answers["/a.png"] = body(PNG)
        yield web


async def test_the_fetcher_connects_to_the_address_that_it_checked(web: Web) -> None:
    image = await load("http://Pictures.example/a.png#top", **web.doubles)
    assert image.data == PNG
    assert (web.resolved, web.dialled) == (["pictures.example"], [(PUBLIC, 80)])


async def test_a_request_has_no_headers_that_identify_the_server(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    web.answers["/a.png?size=1"] = body(PNG)
    await load("http://pictures.example/a.png?size=1", **web.doubles)
    line, *headers = web.heard[0].decode().strip().split("\r\n")
    assert line == "GET /a.png?size=1 HTTP/1.1"
    named = dict(header.lower().split(": ", 1) for header in headers)
    assert named.keys() == {"host", "user-agent", "accept", "accept-encoding", "connection"}
    assert (named["host"], named["accept-encoding"]) == ("pictures.example", "identity")


@pytest.mark.parametrize(
    "url",
    # plain
    ["http://127.0.0.1/", "http://localhost/", "http://[::1]/", "http://0.0.0.0/", "http://0/", "http://10.0.0.1/"]
    + [
        "http://192.168.0.1/",
        "http://169.254.169.254/latest/meta-data/",
        "http://[fe80::1]/",
        "http://[fd00:ec2::254]/",
    ]
    + ["http://[::ffff:127.0.0.1]/", "http://[::ffff:7f00:1]/", "http://[64:ff9b::7f00:1]/", "http://[2002:7f00:1::]/"]
    # spellings that resolvers accept
    + [
        "http://2130706433/",
        "http://0x7f000001/",
        "http://0177.0.0.1/",
        "http://127.1/",
        "http://①②⑦.⓪.⓪.①/",
        "http://127。0。0。1/",
    ]
    # spellings that parsers read differently
    + [
        "http://example.com@127.0.0.1/",
        "http://127.0.0.1\\@example.com/",
        "http://example.com:80@127.0.0.1/",
        "http://127.0.0.1:80#@example.com/",
    ]
    # other ports and schemes
    + [
        "http://127.0.0.1:22/",
        "http://example.com:6379/",
        "ftp://127.0.0.1/",
        "file:///etc/passwd",
        "gopher://127.0.0.1/",
        "http:///etc/passwd",
    ],
)
async def test_the_fetcher_connects_to_no_spelling_of_a_private_address(url: str) -> None:
    def dial(address: str, port: int) -> tuple[str, int]:
        raise AssertionError(f"dialled {address}")

    error = await load_error(url, dial=dial)  # the resolver is the real one
    assert error.code in ("media_fetch_failed", "invalid_image_url")


@pytest.mark.parametrize("inner", ["127.0.0.1", "10.1.2.3", "::1", "fe80::1%eth0", "64:ff9b::a00:1", "::ffff:10.0.0.1"])
async def test_one_private_address_among_public_ones_blocks_the_fetch(web: Web, inner: str) -> None:
    web.names["mixed.example"] = [[PUBLIC, inner]]
    await web.assert_fetch_fails("http://mixed.example/a.png")
    assert web.dialled == []


async def test_a_name_is_resolved_once_per_fetch(web: Web) -> None:
    web.names["rebinding.example"] = [[PUBLIC], ["127.0.0.1"]]
    assert (await load("http://rebinding.example/a.png", **web.doubles)).data == PNG
    assert (web.resolved, web.dialled) == (["rebinding.example"], [(PUBLIC, 80)])


async def test_an_address_that_does_not_answer_leaves_time_for_the_next(web: Web) -> None:
    web.names["two.example"] = [["2606:4700::1111", PUBLIC]]

    def dial(address: str, port: int) -> tuple[str, int]:
        web.dial(address, port)
        return ("127.0.0.1", 1) if ":" in address else ("127.0.0.1", web.port)

    assert (await load("http://two.example/a.png", resolve=web.resolve, dial=dial)).data == PNG
    assert [address for address, _ in web.dialled] == ["2606:4700::1111", PUBLIC]


async def test_the_fetcher_follows_three_redirects(web: Web) -> None:
    web.answers["/3"], web.answers["/2"] = redirect("/2", 301), redirect("//other.example/1", 307)
    web.answers["/1"], web.answers["/4"] = redirect("http://third.example/a.png", 308), redirect("/3", 303)
    assert (await load("http://first.example/3", **web.doubles)).data == PNG
    assert web.resolved == ["first.example", "first.example", "other.example", "third.example"]
    await web.assert_fetch_fails("http://first.example/4")


@pytest.mark.parametrize(
    "location",
    [
        "http://127.0.0.1/a.png",
        "http://inner.example/a.png",
        "http://[::1]/",
        "http://2130706433/",
        "//10.0.0.1/",
        "http://first.example:22/",
    ]
    + [
        "file:///etc/passwd",
        "ftp://first.example/",
        "http://x@first.example/",
        "/\\inner.example/",
        "data:image/png;base64,QUJD",
        "http:///",
    ],
)
async def test_a_redirect_gets_the_same_checks_as_a_url(web: Web, location: str) -> None:
    web.names["inner.example"] = [["192.168.1.1"]]
    web.answers["/go"] = redirect(location)
    await web.assert_fetch_fails("http://first.example/go")
    assert web.dialled == [(PUBLIC, 80)]


async def test_a_redirect_back_to_a_name_is_resolved_and_checked_again(web: Web) -> None:
    web.names["rebinding.example"] = [[PUBLIC], ["127.0.0.1"]]
    web.answers["/go"] = redirect("http://rebinding.example/a.png")
    await web.assert_fetch_fails("http://rebinding.example/go")
    assert web.dialled == [(PUBLIC, 80)]


async def test_a_redirect_loop_ends(web: Web) -> None:
    web.answers["/go"] = redirect("/go")
    await web.assert_fetch_fails("http://first.example/go")
    assert len(web.heard) == 4


async def test_the_fetcher_does_not_send_cookies_back(web: Web) -> None:
    web.answers["/go"] = raw_response("HTTP/1.1 302 Found\nLocation: /a.png\nSet-Cookie: a=b\nContent-Length: 0")
    await load("http://first.example/go", **web.doubles)
    assert b"cookie" not in web.heard[1].lower()


@pytest.mark.parametrize("answer", [silent, trickling, trickling_head])
async def test_one_deadline_covers_the_whole_response(web: Web, answer: Answer) -> None:
    web.answers["/slow"] = answer
    await web.assert_fetch_fails("http://first.example/slow", fetch_seconds=0.3)


async def test_a_fetch_without_a_free_slot_is_unavailable(web: Web) -> None:
    limits = MediaLimits(max_fetches=1, fetch_seconds=0.2)
    fetcher = MediaFetcher(limits, Dialler(**web.doubles))
    async with fetcher._slots:
        with pytest.raises(Unavailable):
            await fetcher.fetch("image", "http://first.example/a.png", MediaBudget(limits))
    assert await fetcher.fetch("image", "http://first.example/a.png", MediaBudget(limits))


async def test_the_deadline_covers_the_resolver(web: Web) -> None:
    import threading

    waiting = threading.Event()

    def resolve(host: str, port: int) -> list[str]:
        waiting.wait(20)
        return [PUBLIC]

    try:
        await load_error("http://first.example/a.png", resolve=resolve, dial=web.dial, fetch_seconds=0.2)
    finally:
        waiting.set()
    assert web.dialled == []


async def test_a_body_over_the_limit_is_cut_off(web: Web) -> None:
    web.answers["/endless"] = endless
    error = await load_error("http://first.example/endless", **web.doubles, max_item_bytes=2**20)
    assert error.code == "image_too_large"


async def test_a_content_length_over_the_limit_is_rejected(web: Web) -> None:
    web.answers["/large"] = raw_response("HTTP/1.1 200 OK\nContent-Length: 99999999999", PNG)
    assert (await load_error("http://first.example/large", **web.doubles)).code == "image_too_large"


@pytest.mark.parametrize(
    "answer",
    [
        raw_response(f"HTTP/1.1 200 OK\nContent-Length: {len(PNG) + 1}", PNG),  # longer than the body
        raw_response("HTTP/1.1 200 OK\nContent-Length: 5\nContent-Length: 6", PNG),
        raw_response("HTTP/1.1 200 OK\nContent-Length: -1", PNG),
        raw_response("HTTP/1.1 200 OK\nContent-Length: five", PNG),
        raw_response("HTTP/1.1 200 OK\nContent-Length: " + "9" * 5000, PNG),
        raw_response("HTTP/1.1 200 OK\nTransfer-Encoding: chunked", b"5\r\nabc"),
        raw_response("HTTP/1.1 200 OK\nContent-Length: 3\nContent-Encoding: gzip", b"abc"),
        raw_response("HTTP/1.1 302 Found\nContent-Length: 0"),
        raw_response("HTTP/1.1 302 Found\nLocation: /a.png\nLocation: /b.png\nContent-Length: 0"),
        raw_response("HTTP/1.1 200 OK\n" + "X: y\n" * 100_000 + "X: y"),
        raw_response("HTTP/1.1 101 Switching Protocols\nUpgrade: x"),
        raw_response("SSH-2.0-OpenSSH_9.6"),
        lambda connection: connection.close(),
        *(status(line) for line in ("204 No Content", "206 Partial Content", "304 Not Modified", "401 Unauthorized")),
        *(status(line) for line in ("404 Not Found", "500 Oops", "300 Choices")),
    ],
)
async def test_a_malformed_or_unsuccessful_response_fails_the_fetch(web: Web, answer: Answer) -> None:
    web.answers["/odd"] = answer
    await web.assert_fetch_fails("http://first.example/odd", fetch_seconds=2)


async def test_a_short_content_length_truncates_the_image(web: Web) -> None:
    web.answers["/short"] = raw_response(f"HTTP/1.1 200 OK\nContent-Length: {len(PNG) // 2}", PNG)
    assert (await load_error("http://first.example/short", **web.doubles)).code == "invalid_image"


async def test_a_body_may_come_in_chunks_or_without_a_length(web: Web) -> None:
    web.answers["/chunks"] = raw_response(
        "HTTP/1.1 200 OK\nTransfer-Encoding: chunked", b"%x\r\n%s\r\n0\r\n\r\n" % (len(PNG), PNG)
    )
    web.answers["/close"] = raw_response("HTTP/1.0 200 OK", PNG)
    web.answers["/hints"] = raw_response("HTTP/1.1 103 Early Hints\n\nHTTP/1.1 200 OK\nConnection: close", PNG)
    for path in web.answers:
        assert (await load(f"http://first.example{path}", **web.doubles)).data == PNG


async def test_the_bytes_decide_the_format_and_not_the_content_type(web: Web) -> None:
    web.answers["/wrong"], web.answers["/page"] = body(PNG, "text/html"), body(b"<html>secret</html>", "image/png")
    assert (await load("http://first.example/wrong", **web.doubles)).data == PNG
    error = await load_error("http://first.example/page", **web.doubles)
    assert error.code == "invalid_image_format" and "secret" not in error.message


async def test_only_allowed_hosts_are_resolved(web: Web) -> None:
    allowed: dict[str, Any] = {"allowed_hosts": ("first.example", "*.pictures.example")}
    for host in ("first.example", "cdn.pictures.example"):
        assert (await load(f"http://{host}/a.png", **web.doubles, **allowed)).data == PNG
    web.answers["/go"] = redirect("http://second.example/a.png")
    web.resolved.clear()
    await web.assert_fetch_fails("http://second.example/a.png", **allowed)
    await web.assert_fetch_fails("http://first.example/go", **allowed)
    assert web.resolved == ["first.example"]


async def test_an_allowed_host_may_not_have_a_private_address(web: Web) -> None:
    web.names["first.example"] = [["10.0.0.1"]]
    await web.assert_fetch_fails("http://first.example/a.png", allowed_hosts=("first.example",))


async def test_remote_media_can_be_disabled(web: Web) -> None:
    error = await load_error("http://first.example/a.png", **web.doubles, allow_remote=False)
    assert error.code == "media_fetch_failed" and web.resolved == []


async def test_an_unreachable_address_has_the_same_error_as_a_private_one(web: Web) -> None:
    def unknown_name(host: str, port: int) -> list[str]:
        raise OSError("Name or service not known")

    answers = {
        (await load_error("http://first.example/a.png", resolve=unknown_name)).message,
        (await load_error("http://first.example/a.png", resolve=web.resolve, dial=lambda *_: ("127.0.0.1", 1))).message,
        (await load_error("http://127.0.0.1/a.png", dial=web.dial)).message,
    }
    assert len(answers) == 1


async def test_fetched_bytes_are_counted_over_all_images_of_a_request(web: Web) -> None:
    urls = ["http://first.example/a.png"] * 3
    assert len(await load_all(urls, **web.doubles, max_request_bytes=3 * len(PNG))) == 3
    async with media_loader(**web.doubles, max_request_bytes=3 * len(PNG) - 1) as loader:
        with pytest.raises(Exception, match="all media of a request"):
            await loader.load([MediaSource("image", url, "p") for url in urls])


def client_context() -> ssl.SSLContext:
    return ssl.create_default_context(cafile=CERTIFICATE)


def server_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE)
    return context


async def test_the_certificate_must_match_the_name_and_not_the_address() -> None:
    named: list[str | None] = []
    context = server_context()
    context.sni_callback = lambda connection, name, _: named.append(name)
    with serve_web(context) as web:
        web.answers["/a.png"] = body(PNG)
        secure = {**web.doubles, "certificates": client_context()}
        assert (await load("https://pictures.example/a.png", **secure)).data == PNG
        assert (named, web.dialled) == (["pictures.example"], [(PUBLIC, 443)])
        for url in ("https://other.example/a.png", f"https://{PUBLIC}/a.png"):
            assert (await load_error(url, **secure)).code == "media_fetch_failed"
        assert len(web.heard) == 1


async def test_an_untrusted_certificate_fails_the_fetch() -> None:
    with serve_web(server_context()) as web:
        web.answers["/a.png"] = body(PNG)
        await web.assert_fetch_fails("https://pictures.example/a.png")
        assert web.heard == []
