"""A strict server whose jobs rest: the test says when they look."""

from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from tests.marketplace.conftest import SECRET
from tests.serving import served, settings_with


@pytest.fixture(scope="module")
def internet(strict_database_url: str, mail_folder: Path) -> Iterator[httpx2.Client]:
    settings = settings_with(
        database_url=strict_database_url,
        jwt_secret_key=SECRET,
        marketplace_auth="required",
        mail_folder=str(mail_folder),
        alert_check_seconds=3600,
    )
    with served(settings) as running, httpx2.Client(base_url=running.url, timeout=30) as client:
        market = running.app.state.marketplace.market
        market._sweeper.stop()
        market._watch_job.stop()
        yield client
