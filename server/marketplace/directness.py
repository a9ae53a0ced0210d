"""Whether a request comes straight from this machine: no proxy, no tunnel, no page of a stranger in between."""

import ipaddress
import re

from fastapi import Request

_THIS_MACHINE = r"(localhost|127\.0\.0\.1|\[::1\])(:\d{1,5})?"
_HOST = re.compile(_THIS_MACHINE, re.IGNORECASE)
_ORIGIN = re.compile(r"https?://" + _THIS_MACHINE, re.IGNORECASE)
# What proxies, tunnels and content networks add for the caller whom they speak for.
_PASSED_ON = re.compile(r"via|.*forwarded.*|.*-(client|connecting|real)-ip")


def comes_directly(request: Request) -> bool:
    """Each header counts however often it is sent: of two hosts, the one that is not ours decides.

    HTTP/1.0 is what nginx speaks to what is behind it where nobody says otherwise, rewriting Host and adding nothing.
    """
    headers = request.headers
    hosts = headers.getlist("host")
    return (
        request.scope.get("http_version") != "1.0"
        and request.client is not None
        and _is_loopback(request.client.host)
        and bool(hosts)
        and all(_HOST.fullmatch(host) for host in hosts)
        and all(_ORIGIN.fullmatch(origin) for origin in headers.getlist("origin"))
        and not any(_PASSED_ON.fullmatch(name) for name in headers)
    )


def _is_loopback(host: str) -> bool:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False  # the name of a socket
    mapped = getattr(address, "ipv4_mapped", None)
    return bool((mapped or address).is_loopback)
