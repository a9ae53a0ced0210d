"""Resets passwords, and confirms and changes e-mails, by one-time links. Callers send returned mails after commit."""

from pydantic import SecretStr
from sqlalchemy.orm import Session

from tis.errors import NotFound, QueueFull
from tis.marketplace.auth.accounts import account_by_email, account_holder, split_account
from tis.marketplace.auth.links import LinkPurpose, find_link, new_link, use_link
from tis.marketplace.auth.mail import Mail
from tis.marketplace.auth.mail_texts import change_notice, link_mail
from tis.marketplace.auth.passwords import hashed
from tis.marketplace.auth.service import AccountKind, flush_unique_email, wrong_old_password
from tis.marketplace.auth.tokens import end_all_chains
from tis.marketplace.auth.weak_passwords import require_no_personal_password
from tis.marketplace.columns import now
from tis.marketplace.context import MarketServices
from tis.marketplace.kit import audit
from tis.marketplace.kit.fields import email_key
from tis.marketplace.kit.principal import Principal
from tis.marketplace.policy import require_account
from tis.observability.request_log import current_request_id


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
        _note(session, link.account, "password", password=True)


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
    return [*mails, change_notice(holder.email, holder.name)] if holder.email else mails


def confirm_email(session: Session, secret: str) -> None:
    link, holder = use_link(session, secret, "confirm", "change")
    if link.purpose == "change":
        holder.email, holder.email_key = link.email, email_key(link.email)
        holder.version += 1
    holder.email_confirmed_at = now()
    flush_unique_email(session)
    _note(session, link.account, "email", email=True)


def _link_mails(
    session: Session, market: MarketServices, account: str, purpose: LinkPurpose, email: str, name: str
) -> list[Mail]:
    secret = new_link(session, account, purpose, email)
    return [] if secret is None else [link_mail(market.rules.public_url, purpose, email, name, secret)]


def _at_least_one(mails: list[Mail]) -> list[Mail]:
    if not mails:
        raise QueueFull(
            "This account got three links within the hour. Use the newest one, or retry later.", retry_after=3600
        )
    return mails


def _note(session: Session, account: str, what: str, **changes: bool) -> None:
    kind, number = split_account(account)
    audit.note(session, Principal(account, request_id=current_request_id()), f"{kind}.{what}", kind, number, **changes)


_KINDS: tuple[AccountKind, ...] = ("user", "supplier")
