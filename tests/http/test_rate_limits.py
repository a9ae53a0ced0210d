"""How requests are counted per caller, and how much memory that may take."""

import asyncio

import pytest

from tests.serving import MovedClock
from tis.http.call_counts import BoundedMemoryStorage, LocalCounts
from tis.http.client_address import client_address
from tis.http.errors import RateLimitExceeded
from tis.http.rate_limits import RateLimits


def refused(limits: RateLimits, kind: str, caller: str) -> RateLimitExceeded | None:
    try:
        asyncio.run(limits.count(kind, caller))
    except RateLimitExceeded as error:
        return error
    return None


def test_one_request_too_many_is_refused_until_its_window_ends() -> None:
    clock = MovedClock()
    limits = RateLimits({"logins_per_minute": 2}, LocalCounts(clock))
    assert not refused(limits, "logins", "a") and not refused(limits, "logins", "a")
    clock.move(20)
    refusal = refused(limits, "logins", "a")
    assert refusal and refusal.status == 429 and refusal.headers["Retry-After"] in ("39", "40")
    assert refusal.message.startswith("Too many logins: at most 2 per minute. Try again in ")
    clock.move(40)
    assert not refused(limits, "logins", "a")


def test_callers_and_kinds_are_counted_apart() -> None:
    limits = RateLimits({"logins_per_minute": 1, "reviews_per_hour": 1})
    assert not refused(limits, "logins", "a")
    assert not refused(limits, "logins", "b") and not refused(limits, "reviews", "a")
    assert refused(limits, "logins", "b") and refused(limits, "reviews", "a")


def test_zero_means_no_limit() -> None:
    limits = RateLimits({"logins_per_minute": 0})
    assert not any(refused(limits, "logins", "a") for _ in range(100))


def test_the_callers_counted_longest_ago_are_forgotten_first() -> None:
    storage = BoundedMemoryStorage(3, MovedClock())
    for caller in ("a", "b", "a", "c", "d"):
        storage.incr(caller, 60)
    assert len(storage) == 3 and [storage.get(caller) for caller in "abcd"] == [2, 0, 1, 1]


@pytest.mark.parametrize(
    ("host", "counted"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("testclient", "testclient"),
    ],
)
def test_a_home_with_many_ipv6_addresses_is_one_caller(host: str, counted: str) -> None:
    assert client_address({"type": "http", "client": (host, 1)}) == counted
