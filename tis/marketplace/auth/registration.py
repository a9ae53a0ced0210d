"""What every registration does for its new account: tokens, consent, and a mail that confirms the e-mail."""

from sqlalchemy.orm import Session

from tis.marketplace.auth.consent import agree
from tis.marketplace.auth.mail import Mail
from tis.marketplace.auth.recovery import account_mails
from tis.marketplace.auth.tokens import TokenPair, begin_chain
from tis.marketplace.context import RequestContext


def begin_account(
    session: Session, context: RequestContext, account: str, consent_version: str | None
) -> tuple[TokenPair, list[Mail]]:
    """The caller sends the mails after the transaction."""
    agree(session, context.market.rules, account, consent_version)
    tokens = begin_chain(session, context.market, account, context.agent)
    return tokens, account_mails(session, context.market, account, "confirm")
