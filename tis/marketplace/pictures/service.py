"""Which pictures a product has, in which order, and what they show. Each change locks the product first."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import delete, select, update
from sqlalchemy.orm import Session

from tis.errors import Conflict, NotFound
from tis.marketplace.columns import now
from tis.marketplace.kit import audit
from tis.marketplace.kit.feed_marks import mark_products
from tis.marketplace.kit.picture_links import NO_PICTURE, picture_view
from tis.marketplace.kit.principal import Principal
from tis.marketplace.policy import require_supplier
from tis.marketplace.products.service import find_product, lock_product
from tis.marketplace.tables import Product, ProductPicture, StoredPicture

MAX_PICTURES = 8
_MAX_HASHES_AT_ONCE = 500
CHANGED_MEANWHILE = "The pictures of this product are not these any more: read them again."


@dataclass(frozen=True)
class NewPicture:
    hash: str
    source_digest: str | None = None  # of the URL that a sheet named
    alt: str | None = None


def pictures_for_member(
    session: Session, principal: Principal, product_id: int
) -> list[tuple[ProductPicture, StoredPicture]]:
    """With what a model has proposed, which nobody else sees."""
    require_supplier(principal, find_product(session, principal, product_id).supplier_id)
    return _rows(session, product_id)


def lock_own_product(session: Session, principal: Principal, product_id: int) -> Product:
    product = lock_product(session, principal, product_id)
    if product.deleted_at is not None:
        raise NotFound("Product not found")
    return product


def add_picture(
    session: Session, principal: Principal, product_id: int, new: NewPicture
) -> tuple[ProductPicture, StoredPicture]:
    """Behind the others. The same picture again changes nothing."""
    product = lock_own_product(session, principal, product_id)
    rows = _rows(session, product.id)
    for link, picture in rows:
        if link.hash == new.hash:
            return link, picture
    if len(rows) >= MAX_PICTURES:
        raise Conflict(f"A product has at most {MAX_PICTURES} pictures: delete one first.", code="too_many_pictures")
    picture = _use(session, new.hash)
    link = _link(product.id, len(rows), new)
    session.add(link)
    session.flush()
    mark_products(session, [product.id])
    audit.note(session, principal, "picture.add", "product", product.id, picture=[None, new.hash])
    return link, picture


def replace_pictures(session: Session, principal: Principal, product: Product, pictures: Sequence[NewPicture]) -> None:
    """Of a locked product. Those that stay keep their texts."""
    wanted = list({one.hash: one for one in pictures}.values())[:MAX_PICTURES]
    before = {link.hash: link for link, _ in _rows(session, product.id)}
    gone = before.keys() - {one.hash for one in wanted}
    for picture_id in sorted({one.hash for one in wanted} - before.keys()):
        _use(session, picture_id)
    for position, one in enumerate(wanted):
        if link := before.get(one.hash):
            link.position, link.source_digest = position, one.source_digest or link.source_digest
        else:
            session.add(_link(product.id, position, one))
    for picture_id in gone:
        session.delete(before[picture_id])
    session.flush()
    _release(session, gone)
    changes = [sorted(before), [one.hash for one in wanted]]
    mark_products(session, [product.id])
    audit.note(session, principal, "picture.replace", "product", product.id, pictures=changes)


def remove_picture(session: Session, principal: Principal, product_id: int, picture_id: str) -> None:
    product = lock_own_product(session, principal, product_id)
    rows = _rows(session, product.id)
    found = next((link for link, _ in rows if link.hash == picture_id), None)
    if found is None:
        raise NotFound(NO_PICTURE)
    session.delete(found)
    for position, link in enumerate(link for link, _ in rows if link is not found):
        link.position = position
    session.flush()
    _release(session, [picture_id])
    mark_products(session, [product.id])
    audit.note(session, principal, "picture.delete", "product", product.id, picture=[picture_id, None])


def order_pictures(session: Session, principal: Principal, product_id: int, order: Sequence[str]) -> None:
    product = lock_own_product(session, principal, product_id)
    links = {link.hash: link for link, _ in _rows(session, product.id)}
    if len(order) != len(links) or set(order) != links.keys():
        raise Conflict(CHANGED_MEANWHILE)
    before = list(links)
    for position, picture_id in enumerate(order):
        links[picture_id].position = position
    if before != list(order):
        mark_products(session, [product.id])
        audit.note(session, principal, "picture.order", "product", product.id, order=[before, list(order)])


def describe_picture(
    session: Session, principal: Principal, product_id: int, picture_id: str, alt: str | None, *, keeps_text: bool
) -> None:
    """The seller confirms a text: `alt`, or with `keeps_text` the one that a model has proposed. Without: there is
    none."""
    product = lock_own_product(session, principal, product_id)
    link = session.get(ProductPicture, (product.id, picture_id))
    if link is None:
        raise NotFound(NO_PICTURE)
    text = link.alt if keeps_text else alt
    if keeps_text and text is None:
        raise Conflict("Nothing is proposed for this picture: send `alt`.")
    before = [link.alt, link.alt_status]
    # An empty text is confirmed, too: no model is asked again.
    link.alt, link.alt_status = text, "confirmed"
    mark_products(session, [product.id])
    audit.note(session, principal, "picture.describe", "product", product.id, alt=[*before, text])


def exported_pictures(session: Session, supplier_id: int, limit: int) -> list[dict[str, Any]]:
    """Of all products of a supplier, deleted ones, too."""
    rows = session.execute(
        select(ProductPicture, StoredPicture)
        .join(Product, Product.id == ProductPicture.product_id)
        .join(StoredPicture, StoredPicture.hash == ProductPicture.hash)
        .where(Product.supplier_id == supplier_id)
        .order_by(Product.id, ProductPicture.position)
        .limit(limit)
    )
    return [
        {
            "product_id": link.product_id,
            "alt_status": link.alt_status,
            "created_at": link.created_at,
            **picture_view(link.hash, picture.width, picture.height, link.alt).model_dump(),
        }
        for link, picture in rows
    ]


def erase_pictures(session: Session, supplier_id: int) -> None:
    """Of all products of a supplier that is erased, which the caller has locked."""
    of_supplier = select(Product.id).where(Product.supplier_id == supplier_id)
    hashes = set(session.scalars(select(ProductPicture.hash).where(ProductPicture.product_id.in_(of_supplier))))
    session.execute(delete(ProductPicture).where(ProductPicture.product_id.in_(of_supplier)))
    _release(session, hashes)


def _rows(session: Session, product_id: int) -> list[tuple[ProductPicture, StoredPicture]]:
    rows = session.execute(
        select(ProductPicture, StoredPicture)
        .join(StoredPicture, StoredPicture.hash == ProductPicture.hash)
        .where(ProductPicture.product_id == product_id)
        .order_by(ProductPicture.position)
        .execution_options(populate_existing=True)
    )
    return [(link, picture) for link, picture in rows]


def _link(product_id: int, position: int, new: NewPicture) -> ProductPicture:
    return ProductPicture(
        product_id=product_id,
        hash=new.hash,
        position=position,
        source_digest=new.source_digest,
        alt=new.alt,
        alt_status="confirmed" if new.alt else None,
    )


def _lock_picture(session: Session, picture_id: str) -> StoredPicture | None:
    """After the lock of its product, and several in the order of their hashes."""
    row = select(StoredPicture).where(StoredPicture.hash == picture_id).with_for_update()
    return session.scalar(row.execution_options(populate_existing=True))


def _use(session: Session, picture_id: str) -> StoredPicture:
    picture = _lock_picture(session, picture_id)
    if picture is None:  # nobody gave it to a product for the time of grace
        raise Conflict("This picture was removed meanwhile. Send it again.", retry_after=1)
    picture.unused_since = None
    return picture


def _release(session: Session, picture_ids: Collection[str]) -> None:
    """After their links are deleted. Of those that another product has, `PictureStorage` finds that out."""
    ordered = sorted(picture_ids)
    for start in range(0, len(ordered), _MAX_HASHES_AT_ONCE):
        some = StoredPicture.hash.in_(ordered[start : start + _MAX_HASHES_AT_ONCE])
        session.execute(select(StoredPicture.hash).where(some).order_by(StoredPicture.hash).with_for_update())
        session.execute(update(StoredPicture).where(some).values(unused_since=now()))
