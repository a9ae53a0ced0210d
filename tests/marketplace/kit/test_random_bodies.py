"""Random and oversized bodies get a 4xx, never a 500."""

import json
from typing import Any

import httpx2
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.marketplace.accounts import bearer, register_user, supplier_body, user_body

pytestmark = pytest.mark.long

ROUTES = {
    "POST /api/auth/register": {**user_body(), "password": "a long sentence"},
    "POST /api/auth/login": {"email": "jane@example.com", "password": "a long sentence", "kind": "user"},
    "POST /api/auth/refresh": {"refresh_token": "x"},
    "POST /api/auth/logout": {"refresh_token": "x"},
    "POST /api/auth/password/forgot": {"email": "jane@example.com", "kind": "user"},
    "POST /api/auth/password/reset": {"token": "x", "password": "a long sentence"},
    "POST /api/auth/email": {"email": "jane@example.com", "password": "x", "supplier_id": 1},
    "POST /api/auth/email/confirm": {"token": "x"},
    "POST /api/auth/consent": {"consent_version": "x"},
    "POST /api/auth/password": {"password": "a long sentence", "old_password": "x"},
    "POST /api/users/register": {**user_body(), "phone": "x", "role": "user", "latitude": 0, "longitude": 0},
    "PUT /api/users/me": {"name": "x", "phone": "x", "role": "user", "latitude": 0, "longitude": 0, "version": 1},
    "PUT /api/users/1/grants": {"role": "user", "ai_access_enabled": True},
    "POST /api/suppliers/register": {**supplier_body(), "phone": "x", "opening_hours": {}, "time_zone": "WIB"},
    "PUT /api/suppliers/1": {**supplier_body(), "phone": "x", "delivery_radius_km": 1, "version": 1},
    "POST /api/suppliers/1/members": {"user_id": 1, "role": "owner"},
    "POST /api/products/1/reservations": {"quantity": 1, "seconds": 60},
}
NUMBERS = st.sampled_from([0, -1, 2**31, 2**63, 2**64, -(2**70), 0.5, 1e308, float("nan"), float("inf"), 90.000001])
WORDS = st.sampled_from(
    ["", " ", "\x00", "\ud800", "\u202e\u200b", "%_'\"\\", "a@b.example", "0812 3456 7890", "é" * 400]
)
VALUES = st.one_of(
    st.none(), st.booleans(), NUMBERS, WORDS, st.text(max_size=40), st.just([]), st.just({"a": [1]}), st.just([[[]]])
)


@pytest.mark.parametrize("route", ROUTES)
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_no_body_causes_a_500(laptop: httpx2.Client, route: str, data: st.DataObject) -> None:
    method, _, path = route.partition(" ")
    body: dict[str, Any] = dict(ROUTES[route])
    for name in data.draw(st.sets(st.sampled_from(sorted(body)), min_size=1)):
        body[name] = data.draw(VALUES, label=name)
    headers = {"Content-Type": "application/json"}
    if path.endswith(("/me", "/password", "/email", "/consent")):
        headers |= bearer(register_user(laptop))
    answer = laptop.request(method, path, content=json.dumps(body), headers=headers)
    assert answer.status_code < 500 and len(answer.content) < 10_000


@pytest.mark.parametrize(
    "route",
    [
        "POST /api/users/register",
        "POST /api/auth/login",
        "POST /api/suppliers/1/products",
        "PUT /api/products/import",  # only imports may be larger, and they are under a supplier
    ],
)
@pytest.mark.parametrize("has_content_length", [True, False])
def test_a_body_of_a_megabyte_is_refused_before_parsing(
    laptop: httpx2.Client, route: str, has_content_length: bool
) -> None:
    body = b"[" + b"{}," * 400_000 + b"{}]"
    content = body if has_content_length else iter([body[:100_000], body[100_000:]])
    method, path = route.split()
    refused = laptop.request(method, path, content=content, headers={"Content-Type": "application/json"})
    assert refused.status_code == 413 and "larger" in refused.json()["detail"]
