"""Requests to /api: queries, numbers, tokens, cursors and versions that nobody good would send."""

from collections.abc import Iterator
from typing import Any

from tests.faults.hostile.row import Row, escaped, get, post

_SEARCH, _PRODUCTS = "/api/products/search", "/api/products"
_WORDS = {
    "zeros": "\0" * 50,
    "wildcards": "%" * 200,
    "stars": "*" * 200,
    "quotes": "'\"`" * 80,
    "SQL": "' OR 1=1; DROP TABLE products; --",
    "FTS": 'name:x NEAR(y, 5) AND ^"a" OR "',
    "brackets": "(" * 250,
    "half a quote": '"',
    "combining": "a" + "\u0301" * 200,
    "right to left": "\u202e\u2066" * 100,
    "emoji": "👩‍👩‍👧‍👦" * 25,
    "one word": "a" * 250,
    "many words": "a b c d e " * 25,
    "spaces": " " * 250,
    "long": "kipas " * 3000,
    "prices": "di bawah 999999999999999999999999 juta " * 6,
    "places": "dekat Jakarta Bandung Medan " * 9,
    "numbers": "9" * 250,
    "typos": "kipsa lamup meaj " * 10,
    "templates": "{{7*7}}${7*7}<%= 7*7 %>",
    "HTML": "<script>alert(1)</script>",
    "control characters": "\x01\x02\x1b[2J",
}


def rows() -> Iterator[Row]:
    yield from _searches()
    yield from _numbers()
    yield from _accounts()
    yield from _goods()


def _searches() -> Iterator[Row]:
    for name, words in _WORDS.items():
        yield get(f"words: {name}", (200, 400, 422), f"{_SEARCH}?q={escaped(words)}")
        attributes = f"attr.x={escaped(words)}&attr.{escaped(words)}.ne=x&attr.{escaped(words)}>=1"
        yield get(f"attributes: {name}", (200, 400, 422, 431), f"{_SEARCH}?q={escaped(words)}&highlight=1&{attributes}")
        yield get(f"facets, words: {name}", (200, 400, 422), f"/api/products/facets?q={escaped(words)}")
    for name in ("wildcards", "SQL", "long", "zeros"):
        yield get(f"words: {name}", (200, 400, 422), f"/api/suppliers?city={escaped(_WORDS[name])}")
        yield get(f"words: {name}", (200, 400, 422), f"{_PRODUCTS}?category={escaped(_WORDS[name])}&brand=x&sort=x")
    yield get("a thousand of one parameter", (200, 400, 422), _SEARCH + "?" + "q=kipas&" * 3000)
    yield get("bytes", (200, 400, 422), _SEARCH + "?q=%ff%fe%fd")
    yield get("half an escape", (200, 400, 422), _SEARCH + "?q=%")
    for cursor in ("x", "e30=", "e30", "W10", "bnVsbA", "%00", "A" * 5000, escaped("../../x"), "eyJrIjpbMSwyXX0", "-1"):
        yield get(f"cursor {cursor[:9]}", (200, 400, 422), f"{_SEARCH}?q=kipas&cursor={cursor}")
        yield get(f"cursor {cursor[:9]}", (200, 400, 422), f"{_PRODUCTS}?cursor={cursor}&after={cursor}&page={cursor}")


