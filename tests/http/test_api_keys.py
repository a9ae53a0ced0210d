"""API keys: who may call, and to whom a session belongs."""

import sys
from collections.abc import Iterator

import httpx2
import pytest
from starlette.datastructures import Headers

from tests.openai_api.test_chat import CHAT, said
from tests.serving import free_port, served, server_process, settings_with, wait_until_live
from tis.app import create_app
from tis.http.api_keys import ANONYMOUS, ApiKeys
from tis.http.errors import InvalidApiKey


def owner(keys: ApiKeys, **headers: str) -> str:
    return keys.owner_of(Headers({name.replace("_", "-"): value for name, value in headers.items()}))


def test_without_keys_every_client_is_anonymous() -> None:
    assert owner(ApiKeys([])) == owner(ApiKeys([]), authorization="Bearer x") == ANONYMOUS


def test_each_key_has_its_own_owner_name_that_does_not_reveal_the_key() -> None:
    keys = ApiKeys(["one", "two"])
    first, second = owner(keys, authorization="Bearer one"), owner(keys, x_api_key="two ")  # as curl sends a blank
    assert first != second and "one" not in first


@pytest.mark.parametrize(
    "headers", [{}, {"authorization": "Bearer three"}, {"authorization": "one"}, {"x_api_key": ""}]
)
def test_a_missing_or_wrong_key_is_refused(headers: dict[str, str]) -> None:
    with pytest.raises(InvalidApiKey):
        owner(ApiKeys(["one"]), **headers)


def test_a_start_warns_of_keys_that_can_be_guessed(caplog: pytest.LogCaptureFixture) -> None:
    long = "k" * 16
    create_app(settings_with(api_keys="short"))
    create_app(settings_with(host="0.0.0.0", api_keys=long, admin_key=long))
    assert "can be guessed" not in caplog.text
    create_app(settings_with(host="0.0.0.0", api_keys=long, admin_key="short"))
    assert "can be guessed" in caplog.text and "short" not in caplog.text


UVICORN = (sys.executable, "-m", "uvicorn", "main:app")


class TestAServerWithKeys:
    @pytest.fixture(scope="class")
    @classmethod
    def url(cls) -> Iterator[str]:
        with served(settings_with(api_keys="alpha,beta")) as running:
            yield running.url

    @pytest.mark.parametrize("path", ["/v1/models", "/v1/nowhere"])
    def test_without_a_key_the_response_is_a_401_that_says_how_to_send_one(self, url: str, path: str) -> None:
        answer = httpx2.get(url + path)
        assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
        assert answer.json()["error"]["code"] == "invalid_api_key"

    def test_a_wrong_key_is_refused_before_the_body_is_read(self, url: str) -> None:
        answer = httpx2.post(url + CHAT, content=b"no json at all", headers={"Content-Type": "application/json"})
        assert answer.status_code == 401

    def test_keys_are_required_behind_a_root_path_too(self) -> None:
        port = str(free_port())
        with server_process(*UVICORN, "--port", port, "--root-path", "/api", PORT=port, API_KEYS="sesame") as process:
            wait_until_live(process.url)
            without_key = httpx2.get(f"{process.url}/v1/models")
            with_key = httpx2.get(f"{process.url}/v1/models", headers={"x-api-key": "sesame"})
        assert (without_key.status_code, with_key.status_code) == (401, 200)
        assert without_key.json()["error"]["code"] == "invalid_api_key"

    @pytest.mark.parametrize("headers", [{"Authorization": "Bearer alpha"}, {"x-api-key": "beta"}])
    def test_a_valid_key_is_accepted(self, url: str, headers: dict[str, str]) -> None:
        assert httpx2.post(url + CHAT, json=said("Halo"), headers=headers).status_code == 200

    def test_what_a_key_reads_is_kept_by_no_cache_that_others_share(self, url: str) -> None:
        """For caches only `Authorization` is a reason not to keep an answer for everybody."""
        key = {"x-api-key": "alpha"}
        assert httpx2.get(f"{url}/v1/models", headers=key).headers["cache-control"] == "private, no-store"
        assert httpx2.get(f"{url}/v1/responses/unknown", headers=key).headers["cache-control"] == "private, no-store"
        page = httpx2.get(f"{url}/docs", headers=key)
        assert page.headers["cache-control"] == "no-cache" and page.headers["etag"]

    @pytest.mark.parametrize("path", ["/health", "/live", "/ready"])
    def test_the_probes_need_no_key(self, url: str, path: str) -> None:
        assert httpx2.get(url + path).status_code == 200

    def test_a_session_of_another_key_does_not_exist(self, url: str) -> None:
        body = said("Halo", session_id="shared-name", stream=True)
        alpha, beta = {"x-api-key": "alpha"}, {"x-api-key": "beta"}
        mine = httpx2.post(url + CHAT, json=body, headers=alpha)
        theirs = httpx2.post(url + CHAT, json=body, headers={**beta, "Last-Event-ID": "shared-name:0"})
        assert (mine.status_code, theirs.status_code) == (200, 404)
        assert httpx2.post(f"{url}/v1/cancel/shared-name", headers=beta).json()["status"] == "unknown"
        own = httpx2.post(url + CHAT, json=said("other", session_id="shared-name"), headers=beta)
        assert own.json()["choices"][0]["message"]["content"] == "other"
