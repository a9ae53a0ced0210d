"""Where a request comes from, for what is counted per client."""

import re
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

from starlette.datastructures import Headers
from starlette.types import Scope

from tis.network.addresses import is_loopback

_HOME_PREFIX = 64  # of IPv6: one home has all addresses of such a network, and may change them at will
_MAX_CHARS = 100
# A proxy on this computer adds one of these to what it passes on, or passes on what a client wrote there.
_OF_PROXIES = ("forwarded", "x-forwarded-for", "x-real-ip", "via")
# As some proxies forward an address. With its port each connection would be another client.
_WITH_PORT = re.compile(r"\[([0-9a-fA-F:.%]+)\](?::\d+)?|([0-9.]+):\d+", re.ASCII)


def parse_address(host: str) -> IPv4Address | IPv6Address | None:
    """None if it is no address: the path of a Unix socket, or what a proxy made up."""
    if with_port := _WITH_PORT.fullmatch(host):
        host = with_port[1] or with_port[2]
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return None
    return address.ipv4_mapped or address if isinstance(address, IPv6Address) else address


def home_of(address: IPv4Address | IPv6Address) -> str:
    """The address, or of IPv6 the network of the home."""
    return str(address) if address.version == 4 else str(ip_network((int(address), _HOME_PREFIX), strict=False))


def client_address(scope: Scope) -> str:
    """Behind a proxy that the server trusts (`TRUSTED_PROXIES`) this is the address that the proxy names."""
    host = str((scope.get("client") or ("unknown",))[0])
    address = parse_address(host)
    return home_of(address) if address else host[:_MAX_CHARS]


def is_of_this_computer(scope: Scope) -> bool:
    """Sent by a program or a browser here, and not through a proxy here for somebody else."""
    client, headers = scope.get("client"), Headers(scope=scope)
    return client is not None and is_loopback(client[0]) and not any(name in headers for name in _OF_PROXIES)
