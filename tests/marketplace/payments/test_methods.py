"""How a shop is paid: what it says, what buyers of accepted orders see of it, and what nobody sees."""

import httpx2
import pytest
from sqlalchemy import select

from tests.marketplace.payments.codes import png, qris_text
from tests.marketplace.payments.fake_provider import CALLBACK_TOKEN, SECRET_KEY, SERVER_KEY
from tests.marketplace.payments.till import KEYS, TRANSFER, Till
from tests.marketplace.pictures.photos import photo
from tis.marketplace.kit.signing import Signer
from tis.marketplace.orders.payment_methods import offered_methods
from tis.marketplace.payment_providers.credentials import CredentialsLost, seal, unseal
from tis.marketplace.payments.qris import read_qris
from tis.marketplace.tables import AuditEntry, ShopPaymentMethods, Supplier

MIDTRANS = {"provider": "midtrans", "environment": "sandbox"}
XENDIT = {"provider": "xendit", "environment": "production"}


def upload(till: Till, picture: bytes) -> httpx2.Response:
    return till.shop.post(f"{till.methods_path}/qris", files={"file": picture})


def test_a_shop_that_has_said_nothing_takes_cash(till: Till) -> None:
    said = till.shop.get(till.methods_path)
    assert said.json() == {"offered": ["cash"], "cash": True, "transfer": None, "qris": None, "provider": None}
    assert said.headers["cache-control"] == "no-store"


def test_what_is_left_out_stays_and_null_takes_away(till: Till) -> None:
    assert till.change(transfer=TRANSFER).json()["offered"] == ["cash", "transfer"]
    assert till.change(qris={"text": qris_text()}).json()["offered"] == ["cash", "transfer", "qris"]
    assert till.change(cash=False).json()["transfer"] == TRANSFER
    said = till.change(transfer=None).json()
    assert said["offered"] == ["qris"] and said["transfer"] is None
    with till.server.market.reading() as session:
        assert offered_methods(session, till.shop_id) == ("qris",)
    refused = till.change(qris=None)
    assert refused.status_code == 422 and till.shop.get(till.methods_path).json()["offered"] == ["qris"]


def test_the_digits_of_an_account_are_kept_without_spaces(till: Till) -> None:
    said = till.change(transfer={**TRANSFER, "account_number": "123 456-7890"}).json()
    assert said["transfer"]["account_number"] == "1234567890"


@pytest.mark.parametrize(
    "body",
    [
        {"transfer": {**TRANSFER, "account_number": "12"}},
        {"transfer": {**TRANSFER, "account_number": "<b>12345678</b>"}},
        {"transfer": {**TRANSFER, "bank_name": ""}},
        {"transfer": {"bank_name": "Bank Contoh"}},
        {"qris": {"text": qris_text()[:-1] + "!"}},
        {"qris": {"text": read_qris(qris_text()).with_amount(1000).text}},
        {"qris": {"text": "x" * 600}},
        {"provider": {"provider": "paypal"}},
        {"provider": MIDTRANS},
        {"provider": {**MIDTRANS, **KEYS["xendit"]}},
        {"provider": {**MIDTRANS, "midtrans": {"server_key": "short"}}},
        {"provider": {**MIDTRANS, "midtrans": {"server_key": "with a space in it"}}},
        {"provider": {**MIDTRANS, "midtrans": {"server_key": "k" * 201}}},
        {"provider": {**XENDIT, "xendit": {"secret_key": '"' * 200, "callback_token": "\\" * 200}}},
        {"card_number": "4111111111111111"},
    ],
)
def test_what_makes_no_sense_is_refused(body: dict[str, object], till: Till) -> None:
    answer = till.change(**body)
    assert answer.status_code == 422, answer.text
    assert till.shop.get(till.methods_path).json()["offered"] == ["cash"]


def test_the_keys_of_a_provider_are_shown_nowhere(till: Till) -> None:
    said = till.change(provider={**MIDTRANS, **KEYS["midtrans"]})
    assert said.status_code == 200 and said.json()["provider"]["keys_are_readable"] is True
    shown = said.json()["provider"]
    assert shown["callback_url"].endswith(f"/api/payments/callbacks/midtrans/{till.shop_id}")
    seen = said.text + till.shop.get(till.methods_path).text
    with till.server.market.reading() as session:
        row = session.get_one(ShopPaymentMethods, till.shop_id)
        stored = str({name: getattr(row, name) for name in ShopPaymentMethods.__table__.columns.keys()})
        notes = session.scalars(select(AuditEntry).where(AuditEntry.entity_id == str(till.shop_id)))
        noted = str([(note.action, note.changes) for note in notes])
    assert "supplier.payment_methods" in noted
    for secret in (SERVER_KEY, SECRET_KEY, CALLBACK_TOKEN):
        assert secret not in seen + stored + noted
    wrong = till.change(provider={**MIDTRANS, "midtrans": {"server_key": SERVER_KEY + " and more"}})
    assert wrong.status_code == 422 and SERVER_KEY not in wrong.text


def test_keys_stay_until_others_are_sent(till: Till) -> None:
    till.change(provider={**MIDTRANS, **KEYS["midtrans"]})
    assert till.change(provider=MIDTRANS).status_code == 200
    assert till.change(provider={**MIDTRANS, "environment": "production"}).status_code == 422
    assert till.change(provider=XENDIT).status_code == 422
    assert till.change(provider={**XENDIT, **KEYS["xendit"]}).json()["provider"]["provider"] == "xendit"
    gone = till.change(provider=None).json()
    assert gone["provider"] is None and gone["offered"] == ["cash"]


