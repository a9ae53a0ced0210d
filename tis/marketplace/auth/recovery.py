"""Resets passwords, and confirms and changes e-mails, by one-time links: what happens, and the mails.

Callers send returned mails after commit.
"""

from pydantic import SecretStr
from sqlalchemy.orm import Session

from tis.errors import NotFound, QueueFull
from tis.marketplace.auth.accounts import account_by_email, account_holder, note_of_account
from tis.marketplace.auth.links import LinkPurpose, find_link, new_link, use_link
from tis.marketplace.auth.passwords import hashed
from tis.marketplace.auth.service import AccountKind, flush_unique_email, wrong_old_password
from tis.marketplace.auth.tokens import end_all_chains
from tis.marketplace.auth.weak_passwords import require_no_personal_password
from tis.marketplace.columns import now
from tis.marketplace.context import MarketServices
from tis.marketplace.kit.fields import email_key
from tis.marketplace.kit.principal import Principal
from tis.marketplace.mail import Mail
from tis.marketplace.policy import require_account

_KINDS: tuple[AccountKind, ...] = ("user", "supplier")
# Behind the `#`, so that the secret is in no log of a server and in no `Referer`.
_PAGE = "/api/auth/link#"
_SUBJECTS: dict[LinkPurpose, str] = {
    "reset": "Atur ulang kata sandi / Reset your password",
    "confirm": "Konfirmasi alamat email / Confirm your e-mail address",
    "change": "Konfirmasi alamat email baru / Confirm your new e-mail address",
}
_ASKS: dict[LinkPurpose, tuple[str, str]] = {
    "reset": (
        "Ada permintaan untuk mengatur ulang kata sandi akun {name}. Tautan ini berlaku satu jam, sekali pakai:",
        "Somebody asked to reset the password of the account {name}. This link is valid for an hour, once:",
    ),
    "confirm": (
        "Konfirmasikan bahwa ini alamat email akun {name}. Tautan ini berlaku satu hari, sekali pakai:",
        "Confirm that this is the e-mail address of the account {name}. This link is valid for a day, once:",
    ),
    "change": (
        "Konfirmasikan bahwa akun {name} memakai alamat email ini. Tautan ini berlaku satu hari, sekali pakai:",
        "Confirm that the account {name} uses this e-mail address. This link is valid for a day, once:",
    ),
}
_IGNORE = ("Bila bukan Anda yang meminta, abaikan email ini.", "If you did not ask for it, ignore this mail.")
_NOTICE = (
    "Ada permintaan untuk mengganti alamat email akun {name}. Alamat ini tetap berlaku sampai alamat baru "
    "dikonfirmasi. Bila bukan Anda yang meminta, gantilah kata sandi Anda.",
    "Somebody asked to change the e-mail address of the account {name}. This address stays in use until the new one "
    "is confirmed. If it was not you, change your password.",
)


def reset_mails(market: MarketServices, email: str, kind: AccountKind | None) -> list[Mail]:
    """In the thread of the mail queue, so that the response takes equally long for e-mails that nobody has."""
    with market.reading() as session:
        found = [account_by_email(session, each, email_key(email)) for each in ((kind,) if kind else _KINDS)]
    mails = []
    for account, _ in filter(None, found):
        with market.writing() as session:  # of its own, as each locks an account
            mails += account_mails(session, market, account, "reset")
    return mails


def account_mails(session: Session, market: MarketServices, account: str, purpose: LinkPurpose) -> list[Mail]:
    """A mail with a link to the e-mail that the account has; none where mails are not configured.

    Locks the account, so that no link is left behind by one that is being deleted.
    """
    holder = account_holder(session, account, locked=True)
    if holder is None or holder.email is None or not market.mail.is_configured:
        return []
    return _link_mails(session, market, account, purpose, holder.email, holder.name)


def reset_password(market: MarketServices, secret: str, password: SecretStr) -> None:
    """Ends all sessions. Whoever follows the link reads the mailbox: the e-mail is confirmed, too."""
    with market.reading() as session:
        _, holder = find_link(session, secret, "reset")
        require_no_personal_password(password, holder.name, holder.email)
    password_hash = hashed(password)
    with market.writing() as session:
        link, holder = use_link(session, secret, "reset")
        holder.password_hash, holder.email_confirmed_at = password_hash, now()
        end_all_chains(session, link.account)
        note_of_account(session, link.account, "password", password=True)


def ask_confirmation(session: Session, principal: Principal, market: MarketServices) -> list[Mail]:
    return _at_least_one(account_mails(session, market, require_account(principal), "confirm"))


def ask_change(
    session: Session, principal: Principal, market: MarketServices, account: str, email: str, compared_hash: str | None
) -> list[Mail]:
    """`compared_hash` is the caller's hash that the password was compared with, before this transaction."""
    caller = account_holder(session, require_account(principal), locked=True)
    if caller is None or caller.password_hash != compared_hash:
        raise wrong_old_password()
    holder = account_holder(session, account)
    if holder is None:
        raise NotFound("Supplier not found")
    mails = _at_least_one(_link_mails(session, market, account, "change", email, holder.name))
    return [*mails, _change_notice(holder.email, holder.name)] if holder.email else mails


def confirm_email(session: Session, secret: str) -> None:
    link, holder = use_link(session, secret, "confirm", "change")
    if link.purpose == "change":
        holder.email, holder.email_key = link.email, email_key(link.email)
        holder.version += 1
    holder.email_confirmed_at = now()
    flush_unique_email(session)
    note_of_account(session, link.account, "email", email=True)


def _link_mails(
    session: Session, market: MarketServices, account: str, purpose: LinkPurpose, email: str, name: str
) -> list[Mail]:
    secret = new_link(session, account, purpose, email)
    return [] if secret is None else [_link_mail(market.rules.public_url, purpose, email, name, secret)]


def _at_least_one(mails: list[Mail]) -> list[Mail]:
    if not mails:
        raise QueueFull(
            "This account got three links within the hour. Use the newest one, or retry later.", retry_after=3600
        )
    return mails


def _link_mail(public_url: str, purpose: LinkPurpose, to: str, name: str, secret: str) -> Mail:
    link = f"{public_url}{_PAGE}{purpose}={secret}"
    parts = [
        f"{request.format(name=_on_one_line(name))}\n\n{link}\n\n{ignore}"
        for request, ignore in zip(_ASKS[purpose], _IGNORE, strict=True)
    ]
    return Mail(to, _SUBJECTS[purpose], "\n\n--\n\n".join(parts) + "\n")


def _change_notice(to: str, name: str) -> Mail:
    text = "\n\n--\n\n".join(notice.format(name=_on_one_line(name)) for notice in _NOTICE)
    return Mail(to, "Permintaan ganti email / Change of your e-mail address", text + "\n")


def _on_one_line(name: str) -> str:
    """Whoever registers somebody else's address chooses the name in the mail: it must not look like our text."""
    words = " ".join(name.split())
    plain = "".join(c for c in words if c.isalnum() or c in " '-&,")
    return f'"{plain[:40]}"'
