"""The upstreams of one model: which answer, which are busy, and which has the beginning of a prompt in its cache."""

import asyncio
import hashlib
import logging
import time
from collections import OrderedDict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from tis.engine.models.entry_fields import MAX_VOICES, UpstreamSeconds
from tis.upstream.errors import UpstreamFault
from tis.upstream.http_client import StreamWatch, UpstreamHttp

_log = logging.getLogger("tis.upstream")
_BLOCK_CHARS = 256
_MAX_BLOCKS = 64  # of a prompt
_MAX_KNOWN_BLOCKS = 8192  # of an upstream
_MAX_FAULTS = 3  # in a row, before nobody is sent there for a while
_MAX_PROBE_SECONDS = 5.0
_MAX_PAUSE_SECONDS = 30.0
_MAX_MORE_BUSY = 4  # than the least busy one, for the sake of its cache
_MAX_VOICE_CHARS = 128
_CONTEXT_NAMES = ("max_model_len", "context_length", "context_window", "max_context_length")


class Endpoint:
    def __init__(self, http: UpstreamHttp) -> None:
        self.http = http
        self.num_running = 0
        self.is_reachable: bool | None = None  # None: nobody has looked
        self.context_length: int | None = None
        self.voices: Sequence[str] = ()  # of a model that speaks, if it lists them
        self._num_faults = 0
        self._counted_at = 0.0  # the latest of them
        self._closed_until = 0.0
        self._num_missed = 0  # probes in a row
        self._missed_since = 0.0
        self._blocks: OrderedDict[bytes, None] = OrderedDict()
        self._streams: set[StreamWatch] = set()

    @property
    def is_usable(self) -> bool:
        return self.is_reachable is not False and time.monotonic() >= self._closed_until

    @property
    def is_well(self) -> bool:
        return bool(self.is_reachable) and not self._num_missed

    def num_cached(self, blocks: Sequence[bytes]) -> int:
        """How many blocks of a prompt it has seen, from its beginning."""
        return next((number for number, block in enumerate(blocks) if block not in self._blocks), len(blocks))

    @contextmanager
    def running(self, blocks: Sequence[bytes]) -> Iterator[StreamWatch]:
        for block in blocks:
            self._blocks[block] = None
            self._blocks.move_to_end(block)
        while len(self._blocks) > _MAX_KNOWN_BLOCKS:
            self._blocks.popitem(last=False)
        watch = StreamWatch()
        self.num_running += 1
        self._streams.add(watch)
        try:
            yield watch
        finally:
            self.num_running -= 1
            self._streams.discard(watch)

    def succeeded(self) -> None:
        self._num_faults, self._closed_until, self.is_reachable = 0, 0.0, True

    def failed(self, fault: UpstreamFault, begun_at: float) -> None:
        """`begun_at`: of the try. Those that ran together and failed together count as one: it died, or we slept."""
        if not fault.is_its_fault or fault.is_stale or begun_at < self._counted_at:
            return
        self._num_faults += 1
        self._counted_at = time.monotonic()
        _log.warning("%s failed: %s", self.http.url, fault.error.message)
        if self._num_faults >= _MAX_FAULTS:
            pause = min(2.0 ** (self._num_faults - _MAX_FAULTS), _MAX_PAUSE_SECONDS)
            self._closed_until = time.monotonic() + pause

    async def probe(self, model: str, seconds: float) -> None:
        listed = None
        try:
            listed = await self.http.get("/models", min(seconds, _MAX_PROBE_SECONDS))
        except UpstreamFault as fault:
            if not fault.is_not_found:
                self._missed(fault)
                return
            if self.is_reachable is None:  # engines of embeddings list none; but it may be the wrong path
                _log.warning("%s lists no models (HTTP 404)", self.http.url)
        if self.is_reachable is False:
            _log.info("%s answers again", self.http.url)
        self.is_reachable, self._num_missed = True, 0
        found = _listed_model(listed, model)
        self.context_length = _context_length(found) or self.context_length
        self.voices = _voices(found) or self.voices

    def _missed(self, fault: UpstreamFault) -> None:
        self._num_missed += 1
        if self._num_missed == 1:
            self._missed_since = time.monotonic()
        if fault.is_silent and self._num_missed < _MAX_FAULTS:
            return  # it may only be busy
        if self.is_reachable is not False:
            _log.warning("%s does not answer: %s", self.http.url, fault.error.message)
        self.is_reachable = False
        if self._num_missed >= _MAX_FAULTS:
            for stream in [one for one in self._streams if one.last_at < self._missed_since]:
                stream.give_up()  # the process hangs, or its machine is gone: what waits for it may go elsewhere


