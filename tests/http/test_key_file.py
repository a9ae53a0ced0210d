"""API_KEYS_FILE: what may stand in it, and what happens when it changes."""

import json
import os
import stat
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.http.keys import bearer, entry, write_key_file
from tests.openai_api.test_chat import CHAT, said
from tests.serving import Served, served, settings_with
from tests.test_status import until
from tis.app import create_app
from tis.http.key_file import KeyEntry, KeyFileError, expiry_of, new_secret, read_keys, write_entries
from tis.setting_types import SettingsError

pytestmark = pytest.mark.long

CATALOGUE = "models:\n  first: {repo: echo, aliases: [one]}\n  second: {repo: 'echo?tokens_per_second=1000'}\n"


def refusal(tmp_path: Path, text: str, name: str = "keys.yaml") -> str:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(KeyFileError) as refused:
        read_keys(path)
    assert "\n" not in str(refused.value) and "secret-value" not in str(refused.value)
    return str(refused.value)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "empty file"),
        ("keys: [", "line 1"),
        ("keys: {a: secret-value}", "list"),
        ("keys: [{name: a}]", "either `key` or `digest`"),
        ("keys: [{name: a, key: secret-value, digest: secret-value}]", "keys.0.digest"),
        ("keys: [{name: 'a b', key: secret-value}]", "keys.0.name"),
        ("keys: [{name: admin, key: secret-value}]", "taken"),
        ("keys: [{name: a, key: secret-value, shares: 2}]", "keys.0.shares"),
        ("keys: [{name: a, key: secret-value, share: 2}]", "keys.0.share"),
        ("keys: [{name: a, key: secret-value}, {name: a, key: secret-value-2}]", "a is there twice"),
        ("keys: [{name: a, key: secret-value}, {name: b, key: secret-value}]", "same key"),
        ("keys: [{name: a, key: secret-value, expires: tomorrow}]", "keys.0.expires"),
        ("secret-value: &a [*a]", "keys"),
    ],
)
def test_a_wrong_file_is_one_line_that_quotes_no_key(tmp_path: Path, text: str, why: str) -> None:
    assert why in refusal(tmp_path, text)


def test_json_that_is_cut_off_is_refused(tmp_path: Path) -> None:
    assert "line 1" in refusal(tmp_path, '{"keys": [{"name": "a", "key": "secret-value"', "keys.json")


def test_a_day_of_expiry_ends_in_utc(tmp_path: Path) -> None:
    path = tmp_path / "keys.yaml"
    path.write_text("keys: [{name: a, key: long-enough, expires: 2027-01-31}]")
    [key] = read_keys(path)
    assert key.expires_at == datetime(2027, 2, 1, tzinfo=UTC).timestamp()
    assert expiry_of("30d", datetime(2027, 1, 1, tzinfo=UTC)) == datetime(2027, 1, 31, tzinfo=UTC)


@pytest.mark.parametrize("name", ["keys.yaml", "keys.json"])
def test_what_is_written_is_read_again_and_is_the_owners_alone(tmp_path: Path, name: str) -> None:
    key, digest = new_secret()
    path = tmp_path / name
    path.write_text("keys: []")
    path.chmod(0o644)
    write_entries(path, [KeyEntry(name="a", digest=digest, share=0.25, note="of the web shop", tokens_per_day=10)])
    [read] = read_keys(path)
    assert (read.name, read.owner_share, read.limits.tokens_per_day) == ("a", 0.25, 10)
    assert key not in path.read_text() and stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [one.name for one in tmp_path.iterdir()] == [name]


def test_a_file_of_a_group_stays_readable_for_it_and_keeps_its_owner(tmp_path: Path) -> None:
    """As root:tis with mode 640: a server of the user tis must see what root revokes."""
    path = tmp_path / "keys.yaml"
    path.write_text("keys: []")
    group = 12_345 if os.geteuid() == 0 else os.getgroups()[-1]
    os.chown(path, -1, group)
    path.chmod(0o660)
    write_entries(path, [])
    written = path.stat()
    assert (written.st_gid, stat.S_IMODE(written.st_mode)) == (group, 0o640)


