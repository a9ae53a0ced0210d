"""Which names on a card are that of the person who registered the shop."""

import pytest

from tis.marketplace.verification.names import names_match


@pytest.mark.parametrize(
    ("card", "registered"),
    [
        ("BUDI SANTOSO", "Budi Santoso"),
        ("SANTOSO BUDI", "Budi Santoso"),
        ("H. BUDI SANTOSO, S.E.", "Budi Santoso"),
        ("DRS. I WAYAN SUDIRA", "I Wayan Sudira, M.Si."),
        ("NUR'AINI", "Nuraini"),
        ("RENÉ DE FRETES", "Rene de Fretes"),
    ],
)
def test_the_same_person_written_in_another_way(card: str, registered: str) -> None:
    assert names_match(card, registered) and names_match(registered, card)


@pytest.mark.parametrize(
    ("card", "registered"),
    [
        ("BUDI SANTOSO", "Budi"),
        ("BUDI SANTOSO", "Budi Santosa"),
        ("SITI SITI", "Siti"),
        ("H. DR.", "Dr. H."),  # titles alone are no name
        ("", ""),
    ],
)
def test_what_is_only_alike_is_for_an_admin(card: str, registered: str) -> None:
    assert not names_match(card, registered)


@pytest.mark.parametrize("more", ["Мария", "山田太郎", "Владимир", "2", "Ltd."])
def test_words_that_the_card_does_not_have_are_for_an_admin_whatever_their_script(more: str) -> None:
    assert not names_match("BUDI SANTOSO", f"{more} Budi Santoso")
