"""Whoever takes a file takes one of a phone's camera: each route with a form, as the description names them."""

from typing import Any

import httpx2

from tests.marketplace.market_server import MarketServer

_PHOTO_BYTES = 3_000_000
_NUM_ROUTES = 5  # sheets, pictures of products and of messages, QRIS codes, cards


def test_a_file_of_three_megabytes_is_not_too_large_for_any_route_that_takes_files(server: MarketServer) -> None:
    """Of nobody, and of nothing that is there: both are looked at before the body is read."""
    with httpx2.Client(base_url=server.url, timeout=60) as client:
        paths: dict[str, Any] = client.get("/openapi.json").json()["paths"]
        forms = [
            (method, path)
            for path, methods in paths.items()
            for method, operation in methods.items()
            if path.startswith("/api/") and "multipart/form-data" in operation.get("requestBody", {}).get("content", {})
        ]
        assert len(forms) >= _NUM_ROUTES
        answers = {path: _sent(client, method, path) for method, path in forms}
    assert set(answers.values()) <= {401, 404}, answers


def _sent(client: httpx2.Client, method: str, path: str) -> int:
    address = path.format_map(_Ones())
    return client.request(method, address, files={"file": bytes(_PHOTO_BYTES)}).status_code


class _Ones(dict[str, str]):
    def __missing__(self, name: str) -> str:
        return "1"
