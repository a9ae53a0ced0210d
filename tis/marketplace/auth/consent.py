"""Consent to the privacy notice: which version, and when. The operator names the current version in CONSENT_VERSION."""

from datetime import datetime
from typing import Annotated

from pydantic import BaseModel, Field
from sqlalchemy import select
from sqlalchemy.orm import Session

from tis.errors import BadRequest
from tis.marketplace.context import ServiceRules
from tis.marketplace.tables import Consent

ConsentVersion = Annotated[str, Field(max_length=40)]


class ConsentView(BaseModel):
    """`version` is what registrations must agree to, or null. `agreed_*` are of the caller, null without a token."""

    version: str | None
    url: str | None
    agreed_version: str | None
    agreed_at: datetime | None


def consent_view(session: Session, rules: ServiceRules, account: str | None) -> ConsentView:
    agreed = latest_consent(session, account) if account else None
    return ConsentView(
        version=rules.consent_version,
        url=rules.consent_url,
        agreed_version=agreed.version if agreed else None,
        agreed_at=agreed.at if agreed else None,
    )


def agree(session: Session, rules: ServiceRules, account: str, version: str | None) -> None:
    """Records the consent. For registrations: where none is asked for, one that is sent is ignored."""
    if rules.consent_version is None:
        return
    if version != rules.consent_version:
        where = f" at {rules.consent_url}" if rules.consent_url else ""
        raise BadRequest(
            f"Show the privacy notice{where}, and send `consent_version`: {rules.consent_version!r}"
            " when the person agrees.",
            code="consent_needed",
        )
    latest = latest_consent(session, account)
    if latest is None or latest.version != version:
        session.add(Consent(account=account, version=version))


def latest_consent(session: Session, account: str) -> Consent | None:
    return session.scalar(select(Consent).where(Consent.account == account).order_by(Consent.id.desc()).limit(1))
