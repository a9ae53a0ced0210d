"""Region codes of the Ministry of Home Affairs, and names as cards print them."""

import pytest

from tis.ktp.regions import CodedRegion, regions


def test_the_table_has_all_provinces_regencies_and_districts() -> None:
    assert len(regions()) == 38 + 514 + 7285
    assert len(regions().below("")) == 38


def test_codes_are_those_of_the_ministry_not_of_the_statistics_office() -> None:
    assert regions().region("317101").regency == "JAKARTA PUSAT"  # for BPS 3171 is Jakarta Selatan
    assert regions().region("320101") == CodedRegion("JAWA BARAT", "KABUPATEN BOGOR", "CIBINONG")


def test_an_unknown_district_leaves_the_regency_known() -> None:
    region = regions().region("320199")
    assert (region.known, region.district) == (True, None)
    assert not regions().region("329901").known
    assert regions().region("009901") == CodedRegion(None, None, None)


@pytest.mark.parametrize(
    ("code", "regency"),
    [("640401", "KABUPATEN BULUNGAN"), ("647301", "KOTA TARAKAN"), ("910101", "KABUPATEN MERAUKE")],
)
def test_a_retired_code_names_the_regency_of_today(code: str, regency: str) -> None:
    region = regions().region(code)
    assert (region.regency, region.retired) == (regency, True)


def test_no_retired_code_is_in_use_today() -> None:
    assert regions().region("641101") == CodedRegion(
        "KALIMANTAN TIMUR", "KABUPATEN MAHAKAM ULU", regions().name("641101")
    )
    from tis.ktp.regions import _RETIRED_REGENCIES

    assert [code for code in _RETIRED_REGENCIES if regions().name(code)] == []
    assert [code for code in _RETIRED_REGENCIES.values() if not regions().name(code)] == []


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("PROVINSI DKI JAKARTA", "31"),
        ("PROVINSI DAERAH KHUSUS IBUKOTA JAKARTA", "31"),
        ("PROVINSIJAWABARAT", "32"),
        ("PROVINSI JAWA BARA", "32"),
        ("NANGGROE ACEH DARUSSALAM", "11"),
        ("ISLAM", None),
    ],
)
def test_a_province_is_found_by_its_printed_name(text: str, code: str | None) -> None:
    match = regions().match_province(text)
    assert (match.code if match else None) == code


@pytest.mark.parametrize(
    ("text", "province", "code"),
    [
        ("JAKARTA BARAT", None, "3173"),
        ("KOTA ADMINISTRASI JAKARTA BARAT", "31", "3173"),
        ("KABUPATEN BOGOR", "32", "3201"),
        ("KOTA BOGOR", "32", "3271"),
        ("KOTA TANJUNGPINANG", "21", "2172"),
        ("KABUPATEN NOWHERE", "32", None),
    ],
)
def test_a_regency_is_found_by_its_printed_name(text: str, province: str | None, code: str | None) -> None:
    match = regions().match_regency(text, province)
    assert (match.code if match else None) == code


def test_a_district_is_searched_in_its_regency_only() -> None:
    match = regions().match_district("CIBIN0NG", "3201")
    assert match and (match.code, match.name) == ("320101", "CIBINONG")
    assert regions().match_district("CIBINONG", "3171") is None
