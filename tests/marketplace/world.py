"""An account of every kind, and one row of everything that they may read or change."""

import itertools
from collections.abc import Generator
from dataclasses import dataclass
from datetime import timedelta
from uuid import uuid4

import numpy
from pydantic import SecretStr
from sqlalchemy.orm import Session

from tis.marketplace.auth.links import LinkPurpose, new_link
from tis.marketplace.auth.passwords import hashed
from tis.marketplace.auth.tokens import begin_chain
from tis.marketplace.columns import now
from tis.marketplace.kit.signing import Claims
from tis.marketplace.market import Market
from tis.marketplace.notices.unsubscribing import unsubscribe_token
from tis.marketplace.picture_files.picture_rendering import render_picture
from tis.marketplace.tables import (
    Branch,
    Category,
    Conversation,
    ConversationMessage,
    DataRequest,
    Order,
    OrderLine,
    OrderMove,
    Product,
    ProductAlert,
    ProductGroup,
    ProductPicture,
    Promotion,
    RefreshToken,
    Reservation,
    Review,
    SavedSearch,
    SheetImport,
    ShopMessage,
    ShopOrderRules,
    ShopTalk,
    ShopToken,
    Supplier,
    SupplierInvitation,
    SupplierMember,
    SupplierVerification,
    Synonym,
    User,
    UserPreferences,
    Webhook,
)

PASSWORD = "a long sentence"
_numbers = itertools.count(1)
PURPOSES: tuple[LinkPurpose, ...] = ("reset", "confirm")
KINDS = ("anonymous", "user", "other user", "supplier", "other supplier", "editor", "owner", "admin")


@dataclass(frozen=True)
class World:
    """`user` wrote the review and the conversation, and holds the reservation; `supplier` has the product, members and
    a clerk, and invites `other user`."""

    names: dict[str, str]
    tokens: dict[str, str]
    refresh_token: str

    def headers(self, kind: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.tokens[kind]}"} if kind in self.tokens else {}


def new_world(market: Market) -> World:
    return new_worlds(market, 1)[0]


def new_worlds(market: Market, count: int) -> list[World]:
    """Made together: the rows of a table go to the database at once, which costs half of what each alone would."""
    shown = render_picture(numpy.full((4, 4, 3), next(_numbers) % 256, numpy.uint8))
    market.pictures.storage.keep(shown)
    worlds: list[World] = []
    with market.writing() as session:
        parts = [_world(market, session, next(_numbers), shown.hash) for _ in range(count)]
        while len(worlds) < count:
            for part in parts:
                try:
                    next(part)
                except StopIteration as end:
                    worlds.append(end.value)
            session.flush()
    return worlds


def _world(market: Market, session: Session, number: int, picture: str) -> Generator[None, None, World]:
    """Yields where its rows must be in the database."""
    users = {kind: _user(number, kind) for kind in ("user", "other user", "editor", "owner", "admin", "clerk")}
    shops = {kind: _supplier(number, kind) for kind in ("supplier", "other supplier")}
    session.add_all([*users.values(), *shops.values()])
    yield
    supplier_id = shops["supplier"].id
    for kind, role in (("editor", "editor"), ("owner", "owner"), ("clerk", "editor")):
        session.add(SupplierMember(supplier_id=supplier_id, user_id=users[kind].id, role=role))
    shown_card = {"name_matches": False, "doubts": ["name_differs"], "card_digest": f"card {number}"}
    session.add(SupplierVerification(supplier_id=supplier_id, status="doubtful", **shown_card))
    later = now() + timedelta(days=1)
    invited = users["other user"].id
    session.add(SupplierInvitation(supplier_id=supplier_id, user_id=invited, role="editor", expires_at=later))
    names = {
        "supplier_id": str(supplier_id),
        "user_id": str(users["clerk"].id),
        "email": str(users["user"].email),
        "own_id": str(users["user"].id),
        **(yield from _things(session, number, supplier_id, users["user"].id)),
        "picture_id": picture,
        "size": "small",
    }
    session.add(ProductPicture(product_id=int(names["product_id"]), hash=picture, position=0))
    accounts = {kind: f"user:{user.id}" for kind, user in users.items()}
    accounts |= {kind: f"supplier:{shop.id}" for kind, shop in shops.items()}
    refresh_token = begin_chain(session, market, accounts["user"]).refresh_token
    names["session_id"] = market.signer.read(refresh_token, "refresh").chain
    shop_token = begin_chain(session, market, accounts["supplier"]).refresh_token
    address = names["email"]
    names["unsubscribe_token"] = unsubscribe_token(market.signer, accounts["user"], ["orders"], address)
    names["shop_session_id"] = market.signer.read(shop_token, "refresh").chain
    for purpose in PURPOSES:
        names[f"{purpose}_secret"] = str(new_link(session, accounts["user"], purpose, names["email"]))
    tokens = {kind: _token(session, market, account) for kind, account in accounts.items()}
    return World(names, tokens, refresh_token)


