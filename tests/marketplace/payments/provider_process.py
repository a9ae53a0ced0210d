"""Starts, steers and kills the fake provider."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2

from tests.serving import REPOSITORY, bare_environment, free_port

Provider = str  # midtrans, xendit


class FakeProvider:
    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._state = folder / "provider.json"
        self._popen: subprocess.Popen[bytes] | None = None
        self.start()

    @property
    def settings(self) -> dict[str, Any]:
        names = ("midtrans_snap", "midtrans_api", "midtrans_sandbox_snap", "midtrans_sandbox_api", "xendit")
        return {**{f"{name}_url": self.url for name in names}, "payment_provider_seconds": 5}

    def start(self) -> None:
        self._popen = subprocess.Popen(
            [sys.executable, "-m", "tests.marketplace.payments.fake_provider", str(self.port), str(self._state)],
            cwd=REPOSITORY,
            env=bare_environment(),
        )
        ends = time.monotonic() + 60
        while self._popen.poll() is None and time.monotonic() < ends:
            try:
                httpx2.post(f"{self.url}/_control/state", timeout=5)
                return
            except httpx2.TransportError:
                time.sleep(0.02)
        raise AssertionError("the fake provider does not listen")

    def kill(self) -> None:
        assert self._popen
        self._popen.kill()
        self._popen.wait()

    def control(self, what: str, **content: Any) -> Any:
        return httpx2.post(f"{self.url}/_control/{what}", json=content, timeout=60).raise_for_status().json()

    def moods(self, **moods: str) -> None:
        self.control("moods", **{name.replace("_", " "): mood for name, mood in moods.items()})

    def fine(self) -> None:
        """Also for requests that it holds."""
        self.control("release")

    def pay(self, name: str, amount: int, status: str = "settlement", currency: str = "IDR") -> None:
        self.control("pay", name=name, amount=amount, status=status, currency=currency)

    def payments(self) -> dict[str, dict[str, Any]]:
        return dict(self.control("state")["payments"])

    def refunds(self) -> list[dict[str, Any]]:
        return list(self.control("state")["refunds"])

    def send(
        self,
        provider: Provider,
        url: str,
        name: str,
        *statuses: str,
        forged: bool = False,
        says: dict[str, Any] | None = None,
    ) -> list[int]:
        """A callback for each status, in this order."""
        common = {"provider": provider, "url": url, "name": name, "forged": forged, "says": says or {}}
        return list(self.control("send", callbacks=[{**common, "status": status} for status in statuses]))


@contextmanager
def running_provider(folder: Path) -> Iterator[FakeProvider]:
    provider = FakeProvider(folder)
    try:
        yield provider
    finally:
        provider.kill()
