"""What buyers and shops send for an order, over HTTP."""

from typing import Any

import httpx2

from tests.marketplace.shop import Shop

DEWI = {"name": "Dewi Specimen", "email": "dewi@example.com", "phone": "+6281234567890"}
ADDRESS = {
    "name": "Dewi Specimen",
    "phone": "+6281234567890",
    "street": "Jl. Contoh 12",
    "city": "Jakarta Selatan",
    "postal_code": "12345",
    "latitude": -6.25,
    "longitude": 106.8,
}
PICKUP = {"delivery": "pickup", "payment_method": "cash"}


class Ordering:
    """A buyer, a shop that takes orders, and their headers."""

    def __init__(self, client: httpx2.Client, shop: Shop, **rules: Any) -> None:
        self.client, self.shop = client, shop
        shop.takes_orders(**rules)
        self.buyer = shop.auth_headers(f"user:{shop.user(**DEWI)}")
        self.seller = shop.auth_headers(f"supplier:{shop.id}")
        self.rival = shop.auth_headers(f"supplier:{shop.supplier()}")
        self.thief = shop.auth_headers(f"user:{shop.user()}")

    def send(self, **body: Any) -> httpx2.Response:
        return self.client.post("/api/orders", json=body, headers=self.buyer)

    def order(self, quantities: dict[int, int], **place: Any) -> dict[str, Any]:
        """Placed at once, for a pick-up with cash if nothing else is said."""
        items = [{"product_id": product, "quantity": quantity} for product, quantity in quantities.items()]
        return made(self.send(items=items, place={**PICKUP, **place}))

    def draft(self, quantities: dict[int, int]) -> dict[str, Any]:
        return made(
            self.send(items=[{"product_id": product, "quantity": number} for product, number in quantities.items()])
        )

    def by_buyer(self, deed: str, order: dict[str, Any], **body: Any) -> httpx2.Response:
        return self.move(deed, order, self.buyer, **body)

    def by_shop(self, deed: str, order: dict[str, Any], **body: Any) -> httpx2.Response:
        return self.move(deed, order, self.seller, **body)

    def move(self, deed: str, order: dict[str, Any], headers: dict[str, str], **body: Any) -> httpx2.Response:
        return self.client.post(f"/api/orders/{order['id']}/{deed}", json=body, headers=headers)

    def read(self, order: dict[str, Any], headers: dict[str, str] | None = None) -> httpx2.Response:
        return self.client.get(f"/api/orders/{order['id']}", headers=headers or self.buyer)


def made(answer: httpx2.Response) -> dict[str, Any]:
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


def refusal(answer: httpx2.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["detail"]


def too_late(state: str) -> tuple[int, str]:
    """What a mover reads who finds the order in this state."""
    return 409, f"This order is {state}: that move is not open."
