"""Counts the memory of caches that are not paged: a block of it is so many bytes, has no place, and is never shared."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from tis.engine.batching.blocks import BlockPool, BlockRun

_TOKENS_PER_BLOCK = 16  # a sequence that grows takes a new block about so often
_BLOCKS_PER_STATE = 64  # of a cache that does not grow: the scheduler leaves a block free for each sequence


@dataclass(frozen=True, slots=True)
class CacheCosts:
    """What the cache of one sequence takes."""

    fixed_bytes: int
    bytes_per_token: Sequence[tuple[float, int]]  # each up to so many tokens: a sliding window grows no further

    def of(self, num_tokens: int) -> int:
        return self.fixed_bytes + round(sum(size * min(num_tokens, most) for size, most in self.bytes_per_token))

    def max_tokens(self, num_bytes: int, at_most: int) -> int:
        """How many tokens a sequence may have in so much memory."""
        low, high = 0, at_most
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self.of(middle) <= num_bytes else (low, middle - 1)
        return low


class StatePool(BlockPool):
    def __init__(self, costs: CacheCosts, num_bytes: int) -> None:
        # No sequence fills a block of tokens, so none is looked for by its content.
        super().__init__(0, block_size=2**62)
        self._costs = costs
        growth = costs.of(_TOKENS_PER_BLOCK) - costs.fixed_bytes
        self._bytes_per_block = max(1, growth or costs.fixed_bytes // _BLOCKS_PER_STATE)
        self.num_blocks = max(1, num_bytes // self._bytes_per_block)
        self.max_tokens = costs.max_tokens(self.num_blocks * self._bytes_per_block, at_most=2**40)

    @property
    def num_free(self) -> int:
        return max(0, self.num_blocks - self._num_owned)

    def blocks_for(self, num_tokens: int) -> int:
        return -(-self._costs.of(num_tokens) // self._bytes_per_block)

    def shrink(self) -> None:
        """There is no more memory than what is owned now."""
        self.num_blocks = max(1, self._num_owned)

    def allocate(self, length: int, room: int, protected: Collection[int] = ()) -> BlockRun | None:
        if length > self.num_free and self._num_owned:  # one that is alone may have all there is
            return None
        self._num_owned += length
        return BlockRun(0, length)

    def extend(self, block_run: BlockRun) -> bool:
        if not self.num_free and self._num_owned > block_run.length:
            return False
        self._num_owned += 1
        block_run.length += 1
        return True

    def release(self, block_run: BlockRun) -> None:
        self._num_owned -= block_run.length
        block_run.length = 0
