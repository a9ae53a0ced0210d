"""Reports the progress of downloads and loads, from the progress bars of huggingface_hub and Transformers."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Self


class CountedShare(float):
    """The part that is done, from 0 to 1, with the numbers behind it: bytes of a download, weights of a load."""

    done: int
    total: int

    def __new__(cls, done: float, total: float) -> Self:
        share = super().__new__(cls, min(1.0, done / total))
        share.done, share.total = int(min(done, total)), int(total)
        return share


Report = Callable[[str, float | None], None]  # stage, and the share that is done, if known


def progress_bar_reporting_to(report: Report) -> type[Any]:
    """Returns a tqdm class for `snapshot_download`."""
    from huggingface_hub.utils import tqdm as hub_bar

    # A download opens several bars; this one counts the bytes on disk. The library passes names only to subclasses of
    # its own bar.
    bytes_on_disk = "huggingface_hub.snapshot_download"

    class ReportingBar(hub_bar):  # type: ignore[misc]
        """Draws nothing, and counts by itself, because a disabled tqdm does not count."""

        def __init__(self, *args: Any, **options: Any) -> None:
            self._counts_bytes = options.get("name") == bytes_on_disk
            self._num_done = 0.0
            super().__init__(*args, **{**options, "disable": True})

        def update(self, n: float | None = 1) -> bool | None:
            self._num_done += n or 0
            if self._counts_bytes and self.total:
                report("downloading", CountedShare(self._num_done, self.total))
            return None

    return ReportingBar


@contextmanager
def reporting_weights(report: Callable[[float], None]) -> Iterator[None]:
    """Reports while Transformers loads the weights. One load at a time: its hook is global."""
    from transformers.utils import logging

    def bar(factory: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        counts_weights = options.get("desc") == "Loading weights" and args and hasattr(args[0], "__len__")
        return _CountedParameters(args[0], report) if counts_weights else factory(*args, **options)

    before = logging.set_tqdm_hook(bar)
    try:
        yield
    finally:
        logging.set_tqdm_hook(before)


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """What the loader of Transformers takes for a tensor that is not read yet."""

    read: Callable[[], Any]

    def __getitem__(self, everything: Any) -> Any:
        return self.read()


class _CountedParameters:
    """Replaces the progress bar over the parameters; reports each whole percent once."""

    def __init__(self, parameters: Any, report: Callable[[float], None]) -> None:
        self._parameters: Iterable[Any] = parameters
        self._total = len(parameters)
        self._report = report

    def __iter__(self) -> Iterator[Any]:
        reported = 0
        for number, parameter in enumerate(self._parameters, 1):
            yield parameter
            if (percent := 100 * number // self._total) > reported:
                reported = percent
                self._report(CountedShare(number, self._total))

    def close(self) -> None: ...
