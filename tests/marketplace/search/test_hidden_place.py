"""Distances measured from many points reveal no more of a shop's place than its public place."""

from typing import Any

import httpx2

from tests.marketplace.accounts import bearer, made, register_supplier

HERE: dict[str, Any] = {"latitude": -6.2345678, "longitude": 106.8765432}
# 300 m away, and the same to the kilometre.
THERE = {"latitude": -6.2321, "longitude": 106.8771}


def public_answers(client: httpx2.Client, supplier: int, product: int) -> list[tuple[Any, str | None]]:
    """Distances, their order, the products within a radius, and the cursors, without a token."""
    answers = []
    for latitude, longitude in ((-6.2, 106.8), (-6.2345678, 106.8765432), (-6.3, 106.9)):
        place: dict[str, Any] = {"user_lat": latitude, "user_lon": longitude}
        requests: list[tuple[str, dict[str, Any]]] = [
            ("/api/products", {"sort": "distance"}),
            ("/api/products/search", {"q": "rahasia", "sort": "distance"}),
            ("/api/products/search", {"q": "rahasia"}),  # in rings
            *(("/api/products", {"radius_km": radius}) for radius in (0.2, 0.4, 0.6, 0.8, 9.2, 9.3, 9.4, 9.5)),
        ]
        for path, parameters in requests:
            answer = client.get(path, params={"supplier_id": supplier, "limit": 1, **place, **parameters})
            answers.append((made_list(answer), answer.headers.get("Link")))
        around = client.get("/api/products", params={**place, "radius_km": 0.5, "city": "Rahasia"})
        answers.append((made_list(around), around.headers.get("Link")))
        answers.append((client.get(f"/api/products/{product}", params=place).json(), None))
    return answers


def made_list(answer: httpx2.Response) -> list[Any]:
    assert answer.status_code == 200, answer.text
    return list(answer.json())


def test_distances_reveal_no_more_than_the_public_place(internet: httpx2.Client) -> None:
    supplier = register_supplier(internet, city="Rahasia", **HERE)
    path, owner = f"/api/suppliers/{supplier['id']}", bearer(supplier)
    goods = {"price": 1000, "stock_quantity": 5, "category": "fan"}
    products = [
        made(internet.post(f"{path}/products", json={"name": f"Kipas rahasia {number}", **goods}, headers=owner))["id"]
        for number in range(2)
    ]
    before = public_answers(internet, supplier["id"], products[0])

    assert made(internet.put(path, json=THERE, headers=owner))["latitude"] == THERE["latitude"]
    assert public_answers(internet, supplier["id"], products[0]) == before

    made(internet.put(path, json={"shows_place": True}, headers=owner))
    shown = public_answers(internet, supplier["id"], products[0])
    assert shown != before
    made(internet.put(path, json={"latitude": -6.23209, "longitude": 106.87711}, headers=owner))
    assert public_answers(internet, supplier["id"], products[0]) == shown


def test_distances_to_hidden_places_are_whole_kilometres(internet: httpx2.Client) -> None:
    """Of products, of shops, and in the advice: as their public place is only good to a kilometre."""
    supplier = register_supplier(internet, business_name="Kipas Tersembunyi", city="Tersembunyi", **HERE)
    path, owner = f"/api/suppliers/{supplier['id']}", bearer(supplier)
    goods = {"name": "Kipas", "price": 1000, "stock_quantity": 5, "category": "fan"}
    product, other = (made(internet.post(f"{path}/products", json=goods, headers=owner))["id"] for _ in range(2))
    place = {"user_lat": -6.2, "user_lon": 106.85}

    def answers() -> list[dict[str, Any]]:
        of_supplier = {**place, "supplier_id": supplier["id"]}
        return [
            made_list(internet.get("/api/products", params=of_supplier))[0],
            made_list(internet.get("/api/products/search", params={**of_supplier, "q": "kipas"}))[0],
            internet.get(f"/api/products/{product}", params=place).json(),
            internet.get("/api/products/compare", params={**place, "ids": f"{product},{other}"}).json(),
            made_list(internet.get("/api/suppliers", params={**place, "q": "tersembunyi"}))[0],
            internet.get(path, params=place).json(),
        ]

    def distances() -> set[Any]:
        found = [answer["products"][0] if "products" in answer else answer for answer in answers()]
        reasons = [one["fulfilment"]["reason"] for one in found if "fulfilment" in one]
        assert all(f"{found[0]['distance_km']:g} km".replace(".", ",") in reason for reason in reasons)
        return {one["distance_km"] for one in found}

    assert distances() == {5.0}
    made(internet.put(path, json={"shows_place": True}, headers=owner))
    assert distances() == {4.9}
