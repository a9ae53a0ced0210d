"""The server of a soak: the demo models, keys in a file, a marketplace with accounts; it is killed and started."""

import asyncio
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from random import Random

import yaml

from tests.faults.mortal_server import MortalServer, durable
from tests.serving import REPOSITORY, bare_environment

# Names of keys and their secrets. `narrow` may use one model, `paced` has a limit that it reaches.
KEYS = {name: f"sk-soak-{name}-0123456789" for name in ("ada", "budi", "citra", "narrow", "paced", "guest")}
ORDINARY = ("ada", "budi", "citra")
PACED_REQUESTS_PER_MINUTE = 30
MODELS = "demo-embedding,demo-reranker,demo-whisper,demo-voice"
# Requests that were sent a moment before the server was ready again may still see an end of its predecessor.
_GRACE_SECONDS = 2.0
_START_SECONDS = 300  # on a machine that does other work, too


@dataclass
class Kill:
    at: float
    ready_at: float | None = None


class SoakedServer:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.database = folder / "market.db"
        self.keys_file = folder / "keys.yaml"
        self.kills: list[Kill] = []
        self._restarting = asyncio.Lock()
        variables = durable(
            folder,
            MODEL_CONFIG=str(REPOSITORY / "configs" / "model_config.yaml"),
            MODEL_REPO_ID="demo",
            MODELS=MODELS,
            TORCH_DTYPE="float32",  # in which an answer does not depend on its company
            EAGER_LOAD_MODEL="1",
            LOAD_WAIT_SECONDS="120",
            ASSISTANT_MODEL="demo",
            MARKETPLACE_EMBEDDING_MODEL="demo-embedding",
            DATABASE_URL=f"sqlite:///{self.database}",
            JWT_SECRET_KEY="a-secret-of-the-soak-that-signs-tokens",
            ACCESS_TOKEN_EXPIRE_MINUTES="1440",
            MAX_RESERVATIONS_PER_ACCOUNT="100000",
            MAX_RESERVED_UNITS_PER_PRODUCT="100000",
            RESERVATIONS_PER_MINUTE="0",
            MAX_UNSOLD_HOLD_MINUTES="0",  # one buyer lets reservations of the same goods expire for an hour
            CHAT_TOKENS_PER_DAY="0",
            API_KEYS_FILE=str(self.keys_file),
            SESSIONS_TTL_SECONDS="900",
            SESSIONS_MAX_MB="48",  # full after minutes, too
            MAX_SESSIONS="2000",
            ANONYMOUS_GRACE_SECONDS="5",
            SLOW_READER_SECONDS="20",
            CACHE_TOKENS="32768",  # 64 MiB: full after minutes, so that what grows then is no cache
            OMP_NUM_THREADS="1",
            OMP_WAIT_POLICY="PASSIVE",
        )
        self._server = MortalServer(folder, **variables)
        self._server.start_seconds = _START_SECONDS

    @property
    def url(self) -> str:
        return self._server.url

    @property
    def pid(self) -> int:
        return self._server.pid

    @property
    def log(self) -> Path:
        return self._server.log

    async def start(self) -> None:
        """Fills the marketplace first."""
        self.write_keys()
        seeding = [sys.executable, "seed_data.py", "--database-url", f"sqlite:///{self.database}"]
        await asyncio.to_thread(
            subprocess.run, seeding, cwd=REPOSITORY, env=bare_environment(), check=True, stdout=subprocess.DEVNULL
        )
        await self._server.start()

    def write_keys(self, *, with_guest: bool = False) -> None:
        """The server reads the file again within two seconds."""
        entries: list[dict[str, object]] = [{"name": name, "key": KEYS[name]} for name in ORDINARY]
        entries.append({"name": "narrow", "key": KEYS["narrow"], "models": ["demo"]})
        entries.append({"name": "paced", "key": KEYS["paced"], "requests_per_minute": PACED_REQUESTS_PER_MINUTE})
        if with_guest:
            entries.append({"name": "guest", "key": KEYS["guest"]})
        draft = self.keys_file.with_suffix(".draft")
        draft.write_text(yaml.safe_dump({"keys": entries}))
        draft.replace(self.keys_file)

    async def kill_and_start(self) -> None:
        """To its end, also if the caller is cancelled: two starts at once would fight for the port."""
        await asyncio.shield(asyncio.ensure_future(self._kill_and_start()))

    async def _kill_and_start(self) -> None:
        async with self._restarting:
            kill = Kill(time.monotonic())
            self.kills.append(kill)
            self._server.kill()
            await self._server.start()
            kill.ready_at = time.monotonic()

    def excuses(self, began: float) -> bool:
        """Whether a kill explains the broken connection, or the 503, of a request that began then."""
        return any(kill.ready_at is None or kill.ready_at + _GRACE_SECONDS > began for kill in self.kills)

    def ended_by_itself(self) -> str:
        """Why it is gone, if nobody killed it."""
        try:
            self._server.require_alive()
        except AssertionError as error:
            return str(error)
        return ""

    def stop(self) -> None:
        if self._server.is_running:
            self._server.kill()


async def kill_at_random(server: SoakedServer, chance: Random, seconds: float, pause: tuple[float, float]) -> None:
    """For so long. Behind it the server lives on: a long life shows what grows."""
    end = time.monotonic() + seconds
    while True:
        wait = chance.uniform(*pause)
        if time.monotonic() + wait > end:
            return
        await asyncio.sleep(wait)
        await server.kill_and_start()
        if chance.random() < 0.2:  # once more, while it takes up what the first kill has left
            await asyncio.sleep(chance.uniform(0, 3))
            await server.kill_and_start()
