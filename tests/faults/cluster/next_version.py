"""The next version of the server, as far as its records go: `main.py` that writes other ones, and reads both.

`NEXT_VERSION=fields`: what is new stands in fields that this version does not know, and the numbers stay.
`NEXT_VERSION=records`: the records in Redis have the next number, so this version may not read them.
`NEXT_VERSION=runs`: a run says what this version would misunderstand.
"""

import json
import os
import runpy
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).parents[3]
sys.path[0] = str(REPOSITORY)

from tis.chat import run_spec  # noqa: E402  behind the path that has it
from tis.streaming.stores import redis_records  # noqa: E402
from tis.streaming.stores.store import SessionRecord, TurnRecord  # noqa: E402


def add_fields() -> None:
    session_fields, turn_value, to_json = (
        redis_records.session_fields,
        redis_records.turn_value,
        run_spec.RunSpec.to_json,
    )

    def with_colour(session: SessionRecord, default_ttl_seconds: float) -> redis_records.Fields:
        return {**session_fields(session, default_ttl_seconds), "colour": b"green"}

    def with_mood(turn: TurnRecord) -> bytes:
        head, _, summary = turn_value(turn).partition(b"\n")
        return json.dumps({**json.loads(head), "mood": ["calm"]}).encode() + b"\n" + summary

    def with_tone(spec: run_spec.RunSpec) -> dict[str, Any]:
        return {**to_json(spec), "tone": {"is": "new"}}

    replace("redis_changes", session_fields=with_colour, turn_value=with_mood)
    setattr(run_spec.RunSpec, "to_json", with_tone)  # noqa: B010  mypy refuses the plain assignment


def raise_records() -> None:
    redis_records.VERSION += 1
    replace("redis_replica", VERSION=redis_records.VERSION)


def raise_runs() -> None:
    before, from_json = run_spec.VERSION, run_spec.RunSpec.from_json

    def of_both(given: Mapping[str, Any]) -> run_spec.RunSpec:
        return from_json({**given, "version": run_spec.VERSION} if given.get("version") == before else given)

    run_spec.VERSION += 1
    setattr(run_spec.RunSpec, "from_json", of_both)  # noqa: B010


def replace(module: str, **names: Any) -> None:
    """In a module that has imported them by name."""
    for name, value in names.items():
        setattr(import_module(f"tis.streaming.stores.{module}"), name, value)


if __name__ == "__main__":
    {"fields": add_fields, "records": raise_records, "runs": raise_runs}[os.environ["NEXT_VERSION"]]()
    runpy.run_path(str(REPOSITORY / "main.py"), run_name="__main__")
