"""Random histories of the block pool, and what must hold after every step."""

import random

import pytest

from tis.engine.batching.blocks import BlockPool, BlockRun


def _name(content: int) -> bytes:
    return content.to_bytes(8, "big")


def test_a_run_is_allocated_where_there_is_room_to_grow() -> None:
    pool = BlockPool(100, 4)
    first, second = pool.allocate(3, 20), pool.allocate(3, 20)
    assert first and second
    assert second.start >= first.end + 20
    for _ in range(20):
        assert pool.extend(first)
    assert first.end == 23 and pool.num_free == 100 - 26


def test_reserved_room_is_given_up_when_it_is_needed() -> None:
    pool = BlockPool(30, 4)
    first = pool.allocate(5, 25)
    second = pool.allocate(20, 0)
    assert first and second and second.start == first.end
    assert not pool.extend(first)


def test_released_blocks_are_found_until_they_are_overwritten() -> None:
    pool = BlockPool(8, 4)
    block_run = pool.allocate(3, 0)
    assert block_run
    names = [_name(n) for n in range(3)]
    for block, name in zip(block_run.blocks, names, strict=True):
        pool.cache(block, name)
    pool.release(block_run)
    assert pool.find_cached(names) == [0, 1, 2] and pool.num_free == 8
    assert pool.allocate(6, 0)
    assert len(pool.find_cached(names)) < 3


def test_the_least_recently_used_is_evicted_first_and_ends_before_beginnings() -> None:
    pool = BlockPool(8, 4)
    old, new = pool.allocate(4, 0), pool.allocate(4, 0)
    assert old and new
    for at, block_run in enumerate((old, new)):
        for block in block_run.blocks:
            pool.cache(block, _name(10 * at + block))
    pool.release(old)
    pool.release(new)
    assert pool.allocate(2, 0)
    assert len(pool.find_cached([_name(n) for n in range(4)])) == 2
    assert len(pool.find_cached([_name(10 + n) for n in range(4, 8)])) == 4


def test_an_adopted_prefix_stays_where_it_is() -> None:
    pool = BlockPool(12, 4)
    block_run = pool.allocate(3, 0)
    assert block_run
    for block in block_run.blocks:
        pool.cache(block, _name(block))
    pool.release(block_run)
    adopted = pool.adopt([0, 1, 2], 5, 2)
    assert adopted and adopted.blocks == range(0, 5)
    assert pool.adopt([0, 1, 2], 5, 2) is None  # it has an owner now
    assert pool.find_cached([_name(0), _name(1)]) == [0, 1]  # but can still be copied


@pytest.mark.parametrize("seed", range(20))
def test_no_history_breaks_the_invariants(seed: int) -> None:
    chance = random.Random(seed)
    pool = BlockPool(chance.randint(1, 60), 4)
    runs: list[BlockRun] = []
    contents: dict[int, bytes] = {}  # of every block, as last written
    for step in range(400):
        action = chance.random()
        if action < 0.4:
            length, room = chance.randint(1, 12), chance.randint(0, 10)
            protected = set(chance.sample(range(pool.num_blocks), min(3, pool.num_blocks)))
            known = {block: pool._hash_of[block] for block in protected}
            if block_run := pool.allocate(length, room, protected):
                runs.append(block_run)
                assert block_run.length == length
                for block, name in known.items():
                    assert pool._hash_of[block] == name
        elif action < 0.7 and runs:
            block_run = chance.choice(runs)
            end = block_run.end
            is_free = end < pool.num_blocks and not any(end in other.blocks for other in runs)
            assert pool.extend(block_run) == is_free
            assert block_run.end == end + is_free
        elif runs:
            pool.release(runs.pop(chance.randrange(len(runs))))
        for block_run in runs[-1:]:
            block = chance.choice(block_run.blocks)
            if pool._hash_of[block] is None:
                contents[block] = _name(step)
                pool.cache(block, contents[block])
        _check(pool, runs, contents)


def _check(pool: BlockPool, runs: list[BlockRun], contents: dict[int, bytes]) -> None:
    owned = [block for block_run in runs for block in block_run.blocks]
    assert len(owned) == len(set(owned)) == pool.num_blocks - pool.num_free
    for name, holders in pool._by_hash.items():
        for block in holders:
            assert pool._hash_of[block] == name == contents[block]
    findable = {block for block in range(pool.num_blocks) if pool._hash_of[block] is not None}
    assert findable - set(owned) == set(pool._evictable)


def test_extending_overwrites_blocks_without_owner() -> None:
    pool = BlockPool(4, 4)
    first, second = pool.allocate(1, 0), pool.allocate(1, 0)
    assert first and second
    pool.cache(1, _name(1))
    assert not pool.extend(first)
    pool.release(second)
    assert pool.extend(first) and pool.find_cached([_name(1)]) == []


def test_a_run_in_a_fragmented_pool_is_found_in_few_searches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every second block is in use, up to the last part: nearly everything else has to be evicted."""
    pool = BlockPool(4096, 4)
    runs = [pool.allocate(1, 0) for _ in range(4096)]
    for block, one in enumerate(runs):
        assert one
        pool.cache(block, _name(block))
    for block, one in enumerate(runs):
        assert one
        if block % 2 or block > 4000:
            pool.release(one)
    searches: list[int] = []
    find_run = BlockPool._find_run

    def counted(pool: BlockPool, length: int, room: int) -> tuple[int, int]:
        searches.append(length)
        return find_run(pool, length, room)

    monkeypatch.setattr(BlockPool, "_find_run", counted)
    found = pool.allocate(2, 0)
    assert found and found.start > 3999 and len(searches) < 15
