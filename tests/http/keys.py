"""Key files for tests."""

import json
from pathlib import Path
from typing import Any

from tis.http.api_keys import digest_of


def entry(name: str, key: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "digest": f"sha256:{digest_of(key).hex()}", **more}


def write_key_file(path: Path, *entries: dict[str, Any]) -> Path:
    path.write_text(json.dumps({"keys": list(entries)}))  # JSON is YAML, too
    return path


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}