class EndpointPool:
    def __init__(self, endpoints: Sequence[Endpoint], model: str, seconds: UpstreamSeconds) -> None:
        self._all = list(endpoints)
        self._model = model
        self._seconds = seconds
        self._turn = 0
        self._probing: asyncio.Task[None] | None = None

    def __iter__(self) -> Iterator[Endpoint]:
        return iter(self._all)

    @property
    def is_usable(self) -> bool:
        return any(one.is_usable for one in self._all)

    @property
    def context_length(self) -> int | None:
        """The smallest, as any of them may answer."""
        return min((one.context_length for one in self._all if one.context_length), default=None)

    @property
    def voices(self) -> Sequence[str]:
        return next((one.voices for one in self._all if one.voices), ())

    def open(self) -> None:
        self._probing = asyncio.create_task(self._probe())

    async def close(self) -> None:
        if self._probing:
            self._probing.cancel()
        for endpoint in self._all:
            await endpoint.http.close()

    def choose(self, blocks: Sequence[bytes], except_for: Collection[Endpoint]) -> Endpoint | None:
        """The one that knows most of the prompt, unless it is much busier; else the least busy, in turn."""
        usable = [one for one in self._all if one.is_usable and one not in except_for]
        if not usable:
            return None
        self._turn += 1
        turn = {id(one): (number - self._turn) % len(usable) for number, one in enumerate(usable)}
        busy = min(one.num_running for one in usable)
        near = [one for one in usable if one.num_running <= busy + _MAX_MORE_BUSY]
        knows = max(one.num_cached(blocks) for one in near)
        if knows:
            near = [one for one in near if one.num_cached(blocks) == knows]
        return min(near, key=lambda one: (one.num_running, turn[id(one)]))

    async def probe_now(self) -> None:
        await asyncio.gather(*(one.probe(self._model, self._seconds.connect) for one in self._all))

    async def _probe(self) -> None:
        while True:
            await self.probe_now()
            # One that is down is looked at more often: it may be back soon.
            is_whole = all(one.is_well for one in self._all)
            await asyncio.sleep(self._seconds.probe if is_whole else min(1.0, self._seconds.probe))


def prompt_blocks(body: Mapping[str, Any]) -> list[bytes]:
    """Names of the first blocks of a prompt; each depends on all before it, as in a cache of prefixes."""
    digest, blocks = hashlib.blake2b(digest_size=12), []
    text = _beginning(body, _BLOCK_CHARS * _MAX_BLOCKS)
    for at in range(0, len(text) - len(text) % _BLOCK_CHARS, _BLOCK_CHARS):
        digest.update(text[at : at + _BLOCK_CHARS].encode("utf-8", "replace"))
        blocks.append(digest.digest())
    return blocks


def _beginning(body: Mapping[str, Any], max_chars: int) -> str:
    parts, num_chars = [str(body.get("cache_salt", "")), str(body.get("tools", ""))[:max_chars]], 0
    for message in body.get("messages") or ({"role": "", "content": body.get("prompt", "")},):
        parts.append(f"{message.get('role')}\n{_beginning_of(message.get('content'), max_chars)}\n")
        num_chars += len(parts[-1])
        if num_chars > max_chars:
            break
    return "".join(parts)[:max_chars]


def _beginning_of(content: Any, max_chars: int) -> str:
    """Megabytes are cut before anything is made of them: this runs on the event loop."""
    if isinstance(content, list):
        parts = [part.get(str(part.get("type"))) if isinstance(part, dict) else part for part in content[:max_chars]]
        return "\n".join(str(part)[:max_chars] for part in parts)[:max_chars]
    return str(content)[:max_chars]


def _listed_model(listed: Any, model: str) -> Mapping[str, Any]:
    """Of the answer to `GET /v1/models`. Empty if it is not there."""
    data = listed.get("data") if isinstance(listed, dict) else None
    models = [one for one in data if isinstance(one, dict)] if isinstance(data, list) else []
    named = [one for one in models if one.get("id") == model] or (models if len(models) == 1 else [])
    return named[0] if named else {}


def _context_length(listed: Mapping[str, Any]) -> int | None:
    """In the words of one engine or another."""
    meta = listed.get("meta")
    found = [listed.get(name) for name in _CONTEXT_NAMES]
    found.append(meta.get("n_ctx") or meta.get("n_ctx_train") if isinstance(meta, dict) else None)
    return next((length for length in found if type(length) is int and 0 < length < 2**31), None)


def _voices(listed: Mapping[str, Any]) -> Sequence[str]:
    """As this software lists them."""
    voices = listed.get("voices")
    if not isinstance(voices, list) or len(voices) > MAX_VOICES:
        return ()
    return voices if all(isinstance(one, str) and 0 < len(one) <= _MAX_VOICE_CHARS for one in voices) else ()