def _token(session: Session, market: Market, account: str) -> str:
    """A token with its own chain, without the HTTP login."""
    chain = uuid4().hex
    session.add(RefreshToken(digest=uuid4().hex, chain=chain, account=account, expires_at=now() + timedelta(days=1)))
    return market.signer.sign("access", Claims(account, chain, token_id=uuid4().hex), 60)


def _things(session: Session, number: int, supplier_id: int, user_id: int) -> Generator[None, None, dict[str, str]]:
    goods = [
        Product(
            supplier_id=supplier_id, name=name, price=1000, on_hand=9, reserved=1, category="fan", category_key="fan"
        )
        for name in ("Kipas meja", "Kipas dinding")
    ]
    session.add_all(goods)
    session.add(Category(slug=f"kind-{number}", name_id="Kipas", name_en="Fan"))
    yield
    product_id, other_id = (product.id for product in goods)
    group = ProductGroup(supplier_id=supplier_id, name="Kipas lantai", name_key=f"kipas {number}", axes=["warna"])
    session.add(group)
    yield
    variants = [
        Product(
            supplier_id=supplier_id,
            name="Kipas lantai",
            price=1000,
            on_hand=0,
            category="fan",
            category_key="fan",
            attributes={"warna": color},
            group_id=group.id,
            variant_key=color,
        )  # fmt: skip
        for color in ("putih", "biru")
    ]
    session.add_all(variants)
    yield
    review = Review(product_id=other_id, user_id=user_id, rating=5, answer="Terima kasih!", answered_at=now())
    till = ShopToken(
        supplier_id=supplier_id,
        digest=uuid4().hex,
        name="Till",
        scopes="read",
        created_by=f"supplier:{supplier_id}",
        expires_at=now() + timedelta(days=1),
    )
    reservation_id, import_id, order_id = str(uuid4()), str(uuid4()), str(uuid4())
    order = Order(
        id=order_id,
        number=order_id[:9],
        supplier_id=supplier_id,
        buyer=f"user:{user_id}",
        state="placed",
        shop_name="supplier",
        items_total=1000,
        total=1000,
        version=2,
        placed_at=now(),
        due_at=now() + timedelta(days=1),
    )
    line = {"order_id": order_id, "position": 1, "product_id": other_id, "name": "Kipas dinding", "unit_price": 1000}
    webhook = Webhook(supplier_id=supplier_id, url="https://till.world.example/", groups=["orders"], seed=uuid4().hex)
    reservation_id, import_id = str(uuid4()), str(uuid4())
    asked = {"user_id": user_id, "reason": "A letter", "received_at": now(), "due_at": now() + timedelta(hours=72)}
    copy, erasure = DataRequest(kind="export", **asked), DataRequest(kind="erase", **asked)
    conversation = Conversation(user_id=user_id, session_id=f"chat_{uuid4().hex}", title="Kipas murah")
    later = now() + timedelta(minutes=15)
    talk = ShopTalk(supplier_id=supplier_id, buyer=f"user:{user_id}", product_id=other_id, num_messages=1)
    session.add(talk)
    yield
    session.add(ShopMessage(talk_id=talk.id, number=1, side="buyer", body="Berapa harganya?", reported_at=now()))
    session.add_all(
        [
            review,
            till,
            webhook,
            copy,
            erasure,
            conversation,
            UserPreferences(user_id=user_id, brands=["maspion"]),
            Synonym(term=f"word{number}", means="kipas"),
            ShopOrderRules(supplier_id=supplier_id, takes_orders=True),
            order,
            OrderMove(order_id=order_id, number=2, state="placed", mover="buyer", actor=f"user:{user_id}"),
            SheetImport(id=import_id, supplier_id=supplier_id, num_rows=1, status="done"),
            _paid_order(paid_order_id := str(uuid4()), supplier_id, user_id),
            Reservation(
                id=reservation_id, product_id=product_id, actor=f"user:{user_id}", quantity=1, expires_at=later
            ),
        ]
    )
    session.add(OrderLine(**line, ordered=1, quantity=1, total=1000))
    yield
    promotion = Promotion(
        product_id=other_id, supplier_id=supplier_id, price=900, begins_at=later, ends_at=later + timedelta(days=1)
    )
    alert = ProductAlert(user_id=user_id, product_id=other_id, kind="fall", last_price=1000)
    saved = SavedSearch(user_id=user_id, name="Kipas", parameters=[["q", "kipas"]], query={"text": "kipas"})
    session.add_all([promotion, alert, saved])
    yield
    branch = Branch(supplier_id=supplier_id, name="Cabang", city="Jakarta", latitude=-6.3, longitude=106.9)
    session.add_all([promotion, alert, saved, branch])
    session.flush()
    said = {"conversation_id": conversation.id, "turn_id": "turn_1", "content": "Kipas murah", "role": "user"}
    session.add(ConversationMessage(**said))
    return {
        "number": str(number),
        "product_id": str(product_id),
        "other_product_id": str(other_id),
        "review_id": str(review.id),
        "group_id": str(group.id),
        "variant_id": str(variants[0].id),
        "promotion_id": str(promotion.id),
        "branch_id": str(branch.id),
        "alert_id": str(alert.id),
        "search_id": str(saved.id),
        "tomorrow": (now() + timedelta(days=1)).isoformat(),
        "token_id": str(till.id),
        "webhook_id": str(webhook.id),
        "export_id": str(copy.id),
        "erasure_id": str(erasure.id),
        "reservation_id": reservation_id,
        "import_id": import_id,
        "order_id": order_id,
        "talk_id": str(talk.id),
        "message_number": "1",
        "paid_order_id": paid_order_id,
        "provider": "midtrans",
        "chat_session_id": conversation.session_id,
        "slug": f"kind-{number}",
        "term": f"word{number}",
    }


