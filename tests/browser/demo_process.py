"""`tis serve` with the settings of `make demo`, as a process that can be killed."""

import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.cli.tis_process import TIS, environment
from tests.serving import REPOSITORY, free_port, wait_until_live, wait_until_loaded

_MODEL = REPOSITORY / "models" / "demo"


@contextmanager
def demo_process(folder: Path, **variables: str) -> Iterator[str]:
    """Yields its URL once the model is loaded."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    settings = {"PORT": str(port), "PERSIST_SESSIONS": "1", "DEMO": "1", "MODEL_REPO_ID": str(_MODEL), **variables}
    with (folder / "log").open("w") as log:
        parent = subprocess.Popen([*TIS, "serve"], cwd=folder, env=environment(**settings), stderr=log)
    try:
        wait_until_live(url, 90)
        wait_until_loaded(url)
        yield url
    finally:
        parent.send_signal(signal.SIGTERM)
        parent.wait(30)
