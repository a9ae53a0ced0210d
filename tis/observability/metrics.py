"""Prometheus metrics. The values of labels come from fixed sets, never from requests."""

from prometheus_client import CollectorRegistry, Counter, generate_latest

REGISTRY = CollectorRegistry()

STORE_ERRORS = Counter(
    "tis_session_store_errors", "Failures of the store of sessions", ["store", "error"], registry=REGISTRY
)
SLOW_READERS_CUT = Counter("tis_slow_readers_cut", "Connections cut because the client read nothing", registry=REGISTRY)

TRANSPORT_REFUSALS = Counter(
    "tis_transport_refusals",
    "Requests and connections refused or closed for their headers, slowness or number",
    ["reason"],
    registry=REGISTRY,
)


def metrics_page() -> bytes:
    return bytes(generate_latest(REGISTRY))
