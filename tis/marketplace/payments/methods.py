"""Reads and changes how a shop is paid."""

from sqlalchemy.orm import Session

from tis.errors import Unprocessable
from tis.marketplace.columns import now
from tis.marketplace.context import MarketServices
from tis.marketplace.kit import audit
from tis.marketplace.kit.principal import Principal
from tis.marketplace.orders.payment_methods import methods_of
from tis.marketplace.payment_providers.credentials import CredentialsLost, seal, unseal
from tis.marketplace.payments.method_schemas import (
    MethodsChange,
    PaymentMethodsView,
    ProviderChange,
    ProviderView,
    QrisView,
    TransferAccount,
)
from tis.marketplace.payments.qris import NoQris, read_static_qris
from tis.marketplace.policy import require_owner
from tis.marketplace.suppliers.service import lock_supplier_for_update, public_supplier
from tis.marketplace.tables import ShopPaymentMethods


def shown_methods(
    session: Session, principal: Principal, market: MarketServices, supplier_id: int
) -> PaymentMethodsView:
    public_supplier(session, principal, supplier_id)
    require_owner(principal, supplier_id)
    return _view(market, session.get(ShopPaymentMethods, supplier_id))


def change_methods(
    session: Session, principal: Principal, market: MarketServices, supplier_id: int, body: MethodsChange
) -> PaymentMethodsView:
    lock_supplier_for_update(session, principal, supplier_id)
    row = session.get(ShopPaymentMethods, supplier_id) or ShopPaymentMethods(supplier_id=supplier_id, takes_cash=True)
    session.add(row)
    sent = body.model_fields_set
    if "cash" in sent:
        row.takes_cash = body.cash
    if "transfer" in sent:
        account = body.transfer.model_dump() if body.transfer else {}
        row.bank_name = account.get("bank_name")
        row.account_number = account.get("account_number")
        row.account_holder = account.get("account_holder")
    if "qris" in sent:
        row.qris_text = _checked_code(body.qris.text) if body.qris else None
    if "provider" in sent:
        _change_provider(market, row, body.provider)
    if not methods_of(row):
        raise Unprocessable("A shop takes at least one way of paying.")
    audit.note(session, principal, "supplier.payment_methods", "supplier", supplier_id, **dict.fromkeys(sent, True))
    session.flush()
    return _view(market, row)


def _checked_code(text: str) -> str:
    try:
        return read_static_qris(text.strip()).text
    except NoQris as reason:
        raise Unprocessable(f"The QRIS code is not taken: {reason}.") from None


def _change_provider(market: MarketServices, row: ShopPaymentMethods, change: ProviderChange | None) -> None:
    if change is None:
        row.provider = row.environment = row.sealed_credentials = row.credentials_at = None
        return
    if change.keys is not None:
        row.sealed_credentials = seal(market.signer, row.supplier_id, change.provider, change.keys)
        row.credentials_at = now()
    elif row.sealed_credentials is None or (row.provider, row.environment) != (change.provider, change.environment):
        raise Unprocessable(f"Send the keys of {change.provider} for this environment.")
    row.provider, row.environment = change.provider, change.environment


def _view(market: MarketServices, row: ShopPaymentMethods | None) -> PaymentMethodsView:
    return PaymentMethodsView(
        offered=list(methods_of(row)),
        cash=row is None or row.takes_cash,
        transfer=transfer_account(row),
        qris=_qris_view(row),
        provider=_provider_view(market, row),
    )


def transfer_account(row: ShopPaymentMethods | None) -> TransferAccount | None:
    if row is None or row.account_number is None:
        return None
    return TransferAccount(
        bank_name=row.bank_name, account_number=row.account_number, account_holder=row.account_holder
    )


def _qris_view(row: ShopPaymentMethods | None) -> QrisView | None:
    if row is None or row.qris_text is None:
        return None
    code = read_static_qris(row.qris_text)
    return QrisView(text=code.text, merchant_name=code.merchant_name, merchant_city=code.merchant_city)


def _provider_view(market: MarketServices, row: ShopPaymentMethods | None) -> ProviderView | None:
    if row is None or row.provider is None or row.sealed_credentials is None:
        return None
    try:
        unseal(market.signer, row.supplier_id, row.provider, row.sealed_credentials)
        is_readable = True
    except CredentialsLost:
        is_readable = False
    return ProviderView.model_validate(
        {
            "provider": row.provider,
            "environment": row.environment,
            "keys_since": row.credentials_at,
            "keys_are_readable": is_readable,
            "callback_url": market.payments.callback_url(row.provider, row.supplier_id),
        }
    )