def _numbers() -> Iterator[Row]:
    for value in ("-1", "1e309", "NaN", "inf", "9" * 400, "0x10", "1;2", "٣", "", "[]", "1e3", "-0", "true"):
        yield get(f"limit {value[:9]}", (200, 400, 422), f"{_PRODUCTS}?limit={value}&offset={value}&skip={value}")
        yield get(f"place {value[:9]}", (200, 400, 422), f"{_SEARCH}?q=a&user_lat={value}&user_lon={value}")
        yield get(f"price {value[:9]}", (200, 400, 422), f"{_PRODUCTS}?min_price={value}&max_price={value}")
        yield get(f"attribute {value[:9]}", (200, 400, 422), f"{_PRODUCTS}?attr.ram_gb.gte={value}&attr.ram_gb={value}")
        yield get(f"compare {value[:9]}", (200, 400, 404, 422), f"{_PRODUCTS}/compare?ids={value},{value}")
        yield get(f"id {value[:9]}", (307, 200, 400, 404, 422), f"{_PRODUCTS}/{escaped(value)}")
    for number in (2**31, 2**63, 2**64, 10**30):
        yield get(f"id {number}", (400, 404, 422), f"{_PRODUCTS}/{number}")
        yield get(f"id {number}", (400, 404, 422), f"/api/suppliers/{number}", account="user")
    yield get("a thousand attributes", (400, 422), f"{_PRODUCTS}?" + "attr.a.ne=1&" * 1500)
    yield get("compare of a thousand", (400, 422), f"{_PRODUCTS}/compare?ids=" + ",".join(["1"] * 9000))
    yield get(
        "everything at once", (200, 400, 422), f"{_PRODUCTS}?" + "&".join(f"f{number}=x" for number in range(3000))
    )


def _accounts() -> Iterator[Row]:
    login = {"email": "nobody@example.com", "password": "a long sentence", "kind": "user"}
    evil: dict[str, dict[str, Any]] = {
        "a password of 200 KB": {"password": "x" * 200_000},
        "a password of zeros": {"password": "\0" * 50},
        "a password of half a surrogate": {"password": "\ud800" * 20},
        "an e-mail of SQL": {"email": "' OR 1=1 --@example.com"},
        "an e-mail of 200 KB": {"email": "a" * 200_000 + "@example.com"},
        "an e-mail of lines": {"email": "a@example.com\r\nBcc: b@example.com"},
        "a kind of its own": {"kind": "admin"},
        "lists": {"email": ["a"], "password": {"$ne": ""}},
    }
    for name, changes in evil.items():
        yield post(f"login with {name}", (400, 401, 422), "/api/auth/login", {**login, **changes})
        register = {"name": "Eve", **login, **changes}
        yield post(f"register with {name}", (200, 400, 409, 422), "/api/auth/register", register)
    for name, value in {
        "SQL": "'; DROP TABLE users; --",
        "HTML": "<img src=x onerror=alert(1)>",
        "long": "x" * 90_000,
    }.items():
        yield post(
            f"named {name}", (200, 400, 422), "/api/users/register", {"name": value, "email": f"{name}@example.com"}
        )
    admin = {"name": "Eve", "email": "eve-admin@example.com", "role": "admin", "id": 1, "is_admin": True}
    yield post("as an admin", (200, 400, 403, 422), "/api/users/register", admin)
    none, other = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJ1c2VyOjEifQ.", "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ1c2VyOjEifQ.AAAA"
    for token in (none, other, "x", "a.b.c", "..", "x" * 20_000, "Bearer", "\xff\xfe", "$refresh"):
        headers = {"Authorization": f"Bearer {token}"}
        yield get(f"token {token[:9]!r}", 401, "/api/auth/me", headers=headers)
        yield get(f"token {token[:9]!r}", (200, 401), _PRODUCTS, headers=headers)
        yield post(f"refresh {token[:9]!r}", (400, 401, 422), "/api/auth/refresh", {"refresh_token": token[:9000]})
    for path in ("/api/users", "/api/audit", "/api/synonyms", "/api/users/1", "/api/suppliers/$supplier/export"):
        yield get("without a right", (401, 403, 404), path)
        yield get("of somebody else", (401, 403, 404), path, account="mallory")
    for method, path, body in (
        ("PUT", "/api/products/$product", {"price": 1}),
        ("DELETE", "/api/products/$product", None),
        ("PUT", "/api/suppliers/$supplier", {"name": "Eve"}),
        ("DELETE", "/api/suppliers/$supplier", None),
        ("PUT", "/api/users/$user/grants", {"role": "admin", "ai_access_enabled": True}),
        ("POST", "/api/suppliers/$supplier/members", {"user_id": 1, "role": "owner"}),
        ("POST", "/api/categories", {"slug": "x", "name_id": "x", "name_en": "x"}),
        ("PUT", "/api/suppliers/$supplier/status", {"status": "suspended"}),
    ):
        yield Row(f"{method} {path}: of somebody else", (403, 404), method, path, body, account="mallory")
        yield Row(f"{method} {path}: of nobody", (401,), method, path, body)
    for query in ("since=x", "before=-1", "actor=%00", "action=' OR 1=1", "limit=99999999"):
        yield get(query[:9], (401, 403, 422, 400), f"/api/audit?{escaped(query)}", account="mallory")


