"""The newest vectors by what they were made of, so that a text that comes again costs nothing."""

import hashlib
import secrets
import threading
from array import array
from collections import OrderedDict
from typing import Any

from tis.engine.pooling.token_row import TokenRow
from tis.observability.metrics import CACHED_VECTORS

_OVERHEAD_BYTES = 200  # of an entry: its key, its place, its object


class VectorCache:
    """Keys are digests with a secret of this process, so that what is kept says nothing of the texts."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._num_bytes = 0
        self._secret = secrets.token_bytes(32)
        self._vectors: OrderedDict[bytes, Any] = OrderedDict()
        self._lock = threading.Lock()

    def key(self, row: TokenRow, salt: str) -> bytes:
        """`salt` names whose vectors these are: nobody finds out what others have sent."""
        digest = hashlib.blake2b(salt.encode(errors="replace"), key=self._secret, digest_size=16)
        digest.update(b"%d:%d:" % (row.num_prompt_tokens, len(row.ids)))
        digest.update(array("q", row.ids).tobytes())
        for medium in row.media.inputs if row.media else ():
            digest.update(medium.digest)
        return digest.digest()

    def find(self, key: bytes) -> Any | None:
        with self._lock:
            vector = self._vectors.get(key)
            if vector is not None:
                self._vectors.move_to_end(key)
        CACHED_VECTORS.labels("hit" if vector is not None else "miss").inc()
        return vector

    def keep(self, key: bytes, vector: Any) -> None:
        size = int(vector.nbytes) + _OVERHEAD_BYTES
        if size > self._max_bytes:
            return
        with self._lock:
            if key in self._vectors:
                return
            self._vectors[key] = vector
            self._num_bytes += size
            while self._num_bytes > self._max_bytes:
                _, oldest = self._vectors.popitem(last=False)
                self._num_bytes -= int(oldest.nbytes) + _OVERHEAD_BYTES
