"""Places by their names: what people type into a field, and what they write in a search."""

import csv
import runpy
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import pytest

from tests.serving import REPOSITORY
from tis.marketplace.places.gazetteer import gazetteer
from tis.marketplace.places.place_names import read_table

FOLDER = REPOSITORY / "tis" / "marketplace" / "places"
# Each is enough to name a place, as a query holds it.
CERTAIN = [
    ("laptop di bandung", "bandung", "3273"),
    ("laptop jakarta selatan murah", "jakarta selatan", "3174"),
    ("kulkas jaksel", "jaksel", "3174"),
    ("rice cooker in South Jakarta", "South Jakarta", "3174"),
    ("sewa printer Kab. Bogor", "Kab. Bogor", "3201"),
    ("toko laptop provinsi jawa tengah", "provinsi jawa tengah", "33"),
    ("sepatu near East Java", "East Java", "35"),
    ("palu di palu", "palu", "7271"),
    ("batu bata kota batu", "kota batu", "3579"),
    ("tas kulit malang jawa timur", "malang jawa timur", "3573"),
    ("beras banjar kalimantan selatan", "banjar kalimantan selatan", "6303"),
    ("hp murah ke ujung pandang", "ujung pandang", "7371"),
    ("kipas angin kep. riau", "kep. riau", "21"),
    ("kopi toraja di makassar", "makassar", "7371"),
    ("semen gresik di gresik", "gresik", "3525"),
]
NOT_PLACES = [
    "batik solo motif parang",
    "semen padang 50 kg",
    "bakpia jogja",
    "arabika toraja",
    "laptop di bawah 5 juta",
    "antara 3 dan 5 juta",
    "rak di kamar mandi",
    "lampu di dapur",
    "laptop & tas",
    "",
    "kota",
    "di",
]


@pytest.mark.parametrize(
    ("name", "codes"),
    [
        ("Bandung", "3273"),
        ("Kota  BANDUNG", "3273"),
        ("Kab. Bandung", "3204"),
        ("Kabupaten Bandung", "3204"),
        ("kab.bandung", "3204"),
        ("Bandung Barat", "3217"),
        ("Gresik", "3525"),
        ("Kota Gresik", "3525"),
        ("kota baru", "6302"),
        ("Kota Batu", "3579"),
        ("Bau-Bau", "7472"),
        ("tanjungpinang", "2172"),
        ("Kota Administrasi Jakarta Barat", "3173"),
        ("Jakarta", "3101 3171 3172 3173 3174 3175"),
        ("prov. DKI Jakarta", "3101 3171 3172 3173 3174 3175"),
        ("Daerah Istimewa Yogyakarta", "3401 3402 3403 3404 3471"),
        ("jogja", "3471"),
        ("Jambi", "1571"),
        ("BSD", "3674"),
        ("Bekasi City", "3275"),
        ("Jabodetabek", "3101 3171 3172 3173 3174 3175 3201 3216 3271 3275 3276 3603 3671 3674"),
        ("Atlantis", ""),
        ("kota", ""),
        ("%", ""),
        ("Ja%karta", ""),
        ("", ""),
    ],
)
def test_a_name_is_found_as_people_write_it(name: str, codes: str) -> None:
    assert sorted(place.code for place in gazetteer().find(name)) == codes.split()


def test_a_province_is_all_its_cities_and_regencies() -> None:
    found = gazetteer().find("jabar")
    assert len(found) == 27 and {place.province_code for place in found} == {"32"}
    assert len(gazetteer().find("Provinsi Jambi")) == 11
    assert all(place.kind != "province" for place in found)


@pytest.mark.parametrize(
    ("city", "province", "code"),
    [
        ("Bandung", "Jawa Barat", "3273"),
        ("Kab. Bandung", "West Java", "3204"),
        ("Bandung", None, "3273"),
        ("Jakarta", "DKI Jakarta", "31"),
        ("Banjar", None, None),
        ("Banjar", "Kalsel", "6303"),
        ("Bandung", "Bali", None),
        ("Surabaya", "unknown", "3578"),
        ("Jabodetabek", None, None),
        ("Singapore", None, None),
        ("Sleman", "Yogyakarta", "3404"),
        (None, "Yogyakarta", "34"),
        (None, "Bali", "51"),
        (None, "Jawa", None),
        (None, None, None),
    ],
)
def test_the_code_of_an_account_is_that_of_the_only_place_it_can_mean(
    city: str | None, province: str | None, code: str | None
) -> None:
    assert gazetteer().code_of(city, province) == code


@pytest.mark.parametrize(("query", "name", "code"), CERTAIN, ids=[query for query, *_ in CERTAIN])
def test_a_search_names_a_place(query: str, name: str, code: str) -> None:
    words = query.split()
    named = [one for one in gazetteer().named_in(words) if one.is_certain]
    found = [(" ".join(words[one.start : one.end]), *(place.code for place in one.places)) for one in named]
    assert found == [(name, code)]


@pytest.mark.parametrize("query", NOT_PLACES)
def test_an_origin_and_other_words_are_no_place(query: str) -> None:
    assert gazetteer().named_in(query.split()) == []


