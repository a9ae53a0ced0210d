"""pytest with these arguments. A few tests that failed run once more, alone; what passes only then is printed.

For `make test-pages` and `make test-faults`: docs/decisions/0141-a-second-run-of-tests-with-processes.md.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

_MAX_TESTS = 5


def main(arguments: list[str]) -> int:
    """The exit code of the last run."""
    # A cache of its own: it knows what failed in this run, and nothing of runs before.
    with tempfile.TemporaryDirectory() as cache:
        command = [sys.executable, "-m", "pytest", *arguments, "-o", f"cache_dir={cache}"]
        code = subprocess.call(command)
        failed = _failed(Path(cache))
        if code != 1 or not 0 < len(failed) <= _MAX_TESTS:
            return code
        print(f"\nWhat failed runs once more, alone: {len(failed)}.", flush=True)
        code = subprocess.call([*command, "-n", "0", "--last-failed", "--last-failed-no-failures", "none"])
        still = _failed(Path(cache))
    for name in failed:
        print(f"{'FAILED TWICE' if name in still else 'PASSED ONLY WHEN RUN ALONE'}: {name}", flush=True)
    return code or int(bool(still))  # what was not found again has not passed


def _failed(cache: Path) -> list[str]:
    """Tests, and files that could not be read."""
    file = cache / "v" / "cache" / "lastfailed"
    return list(json.loads(file.read_text(encoding="utf-8"))) if file.is_file() else []


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
