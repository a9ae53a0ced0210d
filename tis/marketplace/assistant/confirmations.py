"""Confirmations of tools that change something: the first call says what would happen and signs it, the second does it.

A model cannot make one, and one that it was given is for the same account and login, the same tool and the same
arguments, for some minutes.
"""

import base64
import binascii
import hashlib
import hmac
import json
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy.orm import Session

from tis.errors import Forbidden, Unprocessable
from tis.marketplace.kit.idempotency import claim_key
from tis.marketplace.kit.principal import Principal
from tis.marketplace.kit.signing import Signer

LIFETIME_SECONDS = 300
MAX_CHARS = 1000
_PURPOSE = b"confirmation of a tool:"
_ASK_AGAIN = "Call the tool without `confirmation` first, and show the user what it answers."


@dataclass(frozen=True)
class Confirmed:
    nonce: str
    digest: str
    facts: Mapping[str, Any]  # what the user was shown, such as the price


class Confirmations:
    def __init__(self, signer: Signer, clock: Callable[[], float] = time.time) -> None:
        self._signer, self._clock = signer, clock

    def issue(self, principal: Principal, tool: str, arguments: Mapping[str, Any], facts: Mapping[str, Any]) -> str:
        payload = json.dumps(
            {
                "for": _bound_to(principal, tool, arguments),
                "facts": dict(facts),
                "until": int(self._clock()) + LIFETIME_SECONDS,
                "nonce": secrets.token_hex(16),
            },
            separators=(",", ":"),
        ).encode()
        return f"{base64.urlsafe_b64encode(payload).decode().rstrip('=')}.{self._signer.digest(_PURPOSE + payload)}"

    def read(self, token: str, principal: Principal, tool: str, arguments: Mapping[str, Any]) -> Confirmed:
        body, _, signature = token.partition(".")
        try:
            payload = base64.b64decode(body + "=" * (-len(body) % 4), altchars=b"-_", validate=True)
        except (ValueError, binascii.Error):
            raise Forbidden(f"This is no confirmation of this server. {_ASK_AGAIN}") from None
        if not hmac.compare_digest(self._signer.digest(_PURPOSE + payload).encode(), signature.encode()):
            raise Forbidden(f"This is no confirmation of this server. {_ASK_AGAIN}")
        said = json.loads(payload)
        if said["for"] != _bound_to(principal, tool, arguments):
            raise Forbidden(f"This confirmation is for another account, tool or arguments. {_ASK_AGAIN}")
        if said["until"] < self._clock():
            raise Forbidden(f"This confirmation has expired. {_ASK_AGAIN}")
        return Confirmed(said["nonce"], hashlib.sha256(payload).hexdigest(), said["facts"])


def done_once(
    session: Session, principal: Principal, confirmed: Confirmed, work: Callable[[], dict[str, Any]]
) -> dict[str, Any]:
    """The same confirmation again gets the first answer: both are of the transaction that did the work."""
    if principal.account is None:
        raise Unprocessable("This needs an account.")
    row, is_first = claim_key(session, principal.account, f"tool {confirmed.nonce}", confirmed.digest)
    if not is_first:
        return dict(row.answer or {}) | {"repeated": True}
    row.answer = work()
    return row.answer


def _bound_to(principal: Principal, tool: str, arguments: Mapping[str, Any]) -> str:
    bound = json.dumps([principal.account, principal.chain, tool, dict(arguments)], sort_keys=True)
    return hashlib.sha256(bound.encode()).hexdigest()
