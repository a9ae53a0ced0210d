"""`MARKETPLACE_AUTH=open`: no token on this computer; other machines and other web pages are refused."""

import logging
from collections.abc import Iterator

import httpx2
import pytest
from fastapi import Request

from tests.marketplace.accounts import bearer, new_email, register_user
from tests.marketplace.conftest import SECRET
from tests.serving import served, settings_with
from tests.test_status import until
from tis.errors import Forbidden, Unauthenticated
from tis.http.origins import AllowedOrigins
from tis.marketplace.kit.open_mode import require_this_computer

pytestmark = pytest.mark.one_database
LOCAL = ("127.0.0.1", 3000)
LAN = ("192.168.1.7", 3000)


@pytest.fixture(scope="module")
def client_with_cors_origin() -> Iterator[httpx2.Client]:
    """An open server whose CORS_ORIGINS names one page, and not `local`."""
    settings = settings_with(jwt_secret_key=SECRET, marketplace_auth="open", cors_origins="https://shop.example")
    with served(settings) as running, httpx2.Client(base_url=running.url, timeout=30) as client:
        yield client


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [("Host", "localhost")],
        [("Host", "LOCALHOST:3000")],
        [("Host", "127.0.0.1:3000")],
        [("Host", "[::1]:3000")],
        [("Origin", "http://localhost:5173")],
        [("Origin", "https://[::1]:8443")],
        [("Referer", "https://example.com/docs")],
    ],
    ids=str,
)
def test_programs_and_pages_of_this_computer_need_no_token(
    laptop: httpx2.Client, headers: list[tuple[str, str]]
) -> None:
    user = register_user(laptop, email=new_email())
    assert laptop.get(f"/api/users/{user['id']}", headers=headers).json()["email"] == user["email"]


@pytest.mark.parametrize("host", ["market.example.com", "localhost.example.com", "192.168.1.7:3000", ""])
def test_another_host_name_is_refused(laptop: httpx2.Client, host: str) -> None:
    """DNS rebinding: a page of another host name that resolves to 127.0.0.1 sends that name as `Host`."""
    refused = laptop.get("/api/suppliers", headers={"Host": host})
    assert refused.status_code == 403 and "ALLOWED_HOSTS" in refused.json()["detail"]


def test_a_host_header_that_is_no_host_is_a_400(laptop: httpx2.Client) -> None:
    refused = laptop.get("/api/suppliers", headers={"Host": "localhost:3000@example.com"})
    assert refused.status_code == 400


def test_a_name_of_allowed_hosts_is_refused_too() -> None:
    settings = settings_with(jwt_secret_key=SECRET, marketplace_auth="open", allowed_hosts="market.example.com")
    with served(settings) as running:
        refused = httpx2.get(f"{running.url}/api/suppliers", headers={"Host": "market.example.com"})
    assert refused.status_code == 403 and "MARKETPLACE_AUTH=open" in refused.json()["detail"]


@pytest.mark.parametrize(
    "origin", ["https://example.com", "http://localhost.example.com", "http://localhost@example.com", "null", ""]
)
def test_a_web_page_of_another_origin_is_refused(laptop: httpx2.Client, origin: str) -> None:
    user = register_user(laptop, email=new_email())
    headers = {"Origin": origin, **bearer(user)}
    refused = laptop.put("/api/users/me", json={"city": "Bandung"}, headers=headers)
    assert refused.status_code == 403 and "CORS_ORIGINS" in refused.json()["detail"]
    assert laptop.get(f"/api/users/{user['id']}").json()["city"] is None


def test_pages_of_cors_origins_and_of_the_server_itself_may_call(client_with_cors_origin: httpx2.Client) -> None:
    origins = ["https://shop.example", str(client_with_cors_origin.base_url).rstrip("/"), "http://localhost:5173"]
    statuses = [
        client_with_cors_origin.get("/api/suppliers", headers={"Origin": origin}).status_code for origin in origins
    ]
    assert statuses == [200, 200, 403]


def test_a_client_behind_a_local_proxy_is_not_local(laptop: httpx2.Client) -> None:
    refused = laptop.get("/api/suppliers", headers={"X-Forwarded-For": "192.0.2.1"})
    assert refused.status_code == 401 and "MARKETPLACE_AUTH=required" in refused.json()["detail"]
    assert refused.headers["WWW-Authenticate"] == "Bearer"


@pytest.mark.parametrize(
    ("server", "client", "is_refused"),
    [
        (LOCAL, LOCAL, False),
        (("127.8.8.8", 3000), ("127.0.0.1", 5000), False),
        (("::1", 3000), ("::1", 5000), False),
        (LAN, LOCAL, True),  # `uvicorn main:app --host 0.0.0.0`
        (LOCAL, LAN, True),
        (LAN, LAN, True),
        (("0.0.0.0", 3000), LOCAL, True),
        (("/run/market.sock", None), None, True),
        (None, None, True),
    ],
)
def test_both_ends_of_the_socket_must_be_local(
    server: tuple[str, int | None] | None, client: tuple[str, int] | None, is_refused: bool
) -> None:
    request = Request({"type": "http", "server": server, "client": client, "headers": [(b"host", b"localhost")]})
    if is_refused:
        with pytest.raises(Unauthenticated, match="MARKETPLACE_AUTH=required"):
            require_this_computer(request, AllowedOrigins(["local"]))
    else:
        require_this_computer(request, AllowedOrigins(["local"]))


@pytest.mark.parametrize("headers", [[], [(b"host", b"localhost"), (b"host", b"market.example.com")]])
def test_a_missing_or_second_host_header_is_refused(headers: list[tuple[bytes, bytes]]) -> None:
    request = Request({"type": "http", "server": LOCAL, "client": LOCAL, "headers": headers})
    with pytest.raises(Forbidden, match="Host"):
        require_this_computer(request, AllowedOrigins(["*"]))


def test_with_required_tokens_any_origin_is_accepted(internet: httpx2.Client) -> None:
    """Another web page has no token of the user, and the browser adds none by itself."""
    user = register_user(internet, email=new_email())
    headers = {"Origin": "https://example.com", "X-Forwarded-For": "192.0.2.1"}
    path = f"/api/users/{user['id']}"
    assert internet.get(path, headers=headers).status_code == 404
    assert internet.get(path, headers=headers | bearer(user)).json()["email"] == user["email"]


def test_open_mode_logs_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    with (
        caplog.at_level(logging.INFO, "tis"),
        served(settings_with(marketplace_auth="open", log_level="info")) as running,
    ):
        until(lambda: httpx2.get(f"{running.url}/health").json()["marketplace"] == "ready")
    # Another open server of this module may have logged the same.
    lines = [line for line in caplog.records if "MARKETPLACE_AUTH=open" in line.getMessage()]
    assert lines and all(line.levelno == logging.WARNING and "no token" in line.getMessage() for line in lines)
