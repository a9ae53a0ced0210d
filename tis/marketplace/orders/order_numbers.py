"""Order numbers that are read aloud easily, and say nothing about how many orders there are."""

import secrets

from sqlalchemy import exists, select
from sqlalchemy.orm import Session

from tis.marketplace.tables import Order

_LETTERS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"  # Crockford's: without I, L, O and U
_GROUP = 4


def new_order_number(session: Session) -> str:
    """Of 40 random bits: `K7F3-9QMB`."""
    while True:
        number = "-".join("".join(secrets.choice(_LETTERS) for _ in range(_GROUP)) for _ in range(2))
        if not session.scalar(select(exists().where(Order.number == number))):
            return number