def _paid_order(order_id: str, supplier_id: int, user_id: int) -> Order:
    """Accepted, to be paid by transfer; of an earlier payment the shop owes something."""
    return Order(
        id=order_id,
        number=order_id[:8].upper(),
        supplier_id=supplier_id,
        buyer=f"user:{user_id}",
        state="accepted",
        shop_name="supplier",
        payment_method="transfer",
        items_total=5000,
        total=5000,
        paid_by_hand=1000,
        refund_due=1000,
        placed_at=now(),
        accepted_at=now(),
        due_at=now() + timedelta(hours=1),
    )


def _user(number: int, kind: str) -> User:
    email = f"{kind.replace(' ', '-')}-{number}@world.example"
    password_hash = hashed(SecretStr(PASSWORD)) if kind == "user" else None
    role = "admin" if kind == "admin" else "user"
    may_ask = kind in ("user", "admin")
    rights = {"role": role, "ai_access_enabled": may_ask}
    return User(name=kind, email=email, email_key=email, password_hash=password_hash, **rights)


def _supplier(number: int, kind: str) -> Supplier:
    email = f"{kind.replace(' ', '-')}-{number}@world.example"
    place = {"latitude": -6.2, "longitude": 106.8, "city": "Jakarta", "city_key": "jakarta"}
    return Supplier(name=kind, business_name=kind, email=email, email_key=email, **place)
