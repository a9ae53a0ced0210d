"""Midtrans and Xendit as a process: it makes pages, takes money when told to, sends callbacks and has bad days.

`python -m tests.marketplace.payments.fake_provider PORT STATE`. Requests below `/_control` are from the tests. The
shapes are those of the public references of both APIs; the keys are invented.
"""

import base64
import hashlib
import json
import os
import sys
import threading
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

SERVER_KEY = "SB-Mid-server-fixture-0001"
SECRET_KEY = "xnd_development_fixture_0001"
CALLBACK_TOKEN = "fixture-callback-token-0001"
_MIDTRANS_CODES = {"pending": "201", "settlement": "200", "expire": "407", "deny": "202", "refund": "200"}
_XENDIT = {"pending": "PENDING", "settlement": "PAID", "expire": "EXPIRED", "refund": "PAID"}


class Book:
    """What the provider knows, in a file: it survives its own death."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lock = threading.RLock()
        self.released = threading.Event()
        self.moods: dict[str, str] = {}
        self.payments: dict[str, dict[str, Any]] = {}
        self.refunds: list[dict[str, Any]] = []
        if path.exists():
            self.payments, self.refunds = json.loads(path.read_text())

    def save(self) -> None:
        part = self.path.with_suffix(".part")
        part.write_text(json.dumps([self.payments, self.refunds]))
        part.replace(self.path)

    def created(self, name: str, amount: int, callback_url: str) -> dict[str, Any]:
        with self.lock:
            new = {"amount": amount, "paid": None, "currency": "IDR", "status": "page", "pages": 0, "url": callback_url}
            payment = self.payments.setdefault(name, new)
            payment["pages"] += 1
            self.save()
            return payment


class ProviderHandler(BaseHTTPRequestHandler):
    book: Book

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        self.handle_request(None)

    def do_POST(self) -> None:
        data = self.rfile.read(int(self.headers.get("content-length", "0")))
        self.handle_request(json.loads(data or b"{}"))

    def handle_request(self, content: Any) -> None:
        parts = urlsplit(self.path)
        steps = parts.path.strip("/").split("/")
        if steps[0] == "_control":
            self.answer(200, self.control(steps[1], content or {}))
            return
        key, kind = (
            (SECRET_KEY, "xendit")
            if steps[:2] == ["v2", "invoices"] or steps[0] == "refunds"
            else (
                SERVER_KEY,
                "midtrans",
            )
        )
        if self.headers.get("authorization") != "Basic " + base64.b64encode(f"{key}:".encode()).decode():
            self.answer(401, {"error_messages": ["Access denied"], "message": "API key is not authorized"})
            return
        what = self.kind_of_request(steps, content)
        mood = self.book.moods.get(what, "fine")
        if mood == "error":
            self.answer(500, {"status_message": "Internal server error"})
            return
        if mood == "garbage":
            self.answer(200, "<html>maintenance</html>")
            return
        if mood == "refuse":
            self.answer(
                400,
                {"error_messages": ["it is refused"], "message": "it is refused", "status_message": "it is refused"},
            )
            return
        status, said = (self.xendit if kind == "xendit" else self.midtrans)(what, steps, content, parse_qs(parts.query))
        if mood == "hold":
            self.book.released.wait(60)
        if mood == "lost":
            self.connection.close()
            return
        if mood == "die":
            os._exit(1)
        self.answer(status, said)

    def kind_of_request(self, steps: list[str], content: Any) -> str:
        if "refund" in steps[-1]:
            return "refund" if content is not None else "refunds"
        return "create" if content is not None else "status"

    def midtrans(self, what: str, steps: list[str], content: Any, query: Any) -> tuple[int, Any]:
        if what == "create":
            details = content["transaction_details"]
            known = self.book.payments.get(details["order_id"])
            if known and known["status"] != "page":
                return 400, {"error_messages": ["transaction_details.order_id has already been taken"]}
            url = self.headers["x-override-notification"]
            made = self.book.created(details["order_id"], details["gross_amount"], url)
            token = f"66e4fa55-fdac-4ef9-91b5-{made['pages']:012d}"
            page = f"https://app.sandbox.midtrans.example/snap/v4/redirection/{token}"
            return 201, {"token": token, "redirect_url": page}
        payment = self.book.payments.get(steps[1])
        if payment is None or payment["status"] == "page":
            return 200, {"status_code": "404", "status_message": "Transaction doesn't exist.", "id": "fixture"}
        if what == "refund":
            if any(one["key"] == content["refund_key"] for one in self.book.refunds):
                return 200, {"status_code": "406", "status_message": "Duplicate refund key"}
            with self.book.lock:
                self.book.refunds.append({"key": content["refund_key"], "amount": content["amount"], "of": steps[1]})
                self.book.save()
            return 200, {
                "status_code": "200",
                "status_message": "Success, refund request is approved",
                "order_id": steps[1],
                "refund_key": content["refund_key"],
                "refund_amount": f"{content['amount']}.00",
            }
        refunds = [
            {"refund_key": one["key"], "refund_amount": f"{one['amount']}.00"}
            for one in self.book.refunds
            if one["of"] == steps[1]
        ]
        return 200, {**midtrans_message(steps[1], payment, payment["status"]), "refunds": refunds}

    def xendit(self, what: str, steps: list[str], content: Any, query: Any) -> tuple[int, Any]:
        if what == "create":
            self.book.created(content["external_id"], content["amount"], "")
            return 200, invoice(content["external_id"], self.book.payments[content["external_id"]], "page")
        if what == "refund":
            with self.book.lock:
                known = [one for one in self.book.refunds if one["key"] == self.headers["idempotency-key"]]
                if not known:
                    new = {"key": content["reference_id"], "amount": content["amount"], "of": content["invoice_id"]}
                    self.book.refunds.append(new)
                    self.book.save()
            return 200, xendit_refund(content["reference_id"], content["amount"], self.book.moods)
        if what == "refunds":
            of = query["invoice_id"][0]
            found = [xendit_refund(r["key"], r["amount"], self.book.moods) for r in self.book.refunds if r["of"] == of]
            return 200, {"data": found, "has_more": False}
        name = query["external_id"][0]
        payment = self.book.payments.get(name)
        return 200, [] if payment is None else [invoice(name, payment, payment["status"])]

    def control(self, what: str, content: Any) -> Any:
        book = self.book
        if what == "moods":
            book.moods = content
            book.released.clear()
        elif what == "release":
            book.moods = {}
            book.released.set()
        elif what == "pay":
            payment = book.payments[content["name"]]
            payment.update({"status": content["status"], "paid": content["amount"], "currency": content["currency"]})
            book.save()
        elif what == "send":
            return [self.sent(one) for one in content["callbacks"]]
        return {"payments": book.payments, "refunds": book.refunds}

    def sent(self, callback: Any) -> int:
        """To the server, as the provider would, or as a thief would. Its status."""
        name, status = callback["name"], callback["status"]
        payment = {**self.book.payments.get(name, {"amount": 1, "paid": None, "currency": "IDR"}), **callback["says"]}
        if callback["provider"] == "xendit":
            body, headers = invoice(name, payment, status), {"x-callback-token": CALLBACK_TOKEN}
        else:
            body, headers = midtrans_message(name, payment, status), {}
        if callback["forged"]:
            headers = {"x-callback-token": "fixture-callback-token-0002"} if headers else {}
            body["signature_key"] = hashlib.sha512(b"guessed").hexdigest()
        request = urllib.request.Request(
            callback["url"],
            json.dumps(body).encode(),
            {"content-type": "application/json", "user-agent": "Veritrans", **headers},
        )
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return error.code

    def answer(self, status: int, said: Any) -> None:
        body = said.encode() if isinstance(said, str) else json.dumps(said).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def midtrans_message(name: str, payment: Any, status: str) -> dict[str, Any]:
    """A notification, and what `status` answers."""
    amount = f"{payment['amount'] if payment['paid'] is None else payment['paid']}.00"
    code = _MIDTRANS_CODES.get(status, "200")
    signed = hashlib.sha512(f"{name}{code}{amount}{SERVER_KEY}".encode()).hexdigest()
    return {
        "transaction_time": "2026-11-28 10:00:00",
        "transaction_status": status,
        "transaction_id": "513f1f01-c9da-474c-9fc9-d5c64364b709",
        "status_message": "midtrans payment notification",
        "status_code": code,
        "signature_key": signed,
        "payment_type": "bank_transfer",
        "order_id": name,
        "merchant_id": "G000000001",
        "gross_amount": amount,
        "fraud_status": "accept",
        "currency": payment["currency"],
    }


def invoice(name: str, payment: Any, status: str) -> dict[str, Any]:
    """An invoice of Xendit, as its API and its callback have it."""
    said = {
        "id": hashlib.sha256(name.encode()).hexdigest()[:24],
        "external_id": name,
        "user_id": "5781d19b2e2385880609791c",
        "status": _XENDIT.get(status, "PENDING"),
        "merchant_name": "Toko Contoh",
        "amount": payment["amount"],
        "currency": payment["currency"],
        "invoice_url": f"https://checkout-staging.xendit.example/web/{name}",
        "expiry_date": "2026-11-29T10:00:00.000Z",
        "created": "2026-11-28T10:00:00.000Z",
        "updated": "2026-11-28T10:00:01.000Z",
    }
    if said["status"] == "PAID":
        paid = payment["amount"] if payment["paid"] is None else payment["paid"]
        said |= {"paid_amount": paid, "paid_at": "2026-11-28T10:00:01.000Z", "payment_method": "QR_CODE"}
    return said


def xendit_refund(key: str, amount: int, moods: dict[str, str]) -> dict[str, Any]:
    status = moods.get("refund state", "SUCCEEDED")
    failure = {"failure_code": "INSUFFICIENT_BALANCE"} if status == "FAILED" else {}
    return {"id": f"rfd-{key}", "reference_id": key, "amount": amount, "currency": "IDR", "status": status, **failure}


def main() -> None:
    ProviderHandler.book = Book(Path(sys.argv[2]))
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), ProviderHandler).serve_forever()


if __name__ == "__main__":
    main()
