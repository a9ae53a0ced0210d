"""Writes docs/endpoints.md from the routes of the app and docs/fields: `python scripts/write_endpoints.py`.

Tests compare the page with both.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from scripts.field_tables import field_sections  # noqa: E402
from tis.app import create_app  # noqa: E402
from tis.settings import Settings  # noqa: E402

PAGE = ROOT / "docs" / "endpoints.md"
_HEAD = """\
# Endpoints

This page is generated: `python scripts/write_endpoints.py` writes it from the app and from `docs/fields`. A running
server shows the endpoints with parameters, schemas and examples at `/docs`, and as
`/openapi.json` and `/openapi.yaml`. What it does with each field of a request stands [at the end](#fields-of-requests).
"""
_TITLES = {
    "OpenAI": "OpenAI API",
    "Anthropic": "Anthropic API",
    "Ollama": "Ollama API",
    "KTP": "Identity cards",
    "MCP": "MCP server",
    "status": "Status and metrics",
    "products": "Marketplace: products",
    "pictures": "Marketplace: pictures",
    "payments": "Marketplace: payments",
    "reviews": "Marketplace: reviews",
    "promotions": "Marketplace: promotions",
    "alerts": "Marketplace: alerts and saved searches",
    "stock": "Marketplace: stock",
    "branches": "Marketplace: places of a shop",
    "orders": "Marketplace: orders",
    "messages": "Marketplace: messages between buyers and shops",
    "feeds": "Marketplace: feeds",
    "notices": "Marketplace: notices",
    "categories": "Marketplace: categories and synonyms",
    "assistant": "Marketplace: assistant",
    "suppliers": "Marketplace: suppliers",
    "users": "Marketplace: users",
    "accounts": "Marketplace: accounts",
    "admin": "Marketplace: administration",
}


def page(openapi: dict[str, Any]) -> str:
    lines, title = [_HEAD], ""
    for tag, method, path, text in _operations(openapi):
        if tag != title:
            lines += ["", f"## {_TITLES[tag]}", "", "| endpoint | what it does |", "|---|---|"]
            title = tag
        lines.append(f"| `{method} {path}` | {text} |")
    return "\n".join([*lines, "", field_sections()]).replace("\n\n\n", "\n\n")


def _operations(openapi: dict[str, Any]) -> Iterator[tuple[str, str, str, str]]:
    operations = [
        (operation["tags"][0], method.upper(), path, _first_paragraph(operation))
        for path, methods in openapi["paths"].items()
        for method, operation in methods.items()
    ]
    order = list(_TITLES)
    yield from sorted(operations, key=lambda operation: order.index(operation[0]))


def _first_paragraph(operation: dict[str, Any]) -> str:
    text: str = operation.get("description") or operation["summary"]
    return " ".join(text.partition("\n\n")[0].split()).replace("|", "\\|")


def main() -> None:
    settings = Settings.from_env({"MODEL_REPO_ID": "echo"}, env_file=None)
    PAGE.write_text(page(create_app(settings).openapi()), encoding="utf-8")


if __name__ == "__main__":
    main()
