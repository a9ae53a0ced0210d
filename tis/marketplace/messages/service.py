"""Writing, reading, marking and reporting messages. Whoever writes locks the talk."""

from collections.abc import Sequence

from sqlalchemy import ColumnElement, and_, or_, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from tis.errors import Conflict, Forbidden, NotFound
from tis.marketplace.columns import now
from tis.marketplace.kit import audit
from tis.marketplace.kit.news import News
from tis.marketplace.kit.notice_outbox import notify
from tis.marketplace.kit.principal import Principal
from tis.marketplace.kit.suspicious_texts import instruction_like
from tis.marketplace.messages.closing import require_open_talk
from tis.marketplace.messages.schemas import MAX_MESSAGES, NO_MESSAGE, NO_TALK, Side
from tis.marketplace.orders.reading import find_order
from tis.marketplace.policy import require_admin, require_somebody, talk_sides
from tis.marketplace.products.service import find_product, supplier_for_member
from tis.marketplace.tables import ShopMessage, ShopTalk, StoredPicture

_NEWS: dict[Side, str] = {"buyer": "message.asked", "shop": "message.answered"}


def talk_about_product(session: Session, principal: Principal, product_id: int) -> ShopTalk:
    """The caller's, as a buyer; it is made if there is none."""
    require_somebody(principal)
    product = find_product(session, principal, product_id)
    if product.supplier_id in principal.supplier_ids:
        raise Forbidden("This is your own shop.")
    own = ShopTalk.buyer == principal.account if principal.account else ShopTalk.buyer.is_(None)
    found = session.scalar(select(ShopTalk).where(ShopTalk.product_id == product_id, own).limit(1))
    return found or _begin(
        session, ShopTalk(supplier_id=product.supplier_id, buyer=principal.account, product_id=product_id)
    )


def talk_about_order(session: Session, principal: Principal, order_id: str) -> ShopTalk:
    """Buyer and shop of the order share it."""
    order = find_order(session, principal, order_id)
    talk_sides(principal, order.buyer, order.supplier_id)
    found = session.scalar(select(ShopTalk).where(ShopTalk.order_id == order.id))
    return found or _begin(session, ShopTalk(supplier_id=order.supplier_id, buyer=order.buyer, order_id=order.id))


def _begin(session: Session, talk: ShopTalk) -> ShopTalk:
    session.add(talk)
    try:
        session.flush()
    except IntegrityError:
        raise Conflict("This talk begins at this moment. Try again.", code="talk_begins") from None
    return talk


def find_talk(session: Session, principal: Principal, talk_id: int) -> tuple[ShopTalk, Side]:
    """With the side of the caller: who may be either is the buyer where nobody has answered, as in open mode."""
    require_somebody(principal)
    talk = session.get(ShopTalk, talk_id)
    if talk is None:
        raise NotFound(NO_TALK)
    return talk, side_of(principal, talk)


def write_message(
    session: Session,
    principal: Principal,
    talk: ShopTalk,
    side: Side,
    *,
    body: str | None = None,
    picture_hash: str | None = None,
    is_drafted: bool = False,
) -> ShopMessage:
    """One of `body` and `picture_hash`. Who writes has read what was there."""
    require_open_talk(session, talk)
    locked = select(ShopTalk).where(ShopTalk.id == talk.id).with_for_update()
    talk = session.scalars(locked.execution_options(populate_existing=True)).one()
    if talk.num_messages >= MAX_MESSAGES:
        raise Conflict(f"A talk has at most {MAX_MESSAGES} messages.", code="talk_full")
    talk.num_messages += 1
    setattr(talk, f"{side}_read", talk.num_messages)
    talk.waits_for = "shop" if side == "buyer" else "buyer"
    talk.last_at = now()
    message = ShopMessage(
        talk_id=talk.id,
        number=talk.num_messages,
        side=side,
        author=principal.account,
        body=body,
        picture_hash=picture_hash,
        is_drafted=is_drafted and side == "shop",
        flagged_reason=instruction_like(body) if body else None,
        created_at=talk.last_at,
    )
    session.add(message)
    if picture_hash is not None:
        session.get_one(StoredPicture, picture_hash, with_for_update=True).unused_since = None
    session.flush()
    notify(session, [News(_NEWS[side], _data_of(talk, message), talk.buyer, talk.supplier_id)])
    return message


def _data_of(talk: ShopTalk, message: ShopMessage) -> dict[str, str | int]:
    data: dict[str, str | int] = {"talk_id": talk.id, "number": message.number, "supplier_id": talk.supplier_id}
    return data | {name: value for name in ("product_id", "order_id") if (value := getattr(talk, name)) is not None}


def messages_of(session: Session, talk: ShopTalk, before: int | None, limit: int) -> Sequence[ShopMessage]:
    """The newest ones, oldest first."""
    rows = select(ShopMessage).where(ShopMessage.talk_id == talk.id).order_by(ShopMessage.number.desc()).limit(limit)
    if before is not None:
        rows = rows.where(ShopMessage.number < min(before, MAX_MESSAGES + 1))  # what the column can hold
    return session.scalars(rows).all()[::-1]


