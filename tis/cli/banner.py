"""The banner: the lines that show what is served, where, and with which settings."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tis import __version__
from tis.engine.models.model_status import ModelStatus
from tis.settings import Settings


@dataclass(frozen=True, slots=True)
class Banner:
    settings: Settings
    models: Sequence[ModelStatus]

    def lines(self) -> list[str]:
        url = url_of(self.settings)
        main, *others = self.models
        more = f" and {len(others)} more" if others else ""
        return [
            f"Transformers Inference Server {__version__}, pid {os.getpid()}",
            f"  Model    {main.id}{more}: {_where(main)}",
            f"  Memory   {_memory(main)}",
            f"  Address  {url}/v1{self._reach()}",
            f"  Keys     {self._keys()}",
            f"  Streams  {self._streams()}",
            f"  Market   {self._marketplace()}",
            f"  Open     {url} in a browser: chat, shop, status, docs",
        ]

    def _reach(self) -> str:
        return ", and on every interface of this machine" if _is_every_interface(self.settings.host) else ""

    def _keys(self) -> str:
        number, file = len(self.settings.api_keys), self.settings.api_keys_file
        if number or file:
            given = [f"{number} key{'s' if number > 1 else ''}"] if number else []
            return f"on: {' and '.join([*given, *([f'those of {file}'] if file else [])])}"
        if self._is_open_to_the_network():
            return f"OFF, and bound to {self.settings.host}: everybody who reaches it may call. Set API_KEYS."
        return "off: whoever is on this machine may call"

    @property
    def warning(self) -> str:
        """For the log: empty unless the server is open to the network without keys."""
        return f"Keys are {self._keys()}" if self._is_open_to_the_network() else ""

    def _is_open_to_the_network(self) -> bool:
        has_keys = self.settings.api_keys or self.settings.api_keys_file
        return not has_keys and not self.settings.is_local

    def _streams(self) -> str:
        if self.settings.store_kind == "sqlite":
            return f"survive restarts, in {Path(self.settings.sessions_db_path).absolute()}"
        if self.settings.store_kind == "redis":
            return "survive restarts, in Redis, with whatever servers share it"
        return "survive disconnects; PERSIST_SESSIONS=1 keeps them over restarts, too"

    def _marketplace(self) -> str:
        url = self.settings.database_url.get_secret_value()
        kind, _, path = url.partition(":///")
        place = str(Path(path).absolute()) if kind.startswith("sqlite") and path else kind.partition(":")[0]
        mode = "open to this computer without a token" if self.settings.marketplace_auth == "open" else "with tokens"
        return f"{place}, {mode}"


def _is_every_interface(host: str) -> bool:
    return host in ("0.0.0.0", "::")


def url_of(settings: Settings) -> str:
    host = "127.0.0.1" if _is_every_interface(settings.host) else settings.host
    scheme = "https" if settings.ssl_certfile else "http"
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{settings.port}"


def _where(model: ModelStatus) -> str:
    if model.state != "ready":
        return "will be loaded at the first request"
    return f"{model.footprint.device}, {model.footprint.dtype}" if model.footprint else "loaded"


def _memory(model: ModelStatus) -> str:
    if not model.footprint:
        return "next to none" if model.state == "ready" else "known once it is loaded"
    weights, cache = _bytes(model.footprint.weight_bytes), _bytes(model.footprint.cache_bytes)
    if not model.footprint.cache_tokens:
        return f"{weights} for weights"
    return f"{weights} for weights, up to {cache} for a cache of {model.footprint.cache_tokens:,} tokens"


def _bytes(number: int) -> str:
    for unit in ("B", "KiB", "MiB"):
        if number < 1024:
            return f"{number:.3g} {unit}"
        number /= 1024  # type: ignore[assignment]
    return f"{number:.1f} GiB"
