"""The key that signs tokens: configured, or generated once beside the database."""

import json
import logging
import threading
import urllib.request
from pathlib import Path

import pytest

from tests.serving import server_process, wait_until_live
from tis.database.database import Database
from tis.database.errors import DatabaseUnavailable
from tis.errors import Unauthenticated
from tis.marketplace.kit.signing import Claims, Signer, signing_secret
from tis.marketplace.market import Market, MarketRules

CLAIMS = Claims("user:1", "chain", "token")


def market_in(folder: Path) -> Market:
    return Market(Database(f"sqlite:///{folder}/market.db"), MarketRules())


def test_a_key_is_generated_once_and_readable_by_its_owner_only(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first = market_in(tmp_path)
    assert not list(tmp_path.iterdir())
    with caplog.at_level(logging.INFO, "tis"):
        first.open()
    key = tmp_path / "marketplace.key"
    assert key.stat().st_mode & 0o777 == 0o600 and len(key.read_text()) == 64
    assert "marketplace.key" in caplog.text and key.read_text() not in caplog.text
    second = market_in(tmp_path)
    second.open()
    assert second.signer.read(first.signer.sign("access", CLAIMS, 60), "access") == CLAIMS
    first.close()
    second.close()


def test_processes_that_start_at_once_share_one_key(tmp_path: Path) -> None:
    secrets: list[bytes] = []
    everybody = threading.Barrier(8)

    def go() -> None:
        database = Database(f"sqlite:///{tmp_path}/market.db")
        everybody.wait()
        secrets.append(signing_secret(database, None))
        database.close()

    threads = [threading.Thread(target=go) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(secrets) == 8 and len(set(secrets)) == 1


def test_an_empty_key_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "marketplace.key").touch()
    with pytest.raises(DatabaseUnavailable, match=r"marketplace\.key .* delete it"):
        signing_secret(Database(f"sqlite:///{tmp_path}/market.db"), None, wait_seconds=0)


def test_a_database_in_memory_has_a_key_of_its_own() -> None:
    one, other = (signing_secret(Database("sqlite://"), None) for _ in range(2))
    assert len(one) == 32 and one != other


def test_a_configured_secret_is_used_and_no_file_is_written(tmp_path: Path) -> None:
    assert signing_secret(Database(f"sqlite:///{tmp_path}/market.db"), "given") == b"given"
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("account", ["somebody", "user:", "user:x", "admin:1", f"user:{2**70}", "user:1 ", ""])
def test_a_token_with_an_unknown_subject_is_refused(account: str) -> None:
    signer = Signer(b"x" * 32)
    with pytest.raises(Unauthenticated):
        signer.read(signer.sign("access", Claims(account, "chain", "token"), 60), "access")


def test_a_refresh_token_is_not_an_access_token() -> None:
    signer = Signer(b"x" * 32)
    with pytest.raises(Unauthenticated, match="no valid access token"):
        signer.read(signer.sign("refresh", CLAIMS, 60), "access")


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"JWT_SECRET_KEY": "your-secret-key-change-in-production"}, "JWT_SECRET_KEY=(hidden)"),
        ({"DATABASE_URL": "postgresql://somebody@localhost/market"}, "JWT_SECRET_KEY must be set"),
    ],
)
def test_a_bad_secret_stops_the_start_with_one_line(variables: dict[str, str], message: str) -> None:
    with server_process(**variables) as process:
        output, _ = process.popen.communicate(timeout=60)
        assert process.popen.returncode != 0 and output.startswith("Cannot start: ") and message in output
        assert output.count("\n") == 1 and "change-in-production" not in output


@pytest.mark.slow
@pytest.mark.long
def test_a_token_is_valid_after_a_restart(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/market.db"
    body = json.dumps({"name": "Jane", "email": "jane@example.com"}).encode()
    with server_process(DATABASE_URL=url) as first:
        wait_until_live(first.url)
        request = urllib.request.Request(f"{first.url}/api/users/register", body, {"Content-Type": "application/json"})
        token = json.load(urllib.request.urlopen(request))["access_token"]
    with server_process(DATABASE_URL=url) as second:
        wait_until_live(second.url)
        request = urllib.request.Request(f"{second.url}/api/auth/me", headers={"Authorization": f"Bearer {token}"})
        assert json.load(urllib.request.urlopen(request))["name"] == "Jane"
