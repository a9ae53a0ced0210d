"""Allocates the blocks of the KV cache to sequences, and finds cached prefixes. Plain Python, no tensors.

A sequence owns one contiguous run of blocks, so that its keys are read as a view, without gathering. Room to grow
behind the run is reserved as long as nobody else needs it. The blocks of a finished sequence stay cached under their
chained hashes until they are evicted, least recently used first.
"""

from collections import OrderedDict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import islice

# With less room than this, cached blocks are evicted to make some, because a sequence that cannot grow must move.
_MIN_ROOM_BLOCKS = 8

_EMPTY, _RESERVED, _OWNED, _CACHED = b"\0", b"\1", b"\2", b"\3"


@dataclass(slots=True, eq=False)
class BlockRun:
    start: int
    length: int  # blocks
    reserved_until: int = 0  # end of the room that is reserved for growth

    @property
    def end(self) -> int:
        return self.start + self.length

    @property
    def blocks(self) -> range:
        return range(self.start, self.end)


class BlockPool:
    def __init__(self, num_blocks: int, block_size: int) -> None:
        self.num_blocks = num_blocks
        self.block_size = block_size
        self.max_tokens = num_blocks * block_size  # of a sequence that is alone
        self._state = bytearray(_EMPTY * num_blocks)
        self._hash_of: list[bytes | None] = [None] * num_blocks
        self._by_hash: dict[bytes, dict[int, None]] = {}
        self._evictable: OrderedDict[int, None] = OrderedDict()  # cached blocks without owner, LRU first
        self._num_owned = 0

    @property
    def num_free(self) -> int:
        return self.num_blocks - self._num_owned

    @property
    def num_cached(self) -> int:
        """Counts the free blocks whose content can still be found."""
        return len(self._evictable)

    def blocks_for(self, num_tokens: int) -> int:
        return -(-num_tokens // self.block_size)

    def find_cached(self, hashes: Sequence[bytes]) -> list[int]:
        """Returns the blocks of the longest cached prefix, contiguous where there is a choice."""
        found: list[int] = []
        for block_hash in hashes:
            holders = self._by_hash.get(block_hash)
            if not holders:
                break
            follower = found[-1] + 1 if found else -1
            found.append(follower if follower in holders else next(iter(holders)))
        return found

    def cache(self, block: int, block_hash: bytes) -> None:
        """From now on the block can be found by its hash, so its content must not change."""
        self._hash_of[block] = block_hash
        self._by_hash.setdefault(block_hash, {})[block] = None

    def allocate(self, length: int, room: int, protected: Collection[int] = ()) -> BlockRun | None:
        """Allocates a contiguous run, with room behind it if possible. Never evicts `protected` blocks."""
        wanted = length + min(room, _MIN_ROOM_BLOCKS)
        while True:
            start, room_found = self._find_run(length, room)
            if start >= 0:
                return self._own(start, length, room_found)
            if not self._evict_oldest(wanted, protected):
                break
            wanted *= 2  # each search reads the whole pool: where it is fragmented, there should be few
        start = self._state.translate(_WITHOUT_RESERVED).find(_EMPTY * length)
        return self._own(start, length, 0) if start >= 0 else None

    def adopt(self, blocks: Sequence[int], length: int, room: int) -> BlockRun | None:
        """Takes over cached blocks without owner, if they are contiguous and can grow to `length` where they are."""
        if not blocks or list(blocks) != list(range(blocks[0], blocks[0] + len(blocks))):
            return None
        start = blocks[0]
        end = start + length
        if end > self.num_blocks or _OWNED in self._state[start:end] or _RESERVED in self._state[start:end]:
            return None
        for block in range(start + len(blocks), end):
            self._uncache(block)
        reserved = 0
        while reserved < room and end + reserved < self.num_blocks and self._state[end + reserved] == _EMPTY[0]:
            reserved += 1
        return self._own(start, length, reserved)

    def extend(self, block_run: BlockRun) -> bool:
        """Adds one block at the end, unless another sequence begins there."""
        block = block_run.end
        if block >= self.num_blocks or self._state[block] == _OWNED[0]:
            return False
        self._uncache(block)
        self._take(block)
        block_run.length += 1
        block_run.reserved_until = max(block_run.reserved_until, block_run.end)
        return True

    def release(self, block_run: BlockRun) -> None:
        # The ends of prefixes are evicted before their beginnings, which more requests share.
        for block in reversed(block_run.blocks):
            self._num_owned -= 1
            if self._hash_of[block] is None:
                self._state[block] = _EMPTY[0]
            else:
                self._state[block] = _CACHED[0]
                self._evictable[block] = None
        for block in range(block_run.end, block_run.reserved_until):
            if self._state[block] == _RESERVED[0]:
                self._state[block] = _EMPTY[0]
        block_run.length = block_run.reserved_until = 0

    def _find_run(self, length: int, room: int) -> tuple[int, int]:
        smallest = min(room, _MIN_ROOM_BLOCKS)
        while True:
            start = self._state.find(_EMPTY * (length + room))
            if start >= 0 or room == smallest:
                return start, room
            room = max(smallest, room // 2)

    def _own(self, start: int, length: int, room: int) -> BlockRun:
        for block in range(start, start + length):
            self._take(block)
        end = start + length
        self._state[end : end + room] = _RESERVED * room
        return BlockRun(start, length, end + room)

    def _take(self, block: int) -> None:
        self._evictable.pop(block, None)
        self._state[block] = _OWNED[0]
        self._num_owned += 1

    def _evict_oldest(self, num_blocks: int, protected: Collection[int]) -> bool:
        oldest = list(islice((block for block in self._evictable if block not in protected), num_blocks))
        for block in oldest:
            self._uncache(block)
        return bool(oldest)

    def _uncache(self, block: int) -> None:
        """Must be called before the content of the block changes."""
        block_hash = self._hash_of[block]
        if block_hash is not None:
            self._hash_of[block] = None
            holders = self._by_hash[block_hash]
            del holders[block]
            if not holders:
                del self._by_hash[block_hash]
        if block in self._evictable:
            del self._evictable[block]
            self._state[block] = _EMPTY[0]


_WITHOUT_RESERVED = bytes.maketrans(_RESERVED, _EMPTY)
