"""Passwords that are guessed first are refused, sentences are not."""

from typing import Any

import httpx2
import pytest

from tests.marketplace.accounts import PASSWORD, bearer, new_email, register_user, registration_body
from tis.marketplace.auth.weak_passwords import is_personal, weakness_of

WEAK = """password Password1! p@ssw0rd! 12345678 1234567890 qwerty123 asdfghjkl aaaaaaaa abababab abcdefgh Bismillah99
sayangku1 sayangsayang 87654321 1q2w3e4r 1qaz2wsx Indonesia2026 iloveyou!! merdeka1945 rahasia123 11112222 19900817
081234567899 QWERTYUIOP ÀÀÀÀÀÀÀÀ katasandi! jakarta123""".split()
STRONG = [PASSWORD, "langit biru sekali", "x3kfj29dkq", "Tk7#mmQz", "correct horse battery", "нас никто не слышит"]


@pytest.mark.parametrize("password", WEAK)
def test_a_password_that_everybody_tries_is_weak(password: str) -> None:
    assert weakness_of(password)


@pytest.mark.parametrize("password", STRONG)
def test_a_sentence_is_not_weak(password: str) -> None:
    assert weakness_of(password) is None


def test_the_own_name_with_digits_is_personal_and_a_sentence_with_it_is_not() -> None:
    facts = "Rangga Specimen", "rangga.s@example.com"
    for password in ("rangga2026", "RanggaSpecimen", "specimen.rangga!", "rangga.s@example.com"):
        assert is_personal(password, *facts), password
    for password in ("rangga eats fried rice", PASSWORD):
        assert not is_personal(password, *facts), password


@pytest.mark.parametrize("path", ["/api/auth/register", "/api/users/register", "/api/suppliers/register"])
@pytest.mark.parametrize("password", ["sayangku123", "specimen2026"])
def test_registrations_refuse_weak_passwords_without_repeating_them(
    internet: httpx2.Client, path: str, password: str
) -> None:
    body: dict[str, Any] = {**registration_body(path), "name": "Rangga Specimen", "password": password}
    refused = internet.post(path, json=body)
    assert refused.status_code == 422 and password not in refused.text and "password" in refused.text
    assert internet.post(path, json={**body, "password": PASSWORD}).status_code == 200


def test_a_change_to_a_weak_password_is_refused(internet: httpx2.Client) -> None:
    user = register_user(internet, name="Rangga Specimen", email=new_email())
    for weak in ("bismillah", "ranggaspecimen1"):
        refused = internet.post("/api/auth/password", json={"password": weak}, headers=bearer(user))
        assert refused.status_code == 422
    assert internet.post("/api/auth/password", json={"password": PASSWORD}, headers=bearer(user)).status_code == 200
