"""Host headers: a web page of another name that resolves to this computer is refused."""

from collections.abc import Iterator, Mapping

import httpx2
import pytest

from tests.openai_api.test_chat import CHAT, said
from tests.serving import served, settings_with
from tis.http.hosts import HostMiddleware, ServedHosts
from tis.setting_types import SettingsError
from tis.settings import Settings

EVIL = "rebound.example"


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with served(
        settings_with(allowed_hosts="tis.lan,Second.LAN", cors_origins="local,https://shop.example:8443")
    ) as one:
        yield one.url


def status_under(url: str, host: str, path: str = "/v1/models", **headers: str) -> int:
    return httpx2.get(url + path, headers={"Host": host, **headers}).status_code


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "LOCALHOST:3000",
        "127.0.0.1:1",
        "[::1]:3000",
        "tis.lan",
        "tis.lan.",
        "second.lan:80",
        "shop.example",
    ],
)
def test_local_names_those_of_the_setting_and_those_of_cors_origins_pass(url: str, host: str) -> None:
    assert status_under(url, host) == 200


@pytest.mark.parametrize("host", [EVIL, f"{EVIL}:3000", "localhost.rebound.example", "192.168.1.7:3000", ""])
def test_another_name_is_refused_in_the_form_of_each_api(url: str, host: str) -> None:
    refused = httpx2.post(url + CHAT, json=said("Halo"), headers={"Host": host})
    error = refused.json()["error"]
    assert (refused.status_code, error["code"], error["param"]) == (403, "host_not_allowed", None)
    assert "ALLOWED_HOSTS" in error["message"]
    for path in ("/api/products", "/health", "/docs", "/nowhere"):
        refused = httpx2.get(url + path, headers={"Host": host})
        assert refused.status_code == 403 and "ALLOWED_HOSTS" in refused.json()["detail"]


def test_a_long_name_is_not_repeated_at_length(url: str) -> None:
    assert len(httpx2.get(url + "/health", headers={"Host": "x" * 5000}).content) < 500


def test_with_keys_v1_answers_under_any_name_and_the_rest_does_not() -> None:
    with served(settings_with(api_keys="sesame")) as running:
        assert status_under(running.url, EVIL, Authorization="Bearer sesame") == 200
        assert status_under(running.url, EVIL) == 401
        assert status_under(running.url, EVIL, "/api/products") == 403


@pytest.mark.parametrize(
    "settings",
    [{"host": "0.0.0.0"}, {"allowed_hosts": "*"}, {"cors_origins": "*"}],
    ids=lambda one: str(next(iter(one))),
)
def test_a_server_for_others_answers_under_any_name(settings: Mapping[str, str]) -> None:
    with served(settings_with(**settings)) as running:
        assert status_under(running.url, EVIL) == 200


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("server", "hosts", "passes"),
    [
        (("127.0.0.1", 3000), [EVIL], False),
        (("::1", 3000), [EVIL], False),
        (("127.0.0.1", 3000), ["localhost", EVIL], False),
        (("127.0.0.1", 3000), [], True),  # HTTP/1.0
        (("192.168.1.7", 3000), [EVIL], True),  # `uvicorn main:app --host 0.0.0.0`
        (("/run/tis.sock", None), [EVIL], True),
        (None, [EVIL], True),
    ],
)
async def test_only_connections_to_a_loopback_address_are_checked(
    server: tuple[str, int | None] | None, hosts: list[str], passes: bool
) -> None:
    seen: list[object] = []

    async def app(scope: object, receive: object, send: object) -> None:
        seen.append(scope)

    async def send(message: object) -> None:
        pass

    async def receive() -> dict[str, object]:
        return {"type": "http.disconnect"}

    checked = HostMiddleware(app, ServedHosts(["localhost"], []), [])
    headers = [(b"host", host.encode()) for host in hosts]
    await checked({"type": "http", "method": "GET", "path": "/", "server": server, "headers": headers}, receive, send)
    assert bool(seen) is passes


@pytest.mark.parametrize("value", ["https://tis.lan", "tis.lan/v1", "two words"])
def test_a_setting_that_is_no_host_name_stops_the_start(value: str) -> None:
    with pytest.raises(SettingsError, match="ALLOWED_HOSTS"):
        Settings.from_env({"ALLOWED_HOSTS": value}, env_file=None)
