"""Pictures of products over HTTP: uploads, order, texts, files."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
import pytest
from PIL import Image
from sqlalchemy import select

from tests.marketplace.market_server import MarketServer, new_product
from tests.marketplace.pictures.photos import ORIENTATION, ids, opened, photo, picture, upload, uploaded
from tests.media.images import encoded
from tis.marketplace.tables import AuditEntry, ProductPicture, StoredPicture


@pytest.fixture
def product(server: MarketServer, anybody: httpx2.Client) -> int:
    return int(new_product(anybody, server.supplier())["id"])


def shown(client: httpx2.Client, product_id: int) -> list[dict[str, Any]]:
    pictures: list[dict[str, Any]] = client.get(f"/api/products/{product_id}").json()["pictures"]
    return pictures


def test_an_uploaded_photo_is_shown_in_detail_search_list_comparison_and_lookup(
    anybody: httpx2.Client, server: MarketServer
) -> None:
    supplier = server.supplier()
    one, other = new_product(anybody, supplier, name="Kamera Zubair")["id"], new_product(anybody, supplier)["id"]
    made = uploaded(anybody, one, photo(1, (1600, 1200)), alt="Kamera hitam")
    assert (made["width"], made["height"], made["alt"], made["alt_status"]) == (1280, 960, "Kamera hitam", "confirmed")
    view = {name: value for name, value in made.items() if name != "alt_status"}
    detail = anybody.get(f"/api/products/{one}").json()
    assert detail["picture"] == view and detail["pictures"] == [view]
    found = anybody.get("/api/products/search", params={"q": "kamera zubair", "supplier_id": supplier}).json()
    assert [product["picture"] for product in found] == [view]
    listed = anybody.get("/api/products", params={"supplier_id": supplier}).json()
    assert {product["id"]: product["picture"] for product in listed} == {one: view, other: None}
    compared = anybody.get("/api/products/compare", params={"ids": f"{one},{other}"}).json()
    assert [product["picture"] for product in compared["products"]] == [view, None]
    looked_up = anybody.get("/api/products/lookup", params={"ids": str(one)}).json()
    assert looked_up["items"][0]["picture"] == view


def test_three_sizes_are_served_that_any_cache_may_keep(anybody: httpx2.Client, product: int) -> None:
    made = uploaded(anybody, product, photo(2, (1600, 800)))
    sizes = {}
    for name, url in made["urls"].items():
        answer = anybody.get(url)
        sizes[name] = opened(answer).size
        assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        again = anybody.get(url, headers={"If-None-Match": answer.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
        assert anybody.get(url, headers={"If-None-Match": '"another"'}).status_code == 200
    assert sizes == {"large": (1280, 640), "medium": (480, 240), "small": (160, 80)}


def test_a_small_picture_is_never_made_larger(anybody: httpx2.Client, product: int) -> None:
    made = uploaded(anybody, product, photo(3, (1, 1), "PNG"))
    assert {opened(anybody.get(url)).size for url in made["urls"].values()} == {(1, 1)}


def test_metadata_is_gone_and_the_picture_upright(anybody: httpx2.Client, product: int) -> None:
    exif = Image.Exif()
    exif[ORIENTATION] = 6  # the camera was turned
    exif[0x010E] = "Jl. Rahasia No. 1"
    exif.get_ifd(0x8825)[2] = (6.0, 12.0, 31.0)
    lying = photo(4, (400, 200), exif=exif, comment=b"Jl. Rahasia No. 1", icc_profile=b"Jl. Rahasia No. 1" * 9)
    made = uploaded(anybody, product, lying)
    assert (made["width"], made["height"]) == (200, 400)
    for url in made["urls"].values():
        answer = anybody.get(url)
        image = opened(answer)
        assert not image.getexif() and not {"exif", "icc_profile", "xmp"} & image.info.keys()
        assert b"Rahasia" not in answer.content


def test_what_is_transparent_becomes_white_and_of_an_animation_the_first_picture_stays(
    anybody: httpx2.Client, product: int
) -> None:
    clear = Image.new("RGBA", (40, 40), (255, 0, 0, 0))
    seen = opened(anybody.get(uploaded(anybody, product, encoded(clear))["urls"]["large"]))
    assert seen.convert("RGB").getpixel((20, 20)) == (255, 255, 255)
    frames = [Image.new("RGB", (40, 40), colour) for colour in ("blue", "red", "red")]
    moving = encoded(frames[0], "GIF", save_all=True, append_images=frames[1:], duration=100)
    still = opened(anybody.get(uploaded(anybody, product, moving)["urls"]["large"]))
    red, _, blue = still.convert("RGB").getpixel((20, 20))  # type: ignore[misc]
    assert blue > 200 > 60 > red and not getattr(still, "is_animated", False)


def test_colours_of_printers_and_of_sixteen_bits_are_read(anybody: httpx2.Client, product: int) -> None:
    cmyk = encoded(Image.new("CMYK", (40, 40), (255, 0, 255, 0)), "JPEG")  # green
    red, green, _ = opened(anybody.get(uploaded(anybody, product, cmyk)["urls"]["large"])).getpixel((20, 20))  # type: ignore[misc]
    assert green > 100 > red
    grey = Image.new("I;16", (40, 40), 32768)
    value = (
        opened(anybody.get(uploaded(anybody, product, encoded(grey))["urls"]["large"])).convert("L").getpixel((9, 9))
    )
    assert abs(int(value) - 128) <= 3  # type: ignore[arg-type]


def test_pictures_have_an_order_that_can_be_changed(anybody: httpx2.Client, product: int) -> None:
    first, second, third = (uploaded(anybody, product, photo(seed))["id"] for seed in (10, 11, 12))
    assert ids(shown(anybody, product)) == [first, second, third]
    order = {"order": [third, first, second]}
    answer = anybody.put(f"/api/products/{product}/pictures", json=order)
    assert answer.status_code == 200 and ids(answer.json()) == order["order"]
    assert ids(shown(anybody, product)) == order["order"]
    assert anybody.get(f"/api/products/{product}").json()["picture"]["id"] == third
    for wrong in ([third, first], [third, first, first], [third, first, "0" * 64]):
        refused = anybody.put(f"/api/products/{product}/pictures", json={"order": wrong})
        assert refused.status_code == 409 and "read them again" in refused.json()["detail"]
    deleted = anybody.delete(f"/api/products/{product}/pictures/{third}")
    assert ids(deleted.json()) == [first, second]
    assert anybody.get(f"/api/products/{product}").json()["picture"]["id"] == first
    assert anybody.delete(f"/api/products/{product}/pictures/{third}").status_code == 404


def test_a_ninth_picture_is_refused(anybody: httpx2.Client, product: int) -> None:
    for seed in range(8):
        uploaded(anybody, product, photo(20 + seed))
    refused = upload(anybody, product, photo(29))
    assert (refused.status_code, len(shown(anybody, product))) == (409, 8)
    assert refused.json()["detail"] == "A product has at most 8 pictures: delete one first."


def test_uploads_at_once_never_make_more_than_eight_and_leave_no_hole(anybody: httpx2.Client, product: int) -> None:
    with ThreadPoolExecutor(6) as threads:
        answers = list(threads.map(lambda seed: upload(anybody, product, photo(40 + seed)).status_code, range(12)))
    assert sorted(answers) == [200] * 8 + [409] * 4
    assert len(shown(anybody, product)) == 8
    rows = {row["id"] for row in anybody.get(f"/api/products/{product}/pictures").json()}
    assert len(rows) == 8


def test_a_picture_that_is_used_twice_is_stored_once(
    anybody: httpx2.Client, server: MarketServer, product: int
) -> None:
    other = int(new_product(anybody, server.supplier())["id"])
    data = encoded(picture(50), "PNG")
    with_metadata = encoded(picture(50), "PNG", dpi=(300, 300))
    assert data != with_metadata
    one, again, elsewhere = (
        uploaded(anybody, number, file)["id"]
        for number, file in ((product, data), (product, with_metadata), (other, with_metadata))
    )
    assert one == again == elsewhere and len(shown(anybody, product)) == len(shown(anybody, other)) == 1
    anybody.delete(f"/api/products/{product}/pictures/{one}")
    assert shown(anybody, other)[0]["id"] == one and anybody.get(f"/api/pictures/{one}/small.webp").status_code == 200
    with server.market.reading() as session:
        assert len(session.scalars(select(StoredPicture).where(StoredPicture.hash == one)).all()) == 1
        assert [
            row.product_id for row in session.scalars(select(ProductPicture).where(ProductPicture.hash == one))
        ] == [other]


def test_a_proposed_text_is_public_only_when_the_seller_has_confirmed_it(
    anybody: httpx2.Client, server: MarketServer, product: int
) -> None:
    made = uploaded(anybody, product, photo(60))
    path = f"/api/products/{product}/pictures/{made['id']}"
    assert anybody.put(path, json={"alt_status": "confirmed"}).status_code == 409  # nothing is proposed
    with server.market.writing() as session:
        link = session.get_one(ProductPicture, (product, made["id"]))
        link.alt, link.alt_status = "Laptop di atas meja", "proposed"
    seen = anybody.get(f"/api/products/{product}").json()
    assert seen["pictures"][0]["alt"] is None and seen["picture"]["alt"] is None
    assert anybody.get("/api/products/lookup", params={"ids": product}).json()["items"][0]["picture"]["alt"] is None
    [own] = anybody.get(f"/api/products/{product}/pictures").json()
    assert (own["alt"], own["alt_status"]) == ("Laptop di atas meja", "proposed")
    confirmed = anybody.put(path, json={"alt_status": "confirmed"}).json()
    assert (confirmed["alt"], confirmed["alt_status"]) == ("Laptop di atas meja", "confirmed")
    assert shown(anybody, product)[0]["alt"] == "Laptop di atas meja"
    assert anybody.put(path, json={"alt": "Laptop perak"}).json()["alt"] == "Laptop perak"
    assert anybody.get("/api/products/lookup", params={"ids": product}).json()["items"][0]["picture"]["alt"] == (
        "Laptop perak"
    )
    assert anybody.put(path, json={"alt": None}).json() | {"urls": 0} == confirmed | {"alt": None, "urls": 0}
    assert anybody.put(path, json={}).status_code == 422
    assert anybody.put(path, json={"alt": "x" * 301}).status_code == 422


def test_what_happened_to_pictures_is_in_the_audit_log(
    anybody: httpx2.Client, server: MarketServer, product: int
) -> None:
    made = uploaded(anybody, product, photo(70))["id"]
    anybody.put(f"/api/products/{product}/pictures/{made}", json={"alt": "Meja"})
    anybody.delete(f"/api/products/{product}/pictures/{made}")
    with server.market.reading() as session:
        lines = select(AuditEntry.action).where(AuditEntry.entity_id == str(product)).order_by(AuditEntry.id)
        actions = list(session.scalars(lines))
    assert actions == ["create", "picture.add", "picture.describe", "picture.delete"]


def test_pictures_of_a_deleted_product_come_back_with_it(anybody: httpx2.Client, product: int) -> None:
    made = uploaded(anybody, product, photo(80))["id"]
    anybody.delete(f"/api/products/{product}")
    assert upload(anybody, product, photo(81)).status_code == 404
    restored = anybody.post(f"/api/products/{product}/restore").json()
    assert ids(restored["pictures"]) == [made]


def test_a_form_and_json_say_what_is_wrong(anybody: httpx2.Client, product: int) -> None:
    path = f"/api/products/{product}/pictures"
    assert anybody.post(path, data={"alt": "x"}, files={"other": b"x"}).status_code == 422
    twice = anybody.post(path, files=[("file", b"x"), ("file", b"y")])
    assert (twice.status_code, twice.json()["detail"]) == (422, "The form has more than one `file`.")
    assert upload(anybody, product, photo(90), alt="x" * 301).status_code == 422
    assert upload(anybody, product, photo(90), alt=" ").status_code == 422
    assert anybody.post(path, content=b"{", headers={"Content-Type": "application/json"}).status_code == 422
    assert anybody.post(path, json={"url": "https://x.example/a.jpg", "more": 1}).status_code == 422
    assert anybody.post(path, json={"url": "x" * 70_000}).status_code == 413
    for url in ("file:///etc/passwd", "/etc/passwd", "data:image/png;base64,AAAA", "ftp://x.example/a.jpg"):
        refused = anybody.post(path, json={"url": url})
        assert refused.status_code == 400 and "not valid here" in refused.json()["detail"]
    assert shown(anybody, product) == []


def test_a_picture_that_is_not_there_is_a_404(anybody: httpx2.Client) -> None:
    assert anybody.get(f"/api/pictures/{'0' * 64}/small.webp").status_code == 404
    for path in ("x/small.webp", f"{'0' * 64}/huge.webp", f"{'A' * 64}/small.webp", "..%2f..%2fetc/small.webp"):
        assert anybody.get(f"/api/pictures/{path}").status_code in (404, 422)
