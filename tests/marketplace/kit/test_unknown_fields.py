"""What the server does not know is refused, or ignored with a warning where older clients may send it."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

import httpx2
import pytest
from fastapi.routing import iter_route_contexts

from tests.marketplace.accounts import PASSWORD, register_user, supplier_body, user_body
from tests.marketplace.market_server import LAPTOP, MarketServer, new_product
from tests.serving import settings_with
from tis.app import create_app
from tis.marketplace.kit.unknown_fields import DOCUMENTED, CheckedRoute
from tis.marketplace.router import router


def extra(location: str, name: str) -> dict[str, Any]:
    return {"type": "extra_forbidden", "loc": [location, name], "msg": "Extra inputs are not permitted"}


def test_a_misspelt_field_of_a_product_is_ignored_with_a_warning(server: MarketServer, anybody: httpx2.Client) -> None:
    product = new_product(anybody, server.supplier())
    changed = anybody.put(f"/api/products/{product['id']}", json={"stock": 3, "price": 2000})
    assert changed.status_code == 200 and (changed.json()["price"], changed.json()["stock_quantity"]) == (2000, 5)
    assert changed.json()["warnings"] == ["Unknown field 'stock' was ignored."]
    assert changed.headers["etag"] == '"2"' and int(changed.headers["content-length"]) == len(changed.content)


def test_a_list_has_its_warnings_in_a_header(anybody: httpx2.Client) -> None:
    listed = anybody.get("/api/products", params={"barcode": "A-1", "näme": "x\r\ny"})
    assert listed.status_code == 200 and isinstance(listed.json(), list)
    assert unquote(listed.headers["x-warnings"]) == (
        "Unknown query parameter 'barcode' was ignored.; Unknown query parameter 'näme' was ignored."
    )
    in_envelope = anybody.get("/api/products?barcode=A-1&envelope=1").json()
    assert in_envelope["warnings"] == ["Unknown query parameter 'barcode' was ignored."]


def test_warnings_are_bounded_and_their_names_are_printable(server: MarketServer, anybody: httpx2.Client) -> None:
    product = new_product(anybody, server.supplier())
    long = "😀" * 1000
    body = '{"\\ud800": 1, "a\\r\\nb\\u202e": 2, ' + ", ".join(f'"{number}{long}": 1' for number in range(30)) + "}"
    answer = anybody.put(
        f"/api/products/{product['id']}", content=body.encode(), headers={"Content-Type": "application/json"}
    )
    assert answer.status_code == 200 and len(answer.headers["x-warnings"]) < 5000
    warnings = answer.json()["warnings"]
    assert warnings[:2] == ["Unknown field '\\ud800' was ignored.", "Unknown field 'a\\r\\nb\\u202e' was ignored."]
    assert len(warnings) == 20 and max(map(len, warnings)) < 150


def test_a_parameter_that_is_sent_twice_is_refused(server: MarketServer, anybody: httpx2.Client) -> None:
    """The last would win: this would import the sheet."""
    path, sheet = f"/api/suppliers/{server.supplier()}/products/import", "name,price,category\nTas,50000,tas\n"
    refused = anybody.post(f"{path}?dry_run=1&dry_run=0", content=sheet, headers={"Content-Type": "text/csv"})
    assert refused.status_code == 422
    assert refused.json()["detail"] == [
        {"type": "repeated", "loc": ["query", "dry_run"], "msg": "Send this parameter once"}
    ]


def test_what_is_known_gets_no_warning(server: MarketServer, anybody: httpx2.Client) -> None:
    created = anybody.post(f"/api/suppliers/{server.supplier()}/products", json=LAPTOP)
    assert "warnings" not in created.json() and "x-warnings" not in created.headers


def test_registrations_warn_and_register(anybody: httpx2.Client) -> None:
    for path, body in (("/api/users/register", user_body()), ("/api/suppliers/register", supplier_body())):
        answer = anybody.post(path, json={**body, "nickname": "Jan"})
        assert answer.status_code == 200 and answer.json()["warnings"] == ["Unknown field 'nickname' was ignored."]
        assert answer.json()["access_token"]


def test_a_replayed_answer_has_the_warnings_of_the_first(server: MarketServer, anybody: httpx2.Client) -> None:
    path, headers = f"/api/suppliers/{server.supplier()}/products", {"idempotency-key": "k-warned"}
    first, again = (anybody.post(path, json={**LAPTOP, "colour": "red"}, headers=headers) for _ in range(2))
    assert first.json() == again.json() and first.json()["warnings"] == ["Unknown field 'colour' was ignored."]


def test_other_routes_refuse_unknown_fields_by_name(anybody: httpx2.Client) -> None:
    login = {"email": "a@example.com", "password": PASSWORD, "remember": True}
    answer = anybody.post("/api/auth/login", json=login)
    assert answer.status_code == 422 and answer.json() == {"detail": [extra("body", "remember")]}


def test_other_routes_refuse_unknown_query_parameters_by_name(anybody: httpx2.Client) -> None:
    answer = anybody.get("/api/products/facets?barcode=A-1&category=fan")
    assert answer.status_code == 422 and answer.json() == {"detail": [extra("query", "barcode")]}


def test_many_unknown_fields_and_parameters_are_one_problem(anybody: httpx2.Client) -> None:
    """Thousands of errors would hold up the event loop."""
    fields = anybody.post("/api/auth/login", json={f"field_{n}": n for n in range(9000)})
    problem = {"type": "too_long", "loc": ["body"], "msg": "at most 100 fields"}
    assert fields.status_code == 422 and fields.json() == {"detail": [problem]}
    for path in ("/api/products", "/api/products/facets"):
        parameters = anybody.get(f"{path}?" + "category=fan&" * 1500)
        problem = {"type": "too_long", "loc": ["query"], "msg": "At most 100 parameters"}
        assert parameters.status_code == 422 and parameters.json() == {"detail": [problem]}


def test_a_profile_with_an_unknown_field_stays_as_it_was(internet: httpx2.Client) -> None:
    user = register_user(internet)
    own = {"Authorization": f"Bearer {user['access_token']}"}
    assert internet.put("/api/users/me", json={"city": "Bandung", "town": "a"}, headers=own).status_code == 422
    assert internet.get("/api/auth/me", headers=own).json()["city"] is None


@pytest.fixture(scope="module")
def described() -> dict[str, Any]:
    return create_app(settings_with()).openapi()


def bodies(described: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Routes with a JSON body, and the name of its schema."""
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            schema = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
            for part in [schema, *schema.get("anyOf", [])]:
                if path.startswith("/api/") and "$ref" in part:
                    yield f"{method.upper()} {path.removeprefix('/api')}", part["$ref"].rpartition("/")[2]


def test_every_body_is_strict_but_those_of_the_first_documents(described: dict[str, Any]) -> None:
    schemas = described["components"]["schemas"]
    lenient = {route for route, name in bodies(described) if schemas[name].get("additionalProperties") is not False}
    assert lenient == {route for route in DOCUMENTED if not route.startswith("GET")}


def test_every_route_is_checked() -> None:
    routes = [context.original_route for context in iter_route_contexts(router.routes)]
    unchecked = [getattr(route, "path", "") for route in routes if not isinstance(route, CheckedRoute)]
    assert len(routes) > 40 and sorted(unchecked) == ["/auth/link", "/notices/unsubscribe", "/notices/unsubscribe"]
