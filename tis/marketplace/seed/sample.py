"""The sample: five suppliers, fifteen products and a shirt in six variants, three users and their reviews. None of them
exists."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sqlalchemy import func, insert, literal, select
from sqlalchemy.orm import Session

from tis.marketplace.columns import now
from tis.marketplace.kit.fields import email_key, key_of
from tis.marketplace.kit.ratings import rating_rank_of, weighted_stars
from tis.marketplace.picture_files.picture_rendering import render_picture
from tis.marketplace.picture_files.picture_storage import PictureStorage
from tis.marketplace.places.gazetteer import gazetteer
from tis.marketplace.products.variant_keys import variant_key
from tis.marketplace.search.product_search import ProductSearch
from tis.marketplace.search.supplier_index import index_new_suppliers
from tis.marketplace.seed.drawings import draw_product
from tis.marketplace.tables import (
    Branch,
    BranchStock,
    CourierFee,
    PriceChange,
    Product,
    ProductGroup,
    ProductPicture,
    Review,
    ShopOrderRules,
    StockMovement,
    StoredPicture,
    Supplier,
    User,
)

_COURIER_FEES = ((5, 10_000), (15, 20_000), (40, 45_000))
_HERE = Path(__file__).parent


def keep_drawings(session: Session, storage: PictureStorage) -> dict[str, str]:
    """Draws what the products of missing suppliers look like; the hash of each picture, by SKU."""
    suppliers = [row for row in _read_sample()["suppliers"] if _is_new(session, Supplier, row)]
    hashes = {}
    rows = [product for row in suppliers for one in (row, *row.get("groups", ())) for product in one["products"]]
    for product in rows:
        rendered = render_picture(draw_product(product["category"], product["sku"], product["attributes"].get("warna")))
        storage.keep(rendered)
        hashes[product["sku"]] = rendered.hash
    return hashes


def insert_sample(session: Session, search: ProductSearch, drawings: Mapping[str, str]) -> str | None:
    """Adds what is missing and says what; None if nothing is. Products that were changed since stay as they are."""
    sample = _read_sample()
    last_id = max_supplier_id(session)
    suppliers = [row for row in sample["suppliers"] if _is_new(session, Supplier, row)]
    branches = {row["email"]: row.pop("branches", []) for row in suppliers}
    groups = {row["email"]: row.pop("groups", []) for row in suppliers}
    users = [_user(row) for row in sample["users"] if _is_new(session, User, row)]
    products = [product for row in suppliers for product in _add_supplier(session, row)]
    for email, rows in groups.items():  # behind all others: documents name these by their ids
        products += _add_groups(session, email, rows)
    session.add_all(users)
    session.flush()
    reviews = _add_reviews(session, sample["reviews"], products)
    if not (suppliers or users):
        return None
    session.flush()
    _add_pictures(session, products, drawings)
    write_history(session, last_id)
    for email, rows in branches.items():
        _add_branches(session, email, rows)
    search.refresh(session, [product.id for product in products])
    index_new_suppliers(session)
    added = {"suppliers": suppliers, "products": products, "users": users, "reviews": reviews}
    return ", ".join(f"{len(rows)} {name}" for name, rows in added.items() if rows)


def _read_sample() -> dict[str, Any]:
    sample: dict[str, Any] = json.loads((_HERE / "sample.json").read_text(encoding="utf-8"))
    return sample


def _add_pictures(session: Session, products: list[Product], drawings: Mapping[str, str]) -> None:
    for product in products:
        if picture := session.get(StoredPicture, drawings.get(product.sku or "")):
            picture.unused_since = None
            shown = {"alt": f"Gambar contoh: {product.name}", "alt_status": "confirmed"}
            session.add(ProductPicture(product_id=product.id, hash=picture.hash, position=0, **shown))


def _is_new(session: Session, table: type[Supplier] | type[User], row: dict[str, Any]) -> bool:
    return session.scalar(select(table.id).where(table.email_key == email_key(row["email"]))) is None


def _add_supplier(session: Session, row: dict[str, Any]) -> list[Product]:
    product_rows = row.pop("products")
    supplier = Supplier(
        **row,
        email_key=email_key(row["email"]),
        city_key=key_of(row["city"]),
        place_code=gazetteer().code_of(row["city"], row.get("province")),
        shows_place=True,
    )
    session.add(supplier)
    session.flush()
    session.add(ShopOrderRules(supplier_id=supplier.id, takes_orders=True, expedition_fee=20_000, tax_rate=1100))
    session.add_all(CourierFee(supplier_id=supplier.id, up_to_km=km, fee=fee) for km, fee in _COURIER_FEES)
    return _add_products(session, [_product(supplier.id, product_row) for product_row in product_rows])


def _add_products(session: Session, products: list[Product]) -> list[Product]:
    for product in products:
        session.add(product)
        session.flush()  # one by one, so that the ids are those that the documentation names
    return products


def _add_groups(session: Session, email: str, rows: list[dict[str, Any]]) -> list[Product]:
    """Each with its variants."""
    supplier_id = session.scalars(select(Supplier.id).where(Supplier.email_key == email_key(email))).one()
    products: list[Product] = []
    for row in rows:
        group = ProductGroup(supplier_id=supplier_id, name=row["name"], name_key=key_of(row["name"]), axes=row["axes"])
        session.add(group)
        session.flush()
        variants = [_product(supplier_id, one) for one in row["products"]]
        for variant in variants:
            variant.group_id, variant.variant_key = group.id, variant_key(group.axes, variant.attributes)
        products += _add_products(session, variants)
    return products


def _add_branches(session: Session, email: str, rows: list[dict[str, Any]]) -> None:
    """With goods from the shop's own address."""
    supplier_id = session.scalars(select(Supplier.id).where(Supplier.email_key == email_key(email))).one()
    for row in rows:
        stock = row.pop("stock")
        branch = Branch(**row, supplier_id=supplier_id, shows_place=True)
        branch.place_code = gazetteer().code_of(row["city"], row["province"])
        session.add(branch)
        session.flush()
        for sku, units in stock.items():
            of_sku = select(Product).where(Product.supplier_id == supplier_id, Product.sku == sku)
            product = session.scalars(of_sku).one()
            session.add(BranchStock(product_id=product.id, branch_id=branch.id, on_hand=units))
            moved = {"product_id": product.id, "kind": "transfer", "on_hand": product.on_hand}
            session.add(StockMovement(**moved, delta=-units))
            session.add(StockMovement(**moved, delta=units, branch_id=branch.id))
    session.flush()


