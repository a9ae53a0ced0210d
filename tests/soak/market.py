"""The marketplace in a soak: searches, the assistant, and buyers whose purchases must add up at the end."""

import json
import sqlite3
import time
from dataclasses import dataclass, field
from random import Random
from typing import Any

import httpx2

from tests.marketplace.accounts import bearer, made, register_admin, register_supplier, register_user
from tests.soak.floor import Floor

_QUERIES = ("leptop gam", "kulkas 2 pintu", "sesuatu untuk menghangatkan kopi", "mouse")
_QUESTIONS = ("Saya butuh laptop gaming, budget 20 juta", "ada mouse?", "kulkas dua pintu", "headset yang murah")
_PLENTY, _SCARCE = 1_000_000, 4
_MAX_RESERVATIONS = 200_000  # ids that are compared with the database at the end


@dataclass
class Purchases:
    """What the server has acknowledged, by the id of the reservation."""

    products: dict[int, int] = field(default_factory=dict)  # and their stock at the beginning
    quantities: dict[str, int] = field(default_factory=dict)
    product_of: dict[str, int] = field(default_factory=dict)
    status: dict[str, str] = field(default_factory=dict)


class SoakedMarket:
    def __init__(self) -> None:
        self.purchases = Purchases()
        self.buyer = self.shop = ""

    def open(self, floor: Floor) -> None:
        """Accounts and goods; blocks."""
        with httpx2.Client(base_url=floor.server.url, timeout=300) as http:
            admin = register_admin(http, f"sqlite:///{floor.server.database}")
            buyer, shop = register_user(http), register_supplier(http)
            made(http.put(f"/api/users/{buyer['id']}/grants", json={"ai_access_enabled": True}, headers=bearer(admin)))
            for name, stock in (("Sekop taman", _PLENTY), ("Cangkul besi", _PLENTY), ("Garpu rumput", _SCARCE)):
                goods = {"name": name, "price": 90_000, "stock_quantity": stock, "category": "soak-tools"}
                path = f"/api/suppliers/{shop['id']}/products"
                self.purchases.products[made(http.post(path, json=goods, headers=bearer(shop)))["id"]] = stock
        self.buyer, self.shop = buyer["access_token"], shop["access_token"]

    async def buy(self, floor: Floor, chance: Random, variant: int) -> None:
        """Reserves under a key of its own until that is answered; then sells, releases, or lets it expire."""
        purchases = self.purchases
        if len(purchases.status) >= _MAX_RESERVATIONS:
            return
        product, quantity = chance.choice([*purchases.products]), chance.randrange(1, 4)
        path, key = f"/api/products/{product}/reservations", {"Idempotency-Key": floor.name("buy")}
        sent = {"quantity": quantity, "seconds": 60}
        answer = await floor.send("reserve", path, token=self.buyer, json=sent, headers=key, expected=(200, 409))
        if answer.status_code != 200:
            is_scarce = purchases.products[product] == _SCARCE
            floor.ledger.expect(is_scarce, "stock", "reserve", f"{answer.text} of product {product}")
            return
        reservation = answer.json()["id"]
        again = await floor.send("reserve", path, token=self.buyer, json=sent, headers=key)
        floor.ledger.expect(again.json().get("id") == reservation, "doubled", "reserve", f"{answer.text}, {again.text}")
        floor.ledger.expect(reservation not in purchases.status, "doubled", "reserve", f"{reservation} is given twice")
        purchases.status[reservation], purchases.product_of[reservation] = "held", product
        purchases.quantities[reservation] = quantity
        end = "committed" if variant < 2 and purchases.products[product] != _SCARCE else "released"
        if variant < 3 or purchases.products[product] == _SCARCE:
            verb, token = ("commit", self.shop) if end == "committed" else ("release", self.buyer)
            # After a minute without a server it has expired.
            ended = await floor.send(verb, f"/api/reservations/{reservation}/{verb}", token=token, expected=(200, 409))
            purchases.status[reservation] = end if ended.status_code == 200 else "held"

    async def search(self, floor: Floor, chance: Random, variant: int) -> None:
        params = {"q": _QUERIES[variant], "user_lat": "-6.2088", "user_lon": "106.8456"}
        answer = await floor.send("search", "/api/products/search", method="GET", token=self.buyer, params=params)
        if answer.status_code == 200 and variant != 2:  # vectors of that one are made in the background
            floor.same("search", variant, [product["name"] for product in answer.json()])
        path = ("/api/products/facets?q=laptop", "/api/products/suggest?q=lap", "/api/categories", "/api/suppliers")[
            variant
        ]
        await floor.send("facets and the like", path, method="GET", token=self.buyer)

    async def assistant(self, floor: Floor, chance: Random, variant: int) -> None:
        sent = {"query": _QUESTIONS[variant], "stream": variant < 2}
        if variant < 2:
            await self._assistant_stream(floor, chance, sent)
            return
        key = {"Idempotency-Key": floor.name("question")}
        answer = await floor.send("assistant", "/api/chat/search", token=self.buyer, json=sent, headers=key)
        if answer.status_code == 200:
            floor.same("assistant", variant, [product["id"] for product in answer.json()["products"]])

    async def _assistant_stream(self, floor: Floor, chance: Random, sent: dict[str, Any]) -> None:
        kind, headers = "assistant stream", {"Authorization": f"Bearer {self.buyer}"}
        question = {"Idempotency-Key": floor.name("question")}
        blocks: list[str] = []
        end = time.monotonic() + 600
        while not (blocks and "event: chat.search.completed" in blocks[-1]):
            began, max_blocks, piece = time.monotonic(), chance.choice([2, 10**6]), ""
            request: dict[str, Any] = {"method": "POST", "url": "/api/chat/search", "json": sent}
            cursor = dict(question)
            if blocks:
                session_id = json.loads(blocks[0].partition("data: ")[2])["session_id"]
                request = {"method": "GET", "url": f"/api/chat/stream/{session_id}"}
                cursor = {"Last-Event-ID": f"{session_id}:{len(blocks) - 1}"}
            try:
                async with floor.http.stream(**request, headers={**headers, **cursor}) as answer:
                    floor.ledger.answered(kind, str(answer.status_code))
                    if answer.status_code != 200:
                        text = (await answer.aread()).decode()
                        if answer.status_code >= 500:
                            excused = floor.server.excuses(began)
                            floor.ledger.server_error(kind, answer.status_code, text, is_expected=excused)
                        else:
                            floor.ledger.fault("status", kind, f"{answer.status_code} {text}")
                            return
                    async for chunk in answer.aiter_text():
                        piece += chunk
                        if piece.count("\n\n") >= max_blocks:
                            break
            except httpx2.TransportError as error:
                floor.cut(kind, began, error)
            blocks += [block for block in piece.split("\n\n")[:-1] if block.startswith("id:")]
            if time.monotonic() > end:
                floor.ledger.fault("hangs", kind, f"the answer does not end: {blocks[-1:]}")
                return
        session_id = json.loads(blocks[0].partition("data: ")[2])["session_id"]
        again = await floor.send(kind, f"/api/chat/stream/{session_id}", method="GET", token=self.buyer)
        whole = [block for block in again.text.split("\n\n")[:-1] if block.startswith("id:")]
        ids = [block.partition("\n")[0] for block in blocks]
        floor.ledger.expect(len(set(ids)) == len(ids), "doubled", kind, f"{session_id}: {ids}")
        floor.ledger.expect(whole == blocks, "lost", kind, f"{session_id}: {blocks} became {whole}")
        floor.ledger.holds("blocks that were found again", len(blocks))

    def check_stock(self, floor: Floor) -> dict[str, int]:
        """Reads the file of the server, which has ended: rows, sums and ledger must say what clients were told."""
        purchases, ledger = self.purchases, floor.ledger
        with sqlite3.connect(floor.server.database) as database:
            rows = database.execute("SELECT id, product_id, quantity, status FROM stock_reservations").fetchall()
            products = {row[0]: row[1:] for row in database.execute("SELECT id, on_hand, reserved FROM products")}
            moved = dict(database.execute("SELECT product_id, sum(delta) FROM stock_movements GROUP BY product_id"))
        database.close()
        mine = {
            id: (product, quantity, status) for id, product, quantity, status in rows if product in purchases.products
        }
        lost = [id for id in purchases.status if id not in mine]
        more = [id for id in mine if id not in purchases.status]
        ledger.expect(not lost, "lost", "stock", f"reservations {lost[:5]} were acknowledged and are gone")
        ledger.expect(not more, "doubled", "stock", f"reservations {more[:5]} were made and nobody was told")
        for id, status in purchases.status.items():
            product, quantity, now = mine.get(id, (0, 0, ""))
            allowed = ("held", "expired") if status == "held" else (status,)
            fact = now in allowed and quantity == purchases.quantities[id]
            ledger.expect(fact, "stock", "stock", f"{id} of {product}: {quantity} {now}, acknowledged as {status}")
        for product, stock in purchases.products.items():
            sold = sum(quantity for of, quantity, now in mine.values() if of == product and now == "committed")
            held = sum(quantity for of, quantity, now in mine.values() if of == product and now == "held")
            found = (*products[product], moved.get(product, 0))
            wanted = (stock - sold, held, stock - sold)
            text = f"product {product} has (on hand, reserved, moved) {found}, not {wanted}"
            ledger.expect(found == wanted and held <= stock - sold, "stock", "stock", text)
        return {
            "reservations": len(mine),
            "acknowledged": len(purchases.status),
            "lost": len(lost),
            "doubled": len(more),
        }
