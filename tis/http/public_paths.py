"""The one list of what needs no API key. Once there are keys, all else needs one, also a path that does not exist."""

import re

from tis.http.error_handlers import MCP_PATH, OLLAMA_PREFIX

# Probes say no more than whether the server works. The pages hold no data: their scripts ask for the key, and send it.
_SHELLS = ("/", "/shop", "/desk", "/admin", "/card", "/account/link", "/status", "/redoc")
_PATHS = frozenset({*_SHELLS, "/live", "/ready", "/health", OLLAMA_PREFIX, f"{OLLAMA_PREFIX}/"})
# The marketplace has accounts and tokens of its own (`MARKETPLACE_AUTH`), also for its tools.
_OWN_POLICY = ("/api", MCP_PATH)
_FILES_OF_PAGES = "/pages/"
# What crawlers read.
_FOR_CRAWLERS = re.compile(r"/shop/products/\d+|/robots\.txt|/sitemap(-\d+)?\.xml", re.ASCII)
_KILL = "/pages/kill"
METRICS_PATH = "/metrics"
_PAGES = frozenset({"/docs", "/openapi.json", "/openapi.yaml", METRICS_PATH})


def is_public(path: str) -> bool:
    return (
        path in _PATHS
        or (path.startswith(_FILES_OF_PAGES) and path != _KILL)
        or _FOR_CRAWLERS.fullmatch(path) is not None
        or any(path == prefix or path.startswith(f"{prefix}/") for prefix in _OWN_POLICY)
    )


def is_page(path: str) -> bool:
    """What a browser or Prometheus reads: a key may also come as the password of a Basic login."""
    return path in _PAGES or path.startswith("/docs/")
