"""Runs the commands of docs/marketplace.md and compares the answers with the page."""

import json
import re
import shlex
import subprocess
from dataclasses import dataclass
from typing import Any

import pytest

from tests.marketplace.conftest import SECRET
from tests.serving import REPOSITORY, pictures_url, served, settings_with
from tis.cli.main import parser
from tis.database.database import Database
from tis.marketplace.seed import commands as seed_commands

pytestmark = pytest.mark.long

PAGE = (REPOSITORY / "docs" / "marketplace.md").read_text(encoding="utf-8")
_SERVER = "127.0.0.1:3000"
# Writes down what every curl was answered, and otherwise is curl.
_WATCHED = 'curl() { command curl -sS -w "%{stderr}status %{http_code}\\n" "$@"; }\n'
_NEXT = "----- next -----"


@dataclass(frozen=True)
class Example:
    commands: str
    shown: Any  # what the page says comes back, shortened

    @property
    def refused(self) -> bool:
        return isinstance(self.shown, dict) and "detail" in self.shown


def _examples(text: str) -> list[Example]:
    blocks = re.findall(r"```bash\n(.*?)```\n(?:\n```json\n(.*?)```)?", text, re.DOTALL)
    return [Example(commands, json.loads(shown) if shown else None) for commands, shown in blocks if "curl" in commands]


EXAMPLES = _examples(PAGE)
WITH_A_TOKEN = _examples(PAGE.partition("\n## Who may do what\n")[2])


@dataclass(frozen=True)
class CurlAnswer:
    statuses: list[int]
    text: str


@pytest.fixture(scope="module")
def answers(database_url: str) -> list[CurlAnswer]:
    """All of the page, on a market as `make demo` leaves it."""
    return answers_to(EXAMPLES, database_url, "open")


def answers_to(examples: list[Example], database_url: str, auth: str) -> list[CurlAnswer]:
    """In one shell, one after the other, on a fresh sample."""
    database = Database(database_url)
    seed_commands.bring_up_to_date(database)
    seed_commands.add_sample(database, pictures_url())
    database.close()
    with served(settings_with(database_url=database_url, jwt_secret_key=SECRET, marketplace_auth=auth)) as running:
        between = f"\nprintf '\\n%s\\n' '{_NEXT}' | tee /dev/stderr\n"
        script = _WATCHED + between.join(example.commands for example in examples)
        ran = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script.replace(_SERVER, running.url.removeprefix("http://"))],
            cwd=REPOSITORY,
            capture_output=True,
            text=True,
            timeout=60,
        )
    told, said = ran.stdout.split(_NEXT), ran.stderr.split(_NEXT)
    assert ran.returncode == 0, ran.stderr + ran.stdout
    return [
        CurlAnswer([int(status) for status in re.findall(r"status (\d+)", stderr)], stdout)
        for stdout, stderr in zip(told, said, strict=True)
    ]


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_every_line_is_answered_as_it_is_shown(answers: list[CurlAnswer], number: int) -> None:
    require_as_shown(EXAMPLES[number], answers[number])


def test_lines_with_a_token_are_answered_alike_where_tokens_are_required(strict_database_url: str) -> None:
    assert len(WITH_A_TOKEN) >= 4
    for example, answer in zip(WITH_A_TOKEN, answers_to(WITH_A_TOKEN, strict_database_url, "required"), strict=True):
        require_as_shown(example, answer)


def require_as_shown(example: Example, answer: CurlAnswer) -> None:
    assert len(answer.statuses) == example.commands.count("curl ")
    assert all((status >= 400) == example.refused for status in answer.statuses), answer.text
    if example.shown is not None:
        assert _has(_last_json(answer.text), example.shown), answer.text


def _last_json(text: str) -> Any:
    """Answers of several commands stand one behind another."""
    decoder, rest, value = json.JSONDecoder(), text.strip(), None
    while rest:
        value, end = decoder.raw_decode(rest)
        rest = rest[end:].lstrip()
    return value


def _has(answered: Any, shown: Any) -> bool:
    if isinstance(shown, dict):
        return all(name in answered and _has(answered[name], value) for name, value in shown.items())
    if isinstance(shown, list):
        return len(answered) == len(shown) and all(map(_has, answered, shown))
    return bool(answered == shown)


def test_every_documented_form_of_the_contract_is_among_them() -> None:
    commands = "\n".join(example.commands for example in EXAMPLES)
    for route in (
        "POST http://127.0.0.1:3000/api/suppliers/register",
        "/api/suppliers?city=Jakarta&skip=0&limit=100",
        "/api/suppliers/6",
        "POST http://127.0.0.1:3000/api/suppliers/6/products",
        "PUT http://127.0.0.1:3000/api/products/22",
        "/api/products?category=laptop",
        "/api/products/search?q=laptop+gaming",
        "POST http://127.0.0.1:3000/api/users/register",
        "/api/users/4",
    ):
        assert route in commands


def test_seed_data_knows_every_option_that_is_shown() -> None:
    lines = re.findall(r"python seed_data\.py([^\n`#&]*)", PAGE)
    assert len(lines) >= 4
    for line in lines:
        parser().parse_args(["seed", *shlex.split(line)])
