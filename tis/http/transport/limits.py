"""TransportLimits: what a connection may do before its key is checked."""

from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import ip_network

LOOPBACK = ("127.0.0.0/8", "::1/128")


@dataclass(frozen=True, slots=True)
class TransportLimits:
    max_head_bytes: int = 32 * 1024  # request line and headers
    max_headers: int = 100
    header_seconds: float = 20
    keep_alive_seconds: float = 75
    max_connections_per_address: int = 256  # 0 = any number
    unbounded_networks: Sequence[str] = LOOPBACK  # whose connections are not counted


def is_network(text: str) -> bool:
    try:
        ip_network(text, strict=False)
    except ValueError:
        return False
    return True