@pytest.mark.parametrize("query", ["palu", "palu karet", "keran kuningan", "batu akik", "gula lombok malang"])
def test_a_name_with_another_meaning_is_not_certain(query: str) -> None:
    named = gazetteer().named_in(query.split())
    assert named and not any(one.is_certain for one in named)


def test_a_list_of_places_is_certain_if_its_first_is() -> None:
    named = gazetteer().named_in("hp di solo, malang atau batu".split())
    assert [(one.places[0].code, one.is_certain) for one in named] == [("3372", True), ("3573", True), ("3579", True)]
    assert [one.is_certain for one in gazetteer().named_in("hp bandung & batu".split())] == [True, True]
    assert [one.is_certain for one in gazetteer().named_in("hp bandung , batu".split())] == [True, True]
    assert [one.is_certain for one in gazetteer().named_in("di bandung palu karet".split())] == [True, False]


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("hp di bandng", "3273"),
        ("laptop ke surabya", "3578"),
        ("beli tv di jakrta seltan", "3174"),
        ("kab. bandng", "3204"),
        ("di jakart selatan", "3174"),
        ("di musi rwas utara", "1613"),
        ("di laser", None),
        ("di pedang", None),
        ("di bekas", None),
        ("hp bandng", None),
        ("rak di kamar", None),
        ("hp di bekasi hp", None),
        ("di kasir", None),
    ],
)
def test_a_slip_is_read_only_where_a_place_is_expected(query: str, code: str | None) -> None:
    corrected = [one.places[0].code for one in gazetteer().named_in(query.split()) if one.is_corrected]
    assert corrected == ([code] if code else [])


def test_a_word_of_the_catalogue_is_no_misspelt_place() -> None:
    assert gazetteer().named_in(["di", "binjal"])[0].places[0].name == "Binjai"
    assert gazetteer().named_in(["di", "binjal"], known_words={"binjal"}) == []


def test_a_name_says_which_kind_of_place_it_is() -> None:
    [bandung], [bogor] = gazetteer().find("Kota Bandung"), gazetteer().find("Kab. Bogor")
    assert (bandung.full_name, bogor.full_name) == ("Kota Bandung", "Kabupaten Bogor")
    assert gazetteer().place("31") and gazetteer().place("99") is None
    assert (round(bandung.latitude, 1), round(bandung.longitude, 1)) == (-6.9, 107.6)


def test_the_tables_fit_together() -> None:
    places = list(read_table("places.csv"))
    kinds = [row["kind"] for row in places]
    assert (len(places), kinds.count("province")) == (38 + 514, 38)
    codes = {row["code"] for row in places}
    assert {row["province_code"] for row in places} <= codes
    for row in [*read_table("aliases.csv"), *read_table("capitals.csv")]:
        assert set(row["codes"].split()) <= codes and row["codes"], row
    for row in read_table("place_words.csv"):
        assert row["words"] == row["words"].lower().strip() and row["words"], row
        if row["use"] == "ambiguous":
            assert gazetteer().find(row["words"]), row


def test_the_table_is_as_its_script_writes_it() -> None:
    place_of = runpy.run_path(str(REPOSITORY / "scripts" / "write_places.py"))["place_of"]
    where = {"latitude": "-5.74648", "longitude": "106.61316"}
    row = {"id": "3101", "name": "Kabupaten Administrasi Kepulauan Seribu", **where}
    assert place_of(row) == ("3101", "regency", "Kepulauan Seribu", "31", "-5.7465", "106.6132")
    assert place_of({"id": "34", "name": "Daerah Istimewa Yogyakarta", **where})[:4] == (
        *("34", "province"),
        *("DI Yogyakarta", "34"),
    )
    with (FOLDER / "places.csv").open(encoding="utf-8", newline="") as lines:
        assert ["3101", "regency", "Kepulauan Seribu", "31", "-5.7465", "106.6132"] in csv.reader(lines)


def test_the_tables_and_their_notice_are_installed_with_the_package() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
    patterns = project["tool"]["setuptools"]["package-data"]["*"]
    files = [path for path in FOLDER.iterdir() if path.suffix not in (".py", "")]
    assert len(files) == 5
    assert [path.name for path in files if not any(fnmatch(path.name, pattern) for pattern in patterns)] == []
    assert "MIT License" in Path(FOLDER / "places.LICENSE.txt").read_text(encoding="utf-8")


def test_a_town_is_in_its_regency_and_a_city_has_its_by_name() -> None:
    assert [place.name for place in gazetteer().find("Takengon")] == ["Aceh Tengah"]
    assert [place.name for place in gazetteer().find("kota kembang")] == ["Bandung"]
    [named] = gazetteer().named_in("kopi dari takengon".split())
    assert named.is_certain
    [word] = gazetteer().named_in("tas sumber".split())  # also a town, but hardly here
    assert not word.is_certain


def test_every_place_lies_in_indonesia() -> None:
    for row in read_table("places.csv"):
        latitude, longitude = float(row["latitude"]), float(row["longitude"])
        assert -11.1 < latitude < 6.2 and 94.9 < longitude < 141.1, row
