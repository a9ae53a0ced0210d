"""Where a request comes from, for what is counted per client."""

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

from starlette.types import Scope

_HOME_PREFIX = 64  # of IPv6: one home has all addresses of such a network, and may change them at will
_MAX_CHARS = 100


def parse_address(host: str) -> IPv4Address | IPv6Address | None:
    """None if it is no address: the path of a Unix socket, or what a proxy made up."""
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
