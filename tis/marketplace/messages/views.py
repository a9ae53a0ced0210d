"""Talks and messages as one side sees them."""

from collections.abc import Mapping, Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from tis.marketplace.auth.accounts import split_account
from tis.marketplace.kit.fields import abbreviated_name
from tis.marketplace.kit.picture_links import PictureView, picture_view
from tis.marketplace.messages.closing import closed_reasons
from tis.marketplace.messages.schemas import ReportedMessage, ShopMessageView, Side, TalkDetail, TalkView
from tis.marketplace.messages.service import messages_of
from tis.marketplace.tables import Order, Product, ShopMessage, ShopTalk, StoredPicture, Supplier, User


def talk_views(session: Session, talks: Sequence[tuple[ShopTalk, Side]]) -> list[TalkView]:
    suppliers = select(Supplier.id, Supplier.business_name)
    found = session.execute(suppliers.where(Supplier.id.in_({talk.supplier_id for talk, _ in talks})))
    shops = {row.id: row.business_name for row in found}
    goods = select(Product.id, Product.name).where(Product.id.in_({talk.product_id for talk, _ in talks}))
    products = {row.id: row.name for row in session.execute(goods)}
    bought = select(Order.id, Order.number).where(Order.id.in_({talk.order_id for talk, _ in talks}))
    orders = {row.id: row.number for row in session.execute(bought)}
    buyers = _buyer_names(session, [talk.buyer for talk, side in talks if side == "shop" and talk.buyer])
    closed = closed_reasons(session, [talk for talk, _ in talks])
    return [
        TalkView(
            id=talk.id,
            supplier_id=talk.supplier_id,
            shop_name=shops.get(talk.supplier_id, ""),
            buyer_name=buyers.get(talk.buyer or "") if side == "shop" else None,
            product_id=talk.product_id,
            order_id=talk.order_id,
            about=products.get(talk.product_id or 0) or orders.get(talk.order_id or "") or "",
            side=side,
            num_messages=talk.num_messages,
            num_unread=talk.num_messages - (talk.buyer_read if side == "buyer" else talk.shop_read),
            read_by_other=talk.shop_read if side == "buyer" else talk.buyer_read,
            waits_for=talk.waits_for,
            last_at=talk.last_at,
            closed_reason=closed.get(talk.id),
        )
        for talk, side in talks
    ]


def talk_detail(session: Session, talk: ShopTalk, side: Side, before: int | None = None, limit: int = 50) -> TalkDetail:
    [view] = talk_views(session, [(talk, side)])
    messages = messages_of(session, talk, before, limit)
    pictures = pictures_of(session, messages)
    return TalkDetail(**dict(view), messages=[message_view(one, side, pictures) for one in messages])


def message_view(message: ShopMessage, side: Side, pictures: Mapping[str, PictureView]) -> ShopMessageView:
    is_hidden = message.hidden_at is not None
    return ShopMessageView(
        number=message.number,
        side=message.side,
        body=None if is_hidden else message.body,
        picture=None if is_hidden else pictures.get(message.picture_hash or ""),
        is_drafted=message.is_drafted,
        is_hidden=is_hidden,
        is_reported=message.reported_at is not None and message.side != side,
        created_at=message.created_at,
    )


def reported_views(session: Session, messages: Sequence[ShopMessage]) -> list[ReportedMessage]:
    pictures = pictures_of(session, messages)
    named = set(ReportedMessage.model_fields) - {"picture"}
    return [
        ReportedMessage(**{name: getattr(one, name) for name in named}, picture=pictures.get(one.picture_hash or ""))
        for one in messages
    ]


def pictures_of(session: Session, messages: Sequence[ShopMessage]) -> dict[str, PictureView]:
    hashes = {one.picture_hash for one in messages if one.picture_hash}
    if not hashes:
        return {}
    rows = session.scalars(select(StoredPicture).where(StoredPicture.hash.in_(hashes)))
    return {one.hash: picture_view(one.hash, one.width, one.height, None) for one in rows}


def _buyer_names(session: Session, accounts: Sequence[str]) -> dict[str, str]:
    """Of users abbreviated, as on reservations; a shop that buys is named."""
    names: dict[str, str] = {}
    by_kind: dict[str, set[int]] = {"user": set(), "supplier": set()}
    for kind, number in map(split_account, accounts):
        by_kind[kind].add(number)
    if by_kind["user"]:
        users = session.execute(select(User.id, User.name).where(User.id.in_(by_kind["user"])))
        names |= {f"user:{number}": abbreviated_name(name) for number, name in users}
    if by_kind["supplier"]:
        shops = session.execute(select(Supplier.id, Supplier.business_name).where(Supplier.id.in_(by_kind["supplier"])))
        names |= {f"supplier:{number}": name for number, name in shops}
    return names