def test_sealed_keys_open_only_for_the_same_shop_provider_and_secret() -> None:
    signer, values = Signer(b"a secret of the tests"), {"server_key": SERVER_KEY}
    sealed = seal(signer, 7, "midtrans", values)
    assert unseal(signer, 7, "midtrans", sealed) == values and SERVER_KEY not in sealed
    assert seal(signer, 7, "midtrans", values) != sealed
    changed = sealed[:30] + ("A" if sealed[30] != "A" else "B") + sealed[31:]
    for other in (
        (signer, 8, "midtrans", sealed),
        (signer, 7, "xendit", sealed),
        (Signer(b"another secret of tests"), 7, "midtrans", sealed),
        (signer, 7, "midtrans", changed),
        (signer, 7, "midtrans", ""),
        (signer, 7, "midtrans", "v1.?"),
    ):
        with pytest.raises(CredentialsLost):
            unseal(*other)


def test_after_a_new_signing_secret_the_shop_is_asked_for_its_keys(till: Till) -> None:
    till.connect("midtrans")
    order = till.order()
    with till.server.market.writing() as session:
        row = session.get_one(ShopPaymentMethods, till.shop_id)
        row.sealed_credentials = seal(Signer(b"the secret of last year"), till.shop_id, "midtrans", {"server_key": "k"})
    assert till.shop.get(till.methods_path).json()["provider"]["keys_are_readable"] is False
    answer = till.buyer.post(f"/api/orders/{order}/payment")
    assert answer.status_code == 409 and "send the keys" in answer.text


def test_a_qris_code_is_uploaded_as_a_picture(till: Till) -> None:
    said = upload(till, png(qris_text()))
    assert said.status_code == 200, said.text
    assert said.json()["qris"] == {"text": qris_text(), "merchant_name": "TOKO CONTOH", "merchant_city": "PONTIANAK"}
    for picture, reason in (
        (photo(), "No QR code"),
        (png("https://example.com"), "no QRIS code"),
        (png(read_qris(qris_text()).with_amount(5).text), "static"),
    ):
        refused = upload(till, picture)
        assert refused.status_code == 422 and reason in refused.text, refused.text
    assert upload(till, b"no picture").status_code == 400
    assert till.shop.post(f"{till.methods_path}/qris", json={"file": "x"}).status_code == 422
    assert till.shop.post(f"{till.methods_path}/qris", files={"other": b"x"}).status_code == 422
    assert till.shop.get(till.methods_path).json()["qris"]["text"] == qris_text()


def test_strangers_change_and_see_nothing(till: Till) -> None:
    for client in (till.stranger, till.buyer):
        assert client.get(till.methods_path).status_code == 403
        assert client.put(till.methods_path, json={"transfer": TRANSFER}).status_code == 403
        assert client.post(f"{till.methods_path}/qris", files={"file": png(qris_text())}).status_code == 403
    assert till.nobody.get(till.methods_path).status_code == 401


def test_a_buyer_sees_the_account_from_acceptance_until_it_is_paid(till: Till) -> None:
    till.change(transfer=TRANSFER)
    order = till.order("transfer", state="placed")
    assert till.buyer.get(f"/api/orders/{order}/payment").json()["transfer"] is None
    early = till.buyer.post(f"/api/orders/{order}/payment")
    assert early.status_code == 409 and "not accepted" in early.text
    till.set_order(order, state="accepted")
    for method in ("POST", "GET"):
        said = till.buyer.request(method, f"/api/orders/{order}/payment").json()
        assert (said["status"], said["transfer"], said["amount"]) == ("due", TRANSFER, 150_000)
    till.set_order(order, state="cancelled")
    assert till.buyer.get(f"/api/orders/{order}/payment").json()["transfer"] is None
    assert till.buyer.post(f"/api/orders/{order}/payment").status_code == 409


def test_nobody_is_told_to_pay_a_shop_that_is_suspended(till: Till) -> None:
    till.change(transfer=TRANSFER)
    order = till.order("transfer")
    with till.server.market.writing() as session:
        session.get_one(Supplier, till.shop_id).status = "suspended"
    assert till.buyer.get(f"/api/orders/{order}/payment").json()["transfer"] is None
    answer = till.buyer.post(f"/api/orders/{order}/payment")
    assert answer.status_code == 409 and "suspended" in answer.text


def test_a_buyer_gets_the_shops_code_with_the_amount_in_it(till: Till) -> None:
    till.change(qris={"text": qris_text()})
    said = till.begin(till.order("qris", total=123_456))["qris"]
    code = read_qris(said["text"])
    assert (code.amount, code.merchant_name, said["merchant_city"]) == (123_456, "TOKO CONTOH", "PONTIANAK")
    assert said["svg"].startswith("<svg ")


def test_cash_needs_no_instructions(till: Till) -> None:
    said = till.begin(till.order("cash"))
    assert (said["status"], said["transfer"], said["qris"], said["page"]) == ("due", None, None, None)


def test_others_do_not_learn_that_there_is_an_order(till: Till) -> None:
    till.change(transfer=TRANSFER)
    order = till.order("transfer")
    for path in (f"/api/orders/{order}/payment", "/api/orders/00000000-0000-4000-8000-000000000000/payment"):
        assert till.stranger.get(path).status_code == 404
        assert till.stranger.post(path).status_code == 404
        assert till.nobody.get(path).status_code in (401, 404)
    assert till.shop.get(f"/api/orders/{order}/payment").json()["transfer"] == TRANSFER
    assert till.shop.post(f"/api/orders/{order}/payment").status_code == 403
