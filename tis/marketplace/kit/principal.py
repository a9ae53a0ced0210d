"""The authenticated caller of a request, with the rights it has at this moment."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Principal:
    """`account` is `user:7`, `supplier:3` or, of a program with a token of a shop, `token:5`; None without a token."""

    account: str | None = None
    user_id: int | None = None
    supplier_ids: frozenset[int] = frozenset()  # suppliers whose products and stock it may change
    owned_ids: frozenset[int] = frozenset()  # of these, the suppliers whose members and address it may change too
    is_admin: bool = False
    # `MARKETPLACE_AUTH=open`: no token is needed, and every private field is visible.
    is_open: bool = False
    is_program: bool = False
    scopes: frozenset[str] = frozenset()  # of a program
    token_of: str | None = None  # of a program: who made its token
    request_id: str | None = None
    chain: str | None = None  # of refresh tokens, that the access token belongs to


ANONYMOUS = Principal()
