"""For every route of the OpenAPI document: ids, bodies, methods and queries that it does not want."""

import json
from collections.abc import Iterator

from tests.faults.hostile.row import Row, escaped, json_bytes


def rows_of_routes(document: str) -> Iterator[Row]:
    for path, methods in json.loads(document)["paths"].items():
        concrete = [path]
        if "{" in path:
            concrete = [_with_ids(path, evil) for evil in ("0", "%00", "9" * 30, "x" * 600, escaped("' OR 1=1--"))]
        for method, described in methods.items():
            verb, account = method.upper(), "mallory" if path.startswith("/api") else ""
            if "requestBody" in described:
                for name, body in _BODIES.items():
                    yield Row(f"{verb} {path}: {name}", _ANY, verb, concrete[0], body, account=account)
            if "{" in path:
                for one in concrete:
                    sent = b"{}" if "requestBody" in described else None
                    yield Row(f"{verb} {one[:70]}: an evil id", _ANY, verb, one, sent, account=account)
            if verb == "GET":
                yield Row(
                    f"{verb} {path}: a flood", _ANY, verb, concrete[0] + "?" + "limit=x&q=%00&" * 1500, account=account
                )
        yield Row(f"BREW {path}", (400, 401, 405), "BREW", concrete[0])
        yield Row(
            f"OPTIONS {path}", (200, 400, 401, 405), "OPTIONS", concrete[0], headers={"Origin": "https://evil.example"}
        )


_ANY = (200, 204, 400, 401, 403, 404, 405, 409, 410, 412, 413, 415, 422, 428, 501)
_BODIES = {
    "a list": b"[]",
    "null": b"null",
    "half": b'{"',
    "deep": b'{"a":' * 30_000,
    "keys": json_bytes({str(n): n for n in range(9000)}),
}


def _with_ids(path: str, evil: str) -> str:
    before, _, rest = path.partition("{")
    _, _, after = rest.partition("}")
    return _with_ids(before + evil + after, evil) if "{" in after else before + evil + after
