"""Opens the provider of a shop: its adapter, with the keys of the shop and the addresses of the settings."""

from dataclasses import dataclass

from tis.errors import Conflict
from tis.marketplace.kit.signing import Signer
from tis.marketplace.payment_providers.credentials import CredentialsLost, unseal
from tis.marketplace.payment_providers.midtrans import Midtrans
from tis.marketplace.payment_providers.provider import PaymentProvider
from tis.marketplace.payment_providers.provider_client import ProviderClient
from tis.marketplace.payment_providers.qr_reader import QrReader
from tis.marketplace.payment_providers.xendit import Xendit
from tis.marketplace.tables import ShopPaymentMethods

KEYS_LOST = "The shop has to send the keys of its payment provider again."


@dataclass(frozen=True)
class ProviderUrls:
    midtrans_snap: str = "https://app.midtrans.com"
    midtrans_api: str = "https://api.midtrans.com"
    midtrans_sandbox_snap: str = "https://app.sandbox.midtrans.com"
    midtrans_sandbox_api: str = "https://api.sandbox.midtrans.com"
    xendit: str = "https://api.xendit.co"  # its keys are of one environment


@dataclass(frozen=True)
class StoredKeys:
    """Read in a transaction, opened after it."""

    supplier_id: int
    provider: str
    environment: str
    sealed: str


def stored_keys(row: ShopPaymentMethods | None) -> StoredKeys | None:
    if row is None or row.provider is None or row.environment is None or row.sealed_credentials is None:
        return None
    return StoredKeys(row.supplier_id, row.provider, row.environment, row.sealed_credentials)


class PaymentDesk:
    def __init__(self, urls: ProviderUrls, seconds: float, public_url: str) -> None:
        self.client = ProviderClient(seconds)
        self.codes = QrReader()
        self._urls = urls
        self._public_url = public_url

    def callback_url(self, provider: str, supplier_id: int) -> str:
        return f"{self._public_url}/api/payments/callbacks/{provider}/{supplier_id}"

    def return_url(self, order_id: str) -> str:
        """Where the provider sends the buyer back to."""
        return f"{self._public_url}/shop?order={order_id}"

    def opened(self, signer: Signer, keys: StoredKeys) -> PaymentProvider:
        """Raises Conflict if the keys cannot be read any more."""
        try:
            values = unseal(signer, keys.supplier_id, keys.provider, keys.sealed)
        except CredentialsLost:
            raise Conflict(KEYS_LOST, code="provider_keys_lost") from None
        urls = self._urls
        if keys.provider == "xendit":
            return Xendit(self.client, urls.xendit, values["secret_key"], values["callback_token"])
        if keys.environment == "sandbox":
            return Midtrans(self.client, urls.midtrans_sandbox_snap, urls.midtrans_sandbox_api, values["server_key"])
        return Midtrans(self.client, urls.midtrans_snap, urls.midtrans_api, values["server_key"])

    def close(self) -> None:
        self.client.close()