class TestAServerWithAKeyFile:
    @pytest.fixture(scope="class")
    @classmethod
    def path(cls, tmp_path_factory: pytest.TempPathFactory) -> Path:
        return tmp_path_factory.mktemp("keys") / "keys.yaml"

    @pytest.fixture(scope="class")
    @classmethod
    def server(cls, path: Path) -> Iterator[Served]:
        catalogue = path.with_name("models.yaml")
        catalogue.write_text(CATALOGUE)
        write_key_file(path, entry("all", "sk-for-all"), entry("narrow", "sk-narrow", models=["second", "ktp-ocr"]))
        settings = settings_with(
            api_keys_file=str(path), model_config_path=str(catalogue), model_repo_id="first", models="second"
        )
        with served(settings) as running:
            yield running

    def test_a_key_uses_its_models_only(self, server: Served) -> None:
        def status(key: str, model: str) -> int:
            return httpx2.post(server.url + CHAT, json=said("Halo", model=model), headers=bearer(key)).status_code

        assert [status("sk-for-all", "first"), status("sk-for-all", "second")] == [200, 200]
        assert [status("sk-narrow", model) for model in ("first", "one", "second")] == [403, 403, 200]

    def test_the_refusal_is_in_the_shape_of_each_api(self, server: Served) -> None:
        headers, body = bearer("sk-narrow"), said("Halo", model="first", max_tokens=5)
        chat = httpx2.post(server.url + CHAT, json=body, headers=headers)
        assert (chat.status_code, chat.json()["error"]["code"]) == (403, "model_not_allowed")
        message = httpx2.post(f"{server.url}/v1/messages", json=body, headers=headers)
        assert (message.status_code, message.json()["error"]["type"]) == (403, "permission_error")
        for path in ("chat", "show"):
            ollama = httpx2.post(f"{server.url}/api/{path}", json=body, headers=headers)
            assert (ollama.status_code, "may not use" in ollama.json()["error"]) == (403, True)

    def test_lists_show_the_models_of_the_key(self, server: Served) -> None:
        headers = bearer("sk-narrow")
        listed = httpx2.get(f"{server.url}/v1/models", headers=headers).json()["data"]
        of_anthropic = httpx2.get(f"{server.url}/v1/models", headers={**headers, "anthropic-version": "2023-06-01"})
        of_ollama = httpx2.get(f"{server.url}/api/tags", headers=headers).json()["models"]
        assert [one["id"] for one in listed] == [one["id"] for one in of_anthropic.json()["data"]] == ["second"]
        assert [one["name"] for one in of_ollama] == ["second:latest"]
        assert httpx2.get(f"{server.url}/v1/models/first", headers=headers).status_code == 404

    def test_without_a_name_the_first_model_of_the_key_answers(self, server: Served) -> None:
        answer = httpx2.post(server.url + CHAT, json=said("Halo"), headers=bearer("sk-narrow"))
        assert (answer.status_code, answer.json()["model"]) == (200, "second")

    def test_cards_need_their_name_in_the_list(self, server: Served, path: Path) -> None:
        def status() -> int:
            return httpx2.post(f"{server.url}/ktp-ocr/", headers=bearer("sk-narrow")).status_code

        assert status() != 403
        write_key_file(path, entry("all", "sk-for-all"), entry("narrow", "sk-narrow", models=["second"]))
        until(lambda: status() == 403)

    def test_a_new_key_works_a_removed_one_does_not_and_a_wrong_file_changes_nothing(
        self, server: Served, path: Path
    ) -> None:
        def status(key: str) -> int:
            return httpx2.get(f"{server.url}/v1/models", headers=bearer(key)).status_code

        def health() -> Any:
            return httpx2.get(f"{server.url}/health", headers=bearer("sk-newest")).json()["keys"]

        def metrics() -> str:
            return httpx2.get(f"{server.url}/metrics", headers=bearer("sk-newest")).text

        write_key_file(path, entry("all", "sk-for-all"), entry("new", "sk-newest"))
        until(lambda: status("sk-newest") == 200)
        assert status("sk-narrow") == 401
        good = path.read_text()
        for wrong in (good[: len(good) // 2], "", "keys: 1"):
            path.write_text(wrong)
            until(lambda: health()["file"] == "stale")
            assert status("sk-newest") == 200 and str(path) in health()["fileError"]
            assert "tis_key_file_stale 1.0" in metrics()
            path.write_text(good)
            until(lambda: health()["file"] == "ready")
            assert "tis_key_file_stale 0.0" in metrics()


def test_a_server_does_not_start_with_keys_that_it_cannot_read(tmp_path: Path) -> None:
    for name in ("missing.yaml", "wrong.json"):
        (tmp_path / "wrong.json").write_text(json.dumps([]))
        with pytest.raises(SettingsError, match="API_KEYS_FILE"):
            create_app(settings_with(api_keys_file=str(tmp_path / name)))


def test_a_key_has_its_share_of_the_queue(tmp_path: Path) -> None:
    path = write_key_file(tmp_path / "keys.yaml", entry("small", "sk-small", share=0.125), entry("large", "sk-large"))
    with served(settings_with(api_keys_file=str(path), max_bodies_mb=1, admission_wait_seconds=0.05)) as server:
        admission = server.app.state.admission
        small, large = (server.app.state.api_keys.find(key).owner for key in ("sk-small", "sk-large"))
        assert [admission.ticket(owner).owner_share for owner in (small, large)] == [0.125, 0.5]
        budget = admission.budgets["body_bytes"]
        budget.take_now(small, 2**17)
        assert not budget._fits(small, 1) and budget._fits(large, 2**19)
        budget.give_back(small, 2**17)
