"""The categories that every database begins with, and what an upgrade leaves alone."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from sqlalchemy import insert, select, update

from tis.database.database import Database
from tis.marketplace.market import MIGRATIONS
from tis.marketplace.tables import AuditEntry, Category

# Of the contract of query understanding.
SLUGS = (
    "laptop smartphone tablet monitor keyboard mouse printer headset speaker tv refrigerator washing-machine"
    " air-conditioner fan rice-cooker power-bank charger phone-case storage furniture bag shoes clothing rice coffee"
    " cement tools motorcycle-parts accessories"
).split()
BELOW_ACCESSORIES = ["charger", "phone-case", "power-bank"]


def parents(database: Database) -> dict[str, str | None]:
    with database.reading() as session:
        return {one.slug: one.parent for one in session.scalars(select(Category))}


def test_all_categories_of_the_contract_have_names_in_both_languages(stranger: httpx2.Client) -> None:
    found: dict[str, Any] = {one["slug"]: one for one in stranger.get("/api/categories").json()}
    assert set(SLUGS) <= found.keys() and len(SLUGS) == 29
    assert all(found[slug]["name_id"] and found[slug]["name_en"] for slug in SLUGS)
    assert [slug for slug in sorted(SLUGS) if found[slug]["parent"]] == BELOW_ACCESSORIES


@pytest.fixture
def upgraded(tmp_path: Path) -> Iterator[Database]:
    """As the version before left it."""
    database = Database(f"sqlite:///{tmp_path}/market.db")
    database.migrate(MIGRATIONS, "0095")
    yield database
    database.close()


def test_an_upgrade_gives_parents_to_categories_that_no_admin_has_changed(upgraded: Database) -> None:
    assert not any(parents(upgraded).values())
    with upgraded.writing() as session:
        session.execute(insert(Category).values(slug="cables", name_id="Kabel", name_en="Cables"))
        session.execute(update(Category).where(Category.slug == "charger").values(parent="cables"))
        note = {"actor": "user:1", "action": "change", "entity": "category", "entity_id": "phone-case", "changes": {}}
        session.execute(insert(AuditEntry).values(**note))
    upgraded.migrate(MIGRATIONS)
    of_slug = parents(upgraded)
    assert (of_slug["charger"], of_slug["phone-case"], of_slug["power-bank"]) == ("cables", None, "accessories")


def test_an_upgrade_makes_no_ring_and_brings_nothing_back(upgraded: Database) -> None:
    with upgraded.writing() as session:
        session.execute(update(Category).where(Category.slug == "accessories").values(parent="charger"))
        session.delete(session.get_one(Category, "cement"))
    upgraded.migrate(MIGRATIONS)
    of_slug = parents(upgraded)
    assert (of_slug["accessories"], of_slug["charger"]) == ("charger", None) and "cement" not in of_slug
