"""An account of every kind, and one row of everything that they may read or change."""

import itertools
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
from tis.marketplace.picture_files.picture_rendering import render_picture
from tis.marketplace.tables import (
    Category,
    Conversation,
    ConversationMessage,
    DataRequest,
    Product,
    ProductAlert,
    ProductPicture,
    Promotion,
    RefreshToken,
    Reservation,
    Review,
    SavedSearch,
    SheetImport,
    ShopToken,
    Supplier,
    SupplierInvitation,
    SupplierMember,
    Synonym,
    User,
    UserPreferences,
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
    number = next(_numbers)
    shown = render_picture(numpy.full((4, 4, 3), number % 256, numpy.uint8))
    market.pictures.storage.keep(shown)
    with market.writing() as session:
        users = {kind: _user(number, kind) for kind in ("user", "other user", "editor", "owner", "admin", "clerk")}
        shops = {kind: _supplier(number, kind) for kind in ("supplier", "other supplier")}
        session.add_all([*users.values(), *shops.values()])
        session.flush()
        supplier_id = shops["supplier"].id
        for kind, role in (("editor", "editor"), ("owner", "owner"), ("clerk", "editor")):
            session.add(SupplierMember(supplier_id=supplier_id, user_id=users[kind].id, role=role))
        later = now() + timedelta(days=1)
        invited = users["other user"].id
        session.add(SupplierInvitation(supplier_id=supplier_id, user_id=invited, role="editor", expires_at=later))
        names = {
            "supplier_id": str(supplier_id),
            "user_id": str(users["clerk"].id),
            "email": str(users["user"].email),
            "own_id": str(users["user"].id),
            **_things(session, number, supplier_id, users["user"].id),
            "picture_id": shown.hash,
            "size": "small",
        }
        session.add(ProductPicture(product_id=int(names["product_id"]), hash=shown.hash, position=0))
        accounts = {kind: f"user:{user.id}" for kind, user in users.items()}
        accounts |= {kind: f"supplier:{shop.id}" for kind, shop in shops.items()}
        refresh_token = begin_chain(session, market, accounts["user"]).refresh_token
        names["session_id"] = market.signer.read(refresh_token, "refresh").chain
        shop_token = begin_chain(session, market, accounts["supplier"]).refresh_token
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


def _things(session: Session, number: int, supplier_id: int, user_id: int) -> dict[str, str]:
    goods = [
        Product(
            supplier_id=supplier_id, name=name, price=1000, on_hand=9, reserved=1, category="fan", category_key="fan"
        )
        for name in ("Kipas meja", "Kipas dinding")
    ]
    session.add_all(goods)
    session.add(Category(slug=f"kind-{number}", name_id="Kipas", name_en="Fan"))
    session.flush()
    product_id, other_id = (product.id for product in goods)
    review = Review(product_id=other_id, user_id=user_id, rating=5, answer="Terima kasih!", answered_at=now())
    till = ShopToken(
        supplier_id=supplier_id,
        digest=uuid4().hex,
        name="Till",
        scopes="read",
        created_by=f"supplier:{supplier_id}",
        expires_at=now() + timedelta(days=1),
    )
    reservation_id, import_id = str(uuid4()), str(uuid4())
    asked = {"user_id": user_id, "reason": "A letter", "received_at": now(), "due_at": now() + timedelta(hours=72)}
    copy, erasure = DataRequest(kind="export", **asked), DataRequest(kind="erase", **asked)
    conversation = Conversation(user_id=user_id, session_id=f"chat_{uuid4().hex}", title="Kipas murah")
    later = now() + timedelta(minutes=15)
    session.add_all(
        [
            review,
            till,
            copy,
            erasure,
            conversation,
            UserPreferences(user_id=user_id, brands=["maspion"]),
            Synonym(term=f"word{number}", means="kipas"),
            SheetImport(id=import_id, supplier_id=supplier_id, num_rows=1, status="done"),
            Reservation(
                id=reservation_id, product_id=product_id, actor=f"user:{user_id}", quantity=1, expires_at=later
            ),
        ]
    )
    session.flush()
    promotion = Promotion(
        product_id=other_id, supplier_id=supplier_id, price=900, begins_at=later, ends_at=later + timedelta(days=1)
    )
    alert = ProductAlert(user_id=user_id, product_id=other_id, kind="fall", last_price=1000)
    saved = SavedSearch(user_id=user_id, name="Kipas", parameters=[["q", "kipas"]], query={"text": "kipas"})
    session.add_all([promotion, alert, saved])
    session.flush()
    said = {"conversation_id": conversation.id, "turn_id": "turn_1", "content": "Kipas murah", "role": "user"}
    session.add(ConversationMessage(**said))
    return {
        "number": str(number),
        "product_id": str(product_id),
        "other_product_id": str(other_id),
        "review_id": str(review.id),
        "promotion_id": str(promotion.id),
        "alert_id": str(alert.id),
        "search_id": str(saved.id),
        "tomorrow": (now() + timedelta(days=1)).isoformat(),
        "token_id": str(till.id),
        "export_id": str(copy.id),
        "erasure_id": str(erasure.id),
        "reservation_id": reservation_id,
        "import_id": import_id,
        "chat_session_id": conversation.session_id,
        "slug": f"kind-{number}",
        "term": f"word{number}",
    }


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
