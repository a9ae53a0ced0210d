"""The search index agrees with the tables after any changes, also concurrent ones."""

import logging
import random
import threading
from collections import Counter
from datetime import UTC, datetime

import pytest
from sqlalchemy import select, text
from sqlalchemy.orm import Session

from tests.marketplace.search.conftest import BANDUNG, JAKARTA, Catalogue, lock_supplier
from tis.database.database import Database
from tis.database.errors import DatabaseUnavailable
from tis.marketplace.columns import now
from tis.marketplace.search.backends import choose_backend
from tis.marketplace.search.backends.sqlite_fts import SqliteFtsIndex
from tis.marketplace.search.backends.text_index import TextIndex
from tis.marketplace.search.geo_filter import cell_token_at
from tis.marketplace.search.index_entry import head_word, indexed_words
from tis.marketplace.search.index_tokens import head_token, shop_token
from tis.marketplace.search.supplier_index import words_of_shop
from tis.marketplace.tables import Lexeme, Product, ProductFacts, Supplier

WORDS = ["teko", "cangkir", "merah", "biru", "besar", "café", "listrik", "16GB"]


def indexable_products(session: Session) -> dict[int, tuple[object, ...]]:
    rows = select(Product, Supplier).join(Supplier, Supplier.id == Product.supplier_id)
    return {
        product.id: (
            int(product.is_available and product.on_hand > product.reserved) - (0 if supplier.is_active else 2),
            product.price,
            product.category_key,
            supplier.city_key,
            supplier.public_latitude,
            round(product.created_at.timestamp() * 1_000_000),
        )
        for product, supplier in session.execute(rows.where(Product.deleted_at.is_(None)))
    }


def indexed_products(session: Session) -> dict[int, tuple[object, ...]]:
    return {
        row.product_id: (row.sellable, row.price, row.category_key, row.city_key, row.latitude, row.created_us)
        for row in session.scalars(select(ProductFacts))
    }


def words_of_indexable_products(session: Session) -> Counter[str]:
    counts: Counter[str] = Counter()
    for product in session.scalars(select(Product).where(Product.id.in_(select(ProductFacts.product_id)))):
        parts = (product.name, product.description, product.brand, product.tags, product.category)
        head = head_word(product.name, product.brand)
        words = set(" ".join(indexed_words(part) for part in parts).split())
        counts.update(words | ({head_token(head)} if head else set()))
    return counts


def cells_of_words(session: Session) -> dict[int, str]:
    is_postgres = session.get_bind().dialect.name == "postgresql"
    column = "array_to_string(tsvector_to_array(words), ' ')" if is_postgres else "tokens"
    rows = session.execute(text(f"SELECT product_id, {column} FROM product_words"))
    return {product_id: " ".join(one for one in tokens.split() if one.startswith("¤")) for product_id, tokens in rows}


def assert_index_agrees(catalogue: Catalogue) -> None:
    with catalogue.market.writing() as session:  # a reading transaction ends after five seconds on SQLite
        assert indexed_products(session) == indexable_products(session)
        assert {row.term: row.count for row in session.scalars(select(Lexeme))} == words_of_indexable_products(session)
        indexed = session.scalars(text("SELECT product_id FROM product_words ORDER BY product_id")).all()
        assert indexed == sorted(indexed_products(session))
        assert cells_of_words(session) == {
            row.product_id: cell_token_at(row.latitude, row.longitude) for row in session.scalars(select(ProductFacts))
        }
        of_shops = catalogue.search.index.shop_tokens(session, indexed)
        assert of_shops == {
            facts.product_id: {
                cell_token_at(facts.latitude, facts.longitude),
                *map(shop_token, words_of_shop(shop.business_name, shop.city, shop.province)),
            }
            for facts, shop in session.execute(
                select(ProductFacts, Supplier).join(Supplier, Supplier.id == ProductFacts.supplier_id)
            ).all()
        }


