"""Runs inside schemathesis, in its own environment: what a stranger may be answered."""

import schemathesis

# Also in `tis/http/public_paths.py`: this is what the documents promise.
_PUBLIC = ("/live", "/ready", "/health")
_OWN_POLICY = ("/api/", "/mcp")


@schemathesis.check
def stranger_is_refused(
    ctx: schemathesis.CheckContext, response: schemathesis.Response, case: schemathesis.Case
) -> None:
    """Without a key, and with one that somebody guessed."""
    path = case.operation.path
    if path in _PUBLIC or path.startswith(_OWN_POLICY):
        return
    assert response.status_code == 401, f"{case.method} {path} answers a stranger with {response.status_code}"
    assert "www-authenticate" in response.headers, f"{case.method} {path} does not say how to authenticate"
