"""The link in each mail that turns mails like it off, without signing in. It is signed and names the account."""

import base64
import binascii
import hmac
from collections.abc import Collection, Sequence

from sqlalchemy.orm import Session

from tis.errors import BadRequest
from tis.marketplace.auth.accounts import account_holder
from tis.marketplace.kit.notice_preferences import NEWS_GROUPS
from tis.marketplace.kit.signing import Signer
from tis.marketplace.notices.preferences import turn_mail_off

PATH = "/api/notices/unsubscribe"
_VOID = "This link is not complete, or was made for another address."


def unsubscribe_token(signer: Signer, account: str, groups: Collection[str], email_key: str) -> str:
    said = f"{account} {','.join(sorted(groups))}"
    return f"{base64.urlsafe_b64encode(said.encode()).decode().rstrip('=')}.{_signature(signer, said, email_key)}"


def unsubscribe(session: Session, signer: Signer, token: str) -> Sequence[str]:
    """The groups that are off by mail now. Void once the account has another e-mail."""
    head, _, signature = token.partition(".")
    try:
        said = base64.urlsafe_b64decode(head + "=" * (-len(head) % 4)).decode()
    except (binascii.Error, ValueError):
        raise _void() from None
    account, _, groups = said.partition(" ")
    if not _names_account(account) or not set(groups.split(",")) <= set(NEWS_GROUPS):
        raise _void()
    holder = account_holder(session, account, locked=True)
    expected = "" if holder is None else _signature(signer, said, holder.email_key or "")
    if not hmac.compare_digest(expected.encode(), signature.encode()):
        raise _void()
    return turn_mail_off(session, account, groups.split(","))


def _names_account(account: str) -> bool:
    kind, _, number = account.partition(":")
    return kind in ("user", "supplier") and number.isascii() and number.isdigit() and len(number) <= 18


def _signature(signer: Signer, said: str, email_key: str) -> str:
    return signer.digest(f"unsubscribe\n{said}\n{email_key}".encode())[:40]


def _void() -> BadRequest:
    return BadRequest(_VOID, code="void_link")