def _goods() -> Iterator[Row]:
    good = {"name": "Kipas", "price": 1000, "stock_quantity": 5, "category": "fan"}
    path = "/api/suppliers/$supplier/products"
    evil: dict[str, list[Any]] = {
        "price": [-1, 1e308, 10**30, "1000", None, 0.5, float("nan"), float("inf"), True, [1]],
        "stock_quantity": [-1, 2**63, 1.5, "many"],
        "name": ["", "\0", "\ud800", "x" * 90_000, 5, None],
        "attributes": [
            [],
            {"a": {}},
            {"a": float("inf")},
            {"a": 10**30},
            {str(n): 1 for n in range(5000)},
            {"\ud800": 1},
        ],
        "tags": ["," * 50_000, 5],
        "rating": [99, -1, float("nan")],
        "condition": ["broken"],
        "sku": ["\n", "x" * 5000],
    }
    for field, values in evil.items():
        for number, value in enumerate(values):
            yield post(f"{field} {number}", (200, 400, 422), path, {**good, field: value}, account="supplier")
    yield post("50,000 fields", (400, 413, 422), path, {f"f{n}": 1 for n in range(50_000)}, account="supplier")
    yield post("3,000 fields", (200, 400, 422), path, {**good, **{f"f{n}": 1 for n in range(3000)}}, account="supplier")
    yield post("250 KB", (400, 422), path, {**good, "description": "x" * 250_000}, account="supplier")
    yield post("300 KB", 413, path, {**good, "description": "x" * 300_000}, account="supplier")
    yield post("deep", (400, 422), path, b'{"name":' + b"[" * 100_000 + b"]" * 100_000 + b"}", account="supplier")
    yield post("120,000 brackets", (400, 422), path, b"[" * 120_000, account="supplier")
    yield post(
        "a number of 200,000 digits", (400, 422), path, b'{"price": ' + b"9" * 200_000 + b"}", account="supplier"
    )
    reservation = "/api/products/$product/reservations"
    quantities: list[Any] = [0, -5, 2**63, 1e300, "2", None, [], 0.5]
    for quantity in quantities:
        yield post(f"quantity {quantity}", (400, 409, 422), reservation, {"quantity": quantity}, account="user")
    yield post("seconds", (400, 422), reservation, {"quantity": 1, "seconds": 10**12}, account="user")
    for key in ("x" * 5000, "\x7f", "\xff", "", "a,b"):
        headers = {"Idempotency-Key": key}
        body = {"quantity": 1, "seconds": 60}
        yield post(f"key {key[:5]!r}", (200, 400, 409, 422), reservation, body, account="user", headers=headers)
    for etag in ('"x"', "W/" * 900, "*", "9" * 500, '"1", "2"'):
        row = Row(
            f"If-Match {etag[:5]}",
            (200, 400, 412, 422),
            "PUT",
            "/api/products/$product",
            {"price": 1000},
            account="supplier",
        )
        yield Row(row.name, row.statuses, row.method, row.path, row.body, {"If-Match": etag}, account="supplier")
    for rating in (0, 6, -1, "5", 4.5, None, 10**30):
        yield post(
            f"rating {rating}",
            (400, 403, 409, 422),
            "/api/products/$product/reviews",
            {"rating": rating},
            account="user",
        )
    text = {"rating": 5, "comment": "<script>" * 9000}
    yield post("a long review", (400, 403, 422), "/api/products/$product/reviews", text, account="user")
    for identity in ("x", "0" * 36, escaped("' OR 1=1"), "%00", "9" * 400):
        yield post(
            f"reservation {identity[:9]}", (400, 404, 422), f"/api/reservations/{identity}/commit", None, account="user"
        )
        yield get(f"before {identity[:9]}", (400, 422, 404), f"/api/reservations?before={identity}", account="user")
