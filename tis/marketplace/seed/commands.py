"""The steps of `tis seed`. Each returns the line that the command prints."""

import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from pydantic import SecretStr, TypeAdapter
from sqlalchemy import select, text
from sqlalchemy.orm import Session

from tis.database.database import Database
from tis.marketplace.auth.accounts import user_account
from tis.marketplace.auth.links import delete_links
from tis.marketplace.auth.passwords import hashed
from tis.marketplace.auth.tokens import end_all_chains
from tis.marketplace.kit import audit
from tis.marketplace.kit.feed_marks import store_marks
from tis.marketplace.kit.fields import Email, email_key
from tis.marketplace.kit.principal import Principal
from tis.marketplace.market import MIGRATIONS, default_pictures_url, migrate
from tis.marketplace.picture_files.picture_storage import PictureStorage, open_picture_store
from tis.marketplace.search.backends import choose_backend
from tis.marketplace.search.product_search import ProductSearch
from tis.marketplace.seed.large_catalogue import count_catalogue, insert_catalogue
from tis.marketplace.seed.made_up_market import SHOPS_AT, insert_market
from tis.marketplace.seed.sample import insert_sample, keep_drawings
from tis.marketplace.tables import TaxonomyVersion, User


class SeedingRefused(Exception):
    """The message is printed as it is. Nothing was changed."""


def bring_up_to_date(database: Database) -> str:
    was_migrated = database.is_migrated(MIGRATIONS)
    migrate(database)
    if was_migrated:
        return "The tables are up to date already."
    return "The tables are up to date now."


def reset(database: Database, *, sure: bool, pictures_url: str | None = None) -> str:
    """Removes everything, not only the sample: other rows refer to its suppliers and users."""
    if database.dialect != "sqlite" and not sure:
        raise SeedingRefused(f"--reset would empty {database.name}, which is no file of your own: add --yes")
    migrate(database)
    with _storage(database, pictures_url) as storage, database.reading() as session:
        storage.remove_all(session)
    database.migrate(MIGRATIONS, "base")
    migrate(database)
    return f"Removed everything that was in the marketplace of {database.name}."


def add_sample(database: Database, pictures_url: str | None = None) -> str:
    with _storage(database, pictures_url) as storage, database.reading() as session:
        drawings = keep_drawings(session, storage)
    with database.writing() as session:
        _lock_for_seeding(session)
        added = insert_sample(session, ProductSearch(choose_backend(database)), drawings)
        store_marks(session)
    return f"Added {added}." if added else "The sample is there already; nothing was changed."


def add_large_catalogue(database: Database, products: int) -> str:
    started_at = time.monotonic()
    with database.writing() as session:
        _lock_for_seeding(session)
        num_existing = count_catalogue(session)
        if not num_existing:
            insert_catalogue(session, ProductSearch(choose_backend(database)), products)
            store_marks(session)
    if num_existing == products:
        return f"The large catalogue of {num_existing:,} products is there already; nothing was changed."
    if num_existing:
        raise SeedingRefused(
            f"a large catalogue of {num_existing:,} products is there already: --reset removes everything"
        )
    return f"Added a large catalogue of {products:,} products in {time.monotonic() - started_at:.0f} s."


def add_market(database: Database, products: int, seed: int) -> str:
    started_at = time.monotonic()
    with database.writing() as session:
        _lock_for_seeding(session)
        num_existing = count_catalogue(session, SHOPS_AT)
        if not num_existing:
            insert_market(session, ProductSearch(choose_backend(database)), products, seed)
            store_marks(session)
    if num_existing == products:
        return f"The made-up market of {num_existing:,} products is there already; nothing was changed."
    if num_existing:
        raise SeedingRefused(
            f"a made-up market of {num_existing:,} products is there already: --reset removes everything"
        )
    return f"Added a made-up market of {products:,} products in {time.monotonic() - started_at:.0f} s."


def parse_email(value: str) -> str:
    email: str = TypeAdapter(Email).validate_python(value)
    return email


def appoint_admin(database: Database, email: str) -> str:
    """Makes the first admin, which no route can do.

    E-mails need no confirmation, so an account that exists loses its password, sessions and links.
    """
    password = SecretStr(secrets.token_urlsafe(15))
    password_hash = hashed(password)  # slow, so before the transaction, which blocks other writers
    with database.writing() as session:
        _lock_for_seeding(session)
        existing = select(User).where(User.email_key == email_key(email), User.deleted_at.is_(None))
        user = session.scalar(existing.with_for_update(key_share=True))
        if user is not None and user.role == "admin" and user.password_hash is not None:
            return f"{email} is an admin already; nothing was changed."
        registered_at = user.created_at if user else None
        if user is None:
            user = User(name=email.partition("@")[0], email=email, email_key=email_key(email))
            session.add(user)
        user.role, user.password_hash = "admin", password_hash
        session.flush()
        end_all_chains(session, user_account(user.id))
        delete_links(session, user_account(user.id))
        audit.note(session, Principal(is_admin=True), "grant", "user", user.id, role="admin", password=True)
    message = f"{email} is an admin now, with the one-time password {password.get_secret_value()} (change it)."
    if registered_at:
        message += f" The account existed since {registered_at:%Y-%m-%d %H:%M} UTC: its password and sessions ended."
    return message


@contextmanager
def _storage(database: Database, pictures_url: str | None) -> Iterator[PictureStorage]:
    store = open_picture_store(pictures_url or default_pictures_url(database))
    try:
        yield PictureStorage(database.writing, store, timedelta(days=1))
    finally:
        store.close()


def _lock_for_seeding(session: Session) -> None:
    """Two seedings at once would see each other's e-mails and ids at the wrong time. SQLite has one writer."""
    if session.get_bind().dialect.name == "postgresql":
        session.execute(text("SET LOCAL statement_timeout = 0"))  # a million rows take longer than a request may
        session.execute(text("LOCK TABLE suppliers, users IN SHARE ROW EXCLUSIVE MODE"))
    else:
        session.execute(select(TaxonomyVersion).with_for_update())  # a row that every database has