def mark_read(session: Session, principal: Principal, talk_id: int, number: int) -> tuple[ShopTalk, Side]:
    """Never back, and never beyond what is there."""
    _, side = find_talk(session, principal, talk_id)
    locked = select(ShopTalk).where(ShopTalk.id == talk_id).with_for_update()
    talk = session.scalars(locked.execution_options(populate_existing=True)).one()
    name = f"{side}_read"
    setattr(talk, name, max(getattr(talk, name), min(number, talk.num_messages)))
    session.flush()
    return talk, side


def list_own(session: Session, principal: Principal, before: int | None, limit: int) -> Sequence[ShopTalk]:
    """Of the caller as a buyer, those with the newest messages first."""
    require_somebody(principal)
    own = ShopTalk.buyer == principal.account if principal.account else ShopTalk.buyer.is_(None)
    return _list(session, own, before, limit)


def list_for_shop(
    session: Session, principal: Principal, supplier_id: int, before: int | None, limit: int, *, unanswered: bool
) -> Sequence[ShopTalk]:
    supplier_for_member(session, principal, supplier_id)
    own = ShopTalk.supplier_id == supplier_id
    return _list(session, and_(own, ShopTalk.waits_for == "shop") if unanswered else own, before, limit)


def _list(session: Session, own: ColumnElement[bool], before: int | None, limit: int) -> Sequence[ShopTalk]:
    rows = select(ShopTalk).where(own).order_by(ShopTalk.last_at.desc(), ShopTalk.id.desc()).limit(limit)
    if before is not None:
        last_at = session.scalar(select(ShopTalk.last_at).where(ShopTalk.id == before, own))
        if last_at is None:
            raise NotFound(NO_TALK)
        rows = rows.where(or_(ShopTalk.last_at < last_at, and_(ShopTalk.last_at == last_at, ShopTalk.id < before)))
    return session.scalars(rows).all()


def report_message(
    session: Session, principal: Principal, talk_id: int, number: int, reason: str
) -> tuple[ShopMessage, Side]:
    """Of the other side, by who reads it. Admins decide."""
    talk, side = find_talk(session, principal, talk_id)
    message = _message_for_update(session, talk.id, number)
    if message is None or message.side == side:
        raise NotFound(NO_MESSAGE)
    if message.reported_at is None:
        message.reported_at, message.report_reason = now(), reason
        audit.note(session, principal, "message.report", "talk", talk.id, number=number)
    session.flush()
    return message, side


def list_reported(
    session: Session, principal: Principal, before: tuple[int, int] | None, limit: int
) -> Sequence[ShopMessage]:
    require_admin(principal)
    rows = select(ShopMessage).where(ShopMessage.reported_at.is_not(None))
    if before is not None:
        talk_id, number = before
        same = and_(ShopMessage.talk_id == talk_id, ShopMessage.number < number)
        rows = rows.where(or_(ShopMessage.talk_id < talk_id, same))
    order = ShopMessage.talk_id.desc(), ShopMessage.number.desc()
    return session.scalars(rows.order_by(*order).limit(limit)).all()


def decide_report(session: Session, principal: Principal, talk_id: int, number: int, status: str) -> ShopMessage:
    """Hidden, nobody reads it any more. Kept, the report is settled; it can be decided otherwise later.

    Both sides are told when it goes or comes back, but who wrote what is kept does not learn of the report.
    """
    require_admin(principal)
    message = _message_for_update(session, talk_id, number)
    if message is None or message.reported_at is None:
        raise NotFound(NO_MESSAGE)
    before = None if message.decided_by is None else "hidden" if message.hidden_at else "kept"
    message.hidden_at = now() if status == "hidden" else None
    message.decided_by = principal.account
    if before != status:
        talk = session.get_one(ShopTalk, talk_id)
        reporter: Side = "shop" if message.side == "buyer" else "buyer"
        only = reporter if (before, status) == (None, "kept") else None
        news = News(f"message.{status}", _data_of(talk, message), talk.buyer, talk.supplier_id, only)
        notify(session, [news])
    audit.note(session, principal, "message.decide", "talk", talk_id, number=number, status=status)
    session.flush()
    return message


def _message_for_update(session: Session, talk_id: int, number: int) -> ShopMessage | None:
    if number > MAX_MESSAGES:  # a greater one may be none of the column
        return None
    return session.get(ShopMessage, (talk_id, number), with_for_update=True, populate_existing=True)


def require_shop_side(side: Side) -> None:
    if side != "shop":
        raise Forbidden("Only the shop may do that.")


def side_of(principal: Principal, talk: ShopTalk) -> Side:
    return "buyer" if "buyer" in talk_sides(principal, talk.buyer, talk.supplier_id) else "shop"
