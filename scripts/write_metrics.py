"""Writes the table of metrics in docs/instruments.md from what a server exposes; a test compares."""

import re
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

PAGE = ROOT / "docs" / "instruments.md"
_TABLE = re.compile(r"(?<=<!-- metrics -->\n).*(?=<!-- end of metrics -->)", re.DOTALL)


def exposed_page() -> str:
    """The metrics of an app with the echo model, after its marketplace was imported."""
    from starlette.testclient import TestClient

    from tis.app import create_app
    from tis.settings import Settings

    given = {"model_repo_id": "echo", "log_level": "error"}
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings.model_validate({**given, "database_url": f"sqlite:///{folder}/market.db"})
        with TestClient(create_app(settings), base_url="http://127.0.0.1") as client:
            return _page_with_database(client)


def _page_with_database(client: Any) -> str:
    end = time.monotonic() + 60
    while "tis_database_connections_used" not in (page := client.get("/metrics").text):
        if time.monotonic() > end:
            raise TimeoutError("the marketplace is not imported")
        time.sleep(0.1)
    return page


def table_of(page: str) -> str:
    helps = dict(re.findall(r"^# HELP (\S+) (.*)$", page, re.MULTILINE))
    kinds = dict(re.findall(r"^# TYPE (\S+) (\S+)$", page, re.MULTILINE))
    names = sorted(name for name in kinds if not name.endswith("_created"))
    rows = [f"| `{name}` | {kinds[name]} | {helps[name]} |" for name in names]
    return "\n".join(["| name | kind | what it says |", "|---|---|---|", *rows]) + "\n"


def written_table() -> str:
    found = _TABLE.search(PAGE.read_text(encoding="utf-8"))
    return found[0] if found else ""


def main() -> None:
    text = PAGE.read_text(encoding="utf-8")
    table = table_of(exposed_page())
    PAGE.write_text(_TABLE.sub(lambda _: table, text), encoding="utf-8")


if __name__ == "__main__":
    main()
