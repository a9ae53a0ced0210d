"""One client is one address, or one network of IPv6; what is no address breaks nothing."""

import pytest

from tis.http.client_address import client_address


@pytest.mark.parametrize(
    ("host", "counted_as"),
    [
        ("203.0.113.7", "203.0.113.7"),
        ("::ffff:203.0.113.7", "203.0.113.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("203.0.113.7:4711", "203.0.113.7"),  # as some proxies forward it
        ("[2001:db8:1:2:3::6]:4711", "2001:db8:1:2::/64"),
        ("[2001:db8:1:2:3::6]", "2001:db8:1:2::/64"),
        ("203.0.113.7:port", "203.0.113.7:port"),
        ("x" * 500, "x" * 100),
        ("", ""),
    ],
)
def test_where_a_request_comes_from(host: str, counted_as: str) -> None:
    assert client_address({"type": "http", "client": (host, 1)}) == counted_as


def test_a_request_without_an_address_has_a_name_too() -> None:
    assert client_address({"type": "http", "client": None}) == "unknown"
