"""Servers as users run them: processes of their own, with nothing of the clients in them."""

from collections.abc import Iterator

import pytest

from tests.serving import server_process, wait_until_live

API_KEY, ADMIN_KEY = "sk-clients", "sk-admin"


@pytest.fixture(scope="module")
def servers() -> Iterator[dict[str, str]]:
    """Where they are, as the clients' tests are told: one with the demo model and a key, a slow one without."""
    demo = server_process(
        MODEL_REPO_ID="demo",
        MODELS="demo-embedding",
        API_KEYS=API_KEY,
        ADMIN_KEY=ADMIN_KEY,
        EAGER_LOAD_MODEL="1",
        LOAD_WAIT_SECONDS="120",
        LOG_LEVEL="warning",
    )
    slow = server_process(MODEL_REPO_ID="echo?tokens_per_second=50", LOG_LEVEL="warning")
    with demo as asked, slow as followed:
        wait_until_live(asked.url)
        wait_until_live(followed.url)
        keys = {"CLIENTS_API_KEY": API_KEY, "CLIENTS_ADMIN_KEY": ADMIN_KEY}
        yield {"CLIENTS_URL": asked.url, "CLIENTS_SLOW_URL": followed.url, **keys}
