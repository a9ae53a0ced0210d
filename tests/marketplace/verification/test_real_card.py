"""The whole way: a picture of a specimen card, the reader of `/ktp-ocr`, and the badge."""

from collections.abc import Iterator

import httpx2
import pytest

from tests.marketplace.accounts import bearer, register_supplier
from tests.marketplace.conftest import SECRET
from tests.marketplace.verification.card_pictures import show_bytes
from tests.serving import REPOSITORY, Served, served, settings_with

pytestmark = pytest.mark.slow
SPECIMEN = REPOSITORY / "docs" / "samples" / "ktp-specimen.jpg"  # of a Lia Firmansyah who does not exist


@pytest.fixture(scope="module")
def whole() -> Iterator[Served]:
    with served(settings_with(jwt_secret_key=SECRET)) as running:
        yield running


def test_a_specimen_gives_the_badge_to_its_holder_and_to_nobody_else(whole: Served) -> None:
    with httpx2.Client(base_url=whole.url, timeout=120) as client:
        results = {}
        for name in ("Lia Firmansyah", "Budi Santoso"):
            supplier = register_supplier(client, name=name)
            client.headers.update(bearer(supplier))
            answer = show_bytes(client, supplier["id"], SPECIMEN.read_bytes())
            assert answer.status_code == 200, answer.text
            results[name] = answer.json()["status"], answer.json()["doubts"]
            del client.headers["authorization"]
        assert results == {
            "Lia Firmansyah": ("verified", []),
            "Budi Santoso": ("doubtful", ["name_differs", "shown_before"]),
        }
        refused = client.put("/api/suppliers/1/verification", files={"image": ("a.jpg", b"no picture", "image/jpeg")})
        assert refused.status_code == 401
        client.headers.update(bearer(supplier))
        broken = show_bytes(client, supplier["id"], b"no picture")
        assert broken.status_code in (400, 415, 422), broken.text