@pytest.mark.parametrize("seed", range(3))
def test_index_and_tables_agree_after_random_changes(catalogue: Catalogue, seed: int) -> None:
    chance = random.Random(seed)
    shops = [catalogue.shop(place=JAKARTA), catalogue.shop("Bandung", BANDUNG)]
    products: list[int] = []

    def some_words() -> str:
        return " ".join(chance.choices(WORDS, k=3))

    for _ in range(60):
        act = chance.randrange(7)
        if act < 2 or not products:
            products.append(catalogue.put(some_words(), shop=chance.choice(shops), tags=some_words(), brand="Maspion"))
        elif act == 2:
            catalogue.change(chance.choice(products), name=some_words(), description=some_words(), tags=None)
        elif act == 3:
            catalogue.change(chance.choice(products), price=chance.randrange(1, 9), on_hand=chance.randrange(3))
        elif act == 4:
            catalogue.change(chance.choice(products), deleted_at=chance.choice([None, now()]))
        elif act == 5:
            catalogue.change_shop(chance.choice(shops), status=chance.choice(["active", "suspended"]))
        else:
            values = {"city": some_words(), "business_name": some_words()}
            catalogue.change_shop(
                chance.choice(shops), latitude=chance.uniform(-9, -5), city_key=some_words(), **values
            )
    assert_index_agrees(catalogue)
    if isinstance(choose_backend(catalogue.market.database), SqliteFtsIndex):
        with catalogue.market.writing() as session:
            session.execute(text("INSERT INTO product_fts (product_fts, rank) VALUES ('integrity-check', 1)"))


def test_index_and_tables_agree_after_concurrent_changes_of_suppliers_and_products(catalogue: Catalogue) -> None:
    shops = [catalogue.shop(), catalogue.shop()]
    products = [catalogue.put("teko merah", shop=shop) for shop in shops for _ in range(3)]
    failed: list[BaseException] = []

    def work(seed: int) -> None:
        chance = random.Random(seed)
        for _ in range(12):
            try:
                if seed == 0:
                    catalogue.change_shop(chance.choice(shops), status=chance.choice(["active", "suspended"]))
                elif seed == 4:
                    catalogue.change_shop(chance.choice(shops), business_name=chance.choice(WORDS))
                elif seed == 1:
                    catalogue.put("cangkir biru", shop=chance.choice(shops))
                else:
                    catalogue.change(chance.choice(products), name=chance.choice(WORDS), price=chance.randrange(1, 99))
            except DatabaseUnavailable:
                pass  # a deadlock: one of the two must retry
            except BaseException as error:
                failed.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert_index_agrees(catalogue)


def test_a_product_added_while_its_supplier_is_suspended_is_not_found(catalogue: Catalogue) -> None:
    shop = catalogue.shop()
    adding = threading.Thread(target=catalogue.put, args=("teko merah",), kwargs={"shop": shop})
    with catalogue.market.writing() as session:
        lock_supplier(session, shop).status = "suspended"
        catalogue.search.refresh_supplier(session, shop)
        adding.start()
        adding.join(timeout=0.5)  # it must wait for this transaction: without the lock it would be done by now
    adding.join()
    assert_index_agrees(catalogue)
    assert catalogue.names("teko") == []


def test_a_change_that_is_rolled_back_is_not_found(catalogue: Catalogue) -> None:
    product_id = catalogue.put("Teko merah")
    with pytest.raises(ZeroDivisionError), catalogue.market.writing() as session:
        session.get_one(Product, product_id).name = "Cangkir"
        catalogue.search.refresh(session, [product_id])
        raise ZeroDivisionError
    assert catalogue.names("teko") == ["Teko merah"] and catalogue.names("cangkir") == []
    assert_index_agrees(catalogue)


@pytest.mark.long
def test_thousands_of_products_and_unknown_ids_are_indexed_in_one_call(catalogue: Catalogue) -> None:
    shop = catalogue.shop()
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    with catalogue.market.writing() as session:
        rows = [
            Product(
                supplier_id=shop,
                name=f"Teko {n}",
                category="x",
                category_key="x",
                price=1,
                on_hand=1,
                created_at=moment,
            )
            for n in range(2100)
        ]
        session.add_all(rows)
        session.flush()
        catalogue.search.refresh(session, [*(row.id for row in rows), rows[0].id, 10**12])
    assert_index_agrees(catalogue)
    assert catalogue.find("teko").total_is_exact is False and catalogue.names("teko 2099") == ["Teko 2099"]


def test_a_database_without_full_text_logs_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert type(choose_backend(Database("sqlite://"), has_fts5=lambda: False)) is TextIndex
    assert "no full-text index" in caplog.text
