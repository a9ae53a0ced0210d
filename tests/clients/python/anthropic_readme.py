"""The example of the README of Anthropic's SDK, as it is printed. Only its environment says where the server is."""

import contextlib
import importlib.metadata
import io
import re

import pytest


def examples() -> list[str]:
    readme = importlib.metadata.metadata("anthropic").json["description"]
    assert isinstance(readme, str)
    return re.findall(r"```python\n(.+?)```", readme, re.DOTALL)


def test_the_readme_has_examples() -> None:
    assert examples()


@pytest.mark.parametrize("number", range(len(examples())))
def test_an_example_runs_as_it_is_printed(number: int, url: str, api_key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_BASE_URL", url)
    monkeypatch.setenv("ANTHROPIC_API_KEY", api_key)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(examples()[number], f"example {number}", "exec"), {})
    assert "TextBlock(" in printed.getvalue()
