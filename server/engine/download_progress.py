"""Turns the hub library's progress bars into reports of how much is here."""

from collections.abc import Callable
from typing import Any

from tqdm import tqdm

# Of the bars that a download opens, the one that counts what has reached the disk.
_BYTES_ON_DISK = "huggingface_hub.snapshot_download"


class _Nowhere:
    def write(self, text: str) -> int:
        return len(text)

    def flush(self) -> None:
        pass


def progress_bar_reporting_to(report: Callable[[str, float | None], None]) -> type[Any]:
    class ReportingBar(tqdm):  # type: ignore[type-arg]
        def __init__(self, *args: Any, **options: Any) -> None:
            self._counts_bytes = options.pop("name", None) == _BYTES_ON_DISK
            super().__init__(*args, **{**options, "file": _Nowhere(), "disable": False})

        def update(self, n: float | None = 1) -> bool | None:
            shown = super().update(n)
            if self._counts_bytes and self.total:
                report("downloading", min(1.0, self.n / self.total))
            return bool(shown)

    return ReportingBar
