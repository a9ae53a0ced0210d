"""Writes the settings into .env.example and docs/settings.md, from the one place where they are defined.

`python scripts/write_settings.py` after changing `Settings`; a test compares all three.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tis.setting_types import as_written, variable_name  # noqa: E402
from tis.settings import AREAS  # noqa: E402

_ENV_HEAD = """\
# Every setting with its default. Copy to .env and take the # off the lines you change; the environment wins over .env.
"""
_PAGE_HEAD = """\
# Settings

This page is generated: `python scripts/write_settings.py` writes it and `.env.example` from `tis/settings.py`.

The server reads settings from the environment and from a file `.env` in the current folder. To write one, copy
`.env.example` and remove the `#` from the lines you change. A flag of `tis serve` wins over the environment,
the environment wins over `.env`. An empty value means the default. An invalid value stops the start with one
line that names the setting.

The flag of a setting is its name in lower case with dashes: `MAX_BATCH_SIZE` is `--max-batch-size`. `tis serve --help`
lists all flags and their short forms.

If you set `API_KEYS` or `API_KEYS_FILE`, requests need `Authorization: Bearer <key>` or `x-api-key: <key>`, and a
session belongs to the key that started it: [keys, limits and TLS](keys.md). Set `HOST=0.0.0.0` only together with keys.
"""


def heading(area: type) -> str:
    return str(area.__doc__)


def main() -> None:
    env, page = [_ENV_HEAD], [_PAGE_HEAD]
    for area in AREAS:
        env.append(f"# === {heading(area)} ===\n")
        page += [f"## {heading(area)}\n", "| variable | default | meaning |", "|---|---|---|"]
        for name, field in area.model_fields.items():
            variable, default = variable_name(name), as_written(field.default)
            env += [f"# {field.description}", f"#{variable}={default}"]
            page.append(f"| `{variable}` | {f'`{default}`' if default else '–'} | {field.description} |")
        env.append("")
        page.append("")
    (ROOT / ".env.example").write_text("\n".join(env).rstrip() + "\n", encoding="utf-8")
    (ROOT / "docs" / "settings.md").write_text("\n".join(page).rstrip() + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