def _product(supplier_id: int, row: dict[str, Any]) -> Product:
    stock, category = row.pop("stock"), row["category"]
    return Product(**row, supplier_id=supplier_id, on_hand=stock, category_key=key_of(category))


def _user(row: dict[str, Any]) -> User:
    place_code = gazetteer().code_of(row.get("city"), row.get("province"))
    return User(**row, email_key=email_key(row["email"]), place_code=place_code)


def _add_reviews(session: Session, rows: list[dict[str, Any]], products: list[Product]) -> list[Review]:
    by_sku = {product.sku: product for product in products}
    reviews = []
    for row in rows:
        product = by_sku.get(row.pop("sku"))
        user_id = session.scalar(select(User.id).where(User.email_key == email_key(row.pop("email"))))
        if product is None or user_id is None:
            continue
        answered_at = now() if "answer" in row else None
        reviews.append(Review(**row, product_id=product.id, user_id=user_id, answered_at=answered_at))
        product.rating_sum += row["rating"]
        product.rating_count += 1
        product.rating_rank = rating_rank_of(product.granted_rating, *weighted_stars(product))
    session.add_all(reviews)
    return reviews


def max_supplier_id(session: Session) -> int:
    return session.scalar(select(func.max(Supplier.id))) or 0


def write_history(session: Session, after_supplier_id: int) -> None:
    """For all products of suppliers with a greater id.

    Selected by supplier, because these suppliers are not committed yet and so have no products of other transactions.
    """
    new = Product.supplier_id > after_supplier_id
    prices = select(Product.id, Product.price, Product.created_at).where(new)
    stocks = select(
        Product.id, Product.supplier_id, Product.on_hand, literal("initial"), Product.created_at, Product.on_hand
    ).where(new, Product.on_hand > 0)
    session.execute(insert(PriceChange).from_select(["product_id", "price", "valid_from"], prices))
    session.execute(
        insert(StockMovement).from_select(["product_id", "supplier_id", "delta", "kind", "at", "on_hand"], stocks)
    )
