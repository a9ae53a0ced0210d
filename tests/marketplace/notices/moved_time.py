"""The time of day, which a test moves."""

from datetime import datetime, timedelta

from tis.marketplace.columns import now


class MovedTime:
    def __init__(self) -> None:
        self._ahead = timedelta()

    def __call__(self) -> datetime:
        return now() + self._ahead

    def move(self, **units: float) -> None:
        self._ahead += timedelta(**units)
