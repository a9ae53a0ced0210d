"""What docs/marketplace.md shows as the answer after `make demo` is what the demo model and the sample really give."""

import json
import re
from pathlib import Path

import httpx2
import pytest

from tests.marketplace.conftest import SECRET
from tests.serving import REPOSITORY, served, settings_with
from tis.database.database import Database
from tis.marketplace.seed import commands as seed_commands

pytestmark = [pytest.mark.slow, pytest.mark.model, pytest.mark.long]
PAGE = (REPOSITORY / "docs" / "marketplace.md").read_text(encoding="utf-8")


def test_the_demo_model_picks_what_the_page_shows(tmp_path: Path) -> None:
    chapter = PAGE.partition("/api/chat/search -H")[2]
    question = json.loads(re.findall(r"-d '(.*?)'", chapter)[0])
    shown = re.findall(r"```text\n(.*?)\n```", chapter, re.DOTALL)[0]
    database_url = f"sqlite:///{tmp_path}/market.db"
    database = Database(database_url)
    seed_commands.bring_up_to_date(database)
    seed_commands.add_sample(database)
    database.close()
    settings = settings_with(
        model_repo_id="models/demo",
        load_wait_seconds=120,
        assistant_model="demo",
        database_url=database_url,
        jwt_secret_key=SECRET,
        marketplace_auth="open",
    )
    with served(settings) as running, httpx2.Client(base_url=running.url, timeout=120) as http:
        loaded = http.post("/v1/chat/completions", json={"messages": [{"role": "user", "content": "Halo"}]})
        assert loaded.status_code == 200
        answer = http.post("/api/chat/search", json=question).json()
    assert answer["answered_by"] == "model"
    assert _without_opening_hours(answer["response"]) == _without_opening_hours(shown)


def _without_opening_hours(text: str) -> str:
    """Goods can be had today only while the shop is open."""
    return text.replace(" hari ini.", ".")
