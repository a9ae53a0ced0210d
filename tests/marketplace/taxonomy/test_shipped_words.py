"""Categories and synonyms that come with the server stay in step with it, and an admin's stay as they are."""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from sqlalchemy import delete

from tests.marketplace.conftest import SECRET
from tis.database.database import Database
from tis.marketplace.market import MIGRATIONS, Market, MarketRules, migrate
from tis.marketplace.tables import Category, ShippedWord, Synonym
from tis.marketplace.taxonomy import shipped_words
from tis.marketplace.taxonomy.schemas import CategoryForm, SynonymForm

SLUGS = (
    "laptop smartphone tablet monitor keyboard mouse printer headset speaker tv refrigerator washing-machine"
    " air-conditioner fan rice-cooker power-bank charger phone-case storage furniture bag shoes clothing rice coffee"
    " cement tools motorcycle-parts accessories"
).split()
BELOW_ACCESSORIES = ["charger", "phone-case", "power-bank"]


def test_all_categories_of_the_contract_have_names_in_both_languages(stranger: httpx2.Client) -> None:
    found: dict[str, Any] = {one["slug"]: one for one in stranger.get("/api/categories").json()}
    assert set(SLUGS) <= found.keys() and len(SLUGS) == 29
    assert all(found[slug]["name_id"] and found[slug]["name_en"] for slug in SLUGS)
    assert [slug for slug in sorted(SLUGS) if found[slug]["parent"]] == BELOW_ACCESSORIES


def test_the_files_have_what_the_tables_take() -> None:
    """And parents before their children, as the rows are inserted in this order."""
    folder = Path(shipped_words.__file__).parent
    texts = [(folder / name).read_text(encoding="utf-8") for name in ("categories.csv", "synonyms.csv")]
    categories, synonyms = (list(csv.DictReader(text.splitlines())) for text in texts)
    slugs = [row["slug"] for row in categories]
    for position, row in enumerate(categories):
        CategoryForm(**{name: value or None for name, value in row.items()})
        assert row["parent"] in ("", *slugs[:position])
    for row in synonyms:
        form = SynonymForm(**{**row, "category": row["category"] or None, "is_broader": row["is_broader"] == "1"})
        assert form.term == row["term"] and row["category"] in ("", *slugs) and row["is_broader"] in ("", "1")
    assert len(set(slugs)) == len(slugs) and len({row["term"] for row in synonyms}) == len(synonyms) > 1200


def synonym(term: str, means: str, category: str | None = None) -> dict[str, Any]:
    return {"term": term, "means": means, "category": category, "is_broader": False}


CATEGORY = {"slug": "laptop", "parent": None, "name_id": "Laptop", "name_en": "Laptop"}
BEFORE = [synonym("leptop", "laptop", "laptop"), synonym("komp", "computer"), synonym("tas", "bag")]
BEFORE += [synonym("hape", "phone"), synonym("old", "new")]


@pytest.fixture
def ship(monkeypatch: pytest.MonkeyPatch) -> Any:
    def ship(synonyms: list[dict[str, Any]], *categories: dict[str, Any]) -> None:
        rows = {"category": {one["slug"]: one for one in categories}, "synonym": {one["term"]: one for one in synonyms}}
        monkeypatch.setattr(shipped_words, "_rows", lambda kind: rows[kind])

    return ship


@pytest.fixture
def database(strict_database_url: str, ship: Any) -> Iterator[Database]:
    ship(BEFORE, CATEGORY)
    database = Database(strict_database_url)
    database.migrate(MIGRATIONS)
    with database.writing() as session:
        for table in (ShippedWord, Synonym, Category):
            session.execute(delete(table))
    migrate(database)
    yield database
    database.close()


def means(database: Database) -> dict[str, str]:
    with database.reading() as session:
        return {one.term: one.means for one in session.query(Synonym)}


def test_a_newer_version_changes_what_no_admin_has_changed(database: Database, ship: Any) -> None:
    with database.writing() as session:
        session.get_one(Synonym, "komp").means = "pc"
        session.delete(session.get_one(Synonym, "tas"))
        session.add(Synonym(**synonym("blek", "tin")))
    # What an admin wrote stays, even if a version has had the same words in between.
    ship([*BEFORE[:1], synonym("komp", "pc"), *BEFORE[2:]], CATEGORY)
    migrate(database)
    newer = [synonym("leptop", "laptop,notebook", "laptop"), synonym("komp", "desktop"), synonym("tas", "purse")]
    ship([*newer, synonym("hape", "phone"), synonym("blek", "can"), synonym("baru", "new")], CATEGORY)
    migrate(database)
    assert means(database) == {
        "leptop": "laptop,notebook",  # ours, changed
        "komp": "pc",  # an admin changed it
        "hape": "phone",
        "blek": "tin",  # an admin added it before
        "baru": "new",
    }  # `tas` was deleted by an admin, `old` by the newer version


def test_a_deleted_row_does_not_come_back(database: Database, ship: Any) -> None:
    with database.writing() as session:
        session.delete(session.get_one(Synonym, "hape"))
        session.delete(session.get_one(Category, "laptop"))
    ship([*BEFORE, synonym("notebook", "laptop", "laptop")], {**CATEGORY, "name_id": "Komputer jinjing"})
    migrate(database)
    assert "hape" not in means(database)
    with database.reading() as session:
        assert session.get(Category, "laptop") is None
        assert session.get_one(Synonym, "notebook").category is None
    ship([synonym("notebook", "laptop,netbook", "laptop")], CATEGORY)
    migrate(database)
    assert means(database) == {"notebook": "laptop,netbook"}


def test_a_start_without_news_writes_nothing(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(session: object) -> None:
        raise AssertionError

    monkeypatch.setattr(shipped_words, "_load", refuse)
    migrate(database)


def test_searches_learn_of_new_words(database: Database, ship: Any) -> None:
    market = Market(database, MarketRules(jwt_secret=SECRET))

    def known() -> bool:
        with market.reading() as session:
            return ("blek",) in market.search.vocabulary(session).synonyms

    assert not known()
    ship([*BEFORE, synonym("blek", "can")], CATEGORY)
    migrate(database)
    assert known()
    market.close()
