"""What mails about news say, in Indonesian and English: what happened and where to look, never who somebody is."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from tis.marketplace.kit.news import NEWS_KINDS, NewsGroup
from tis.marketplace.kit.notice_preferences import MailPreferences
from tis.marketplace.kit.opening_hours import local_time

Language = Literal["id", "en"]
_MAX_LISTED = 40  # of a digest; the rest is counted
_MONTHS = {
    "id": ("Jan", "Feb", "Mar", "Apr", "Mei", "Jun", "Jul", "Agu", "Sep", "Okt", "Nov", "Des"),
    "en": ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"),
}
# By type, and by role where the two sides read something else.
_TEXTS: dict[str, tuple[str, str]] = {
    "hold.made buyer": ("Reservasi Anda tercatat", "Your reservation is made"),
    "hold.made shop": ("Ada reservasi baru", "A new reservation"),
    "hold.accepted buyer": ("Toko menerima reservasi Anda", "The shop accepted your reservation"),
    "hold.accepted shop": ("Toko Anda menerima reservasi", "Your shop accepted a reservation"),
    "hold.refused buyer": ("Toko menolak reservasi Anda", "The shop refused your reservation"),
    "hold.refused shop": ("Toko Anda menolak reservasi", "Your shop refused a reservation"),
    "hold.sold buyer": ("Barang yang Anda reservasi sudah terjual kepada Anda", "What you reserved is sold to you"),
    "hold.sold shop": ("Barang yang direservasi terjual", "What was reserved is sold"),
    "hold.released": ("Reservasi dibatalkan", "A reservation was released"),
    "hold.expired": ("Reservasi berakhir karena waktunya habis", "A reservation expired"),
    "hold.ends_soon": ("Reservasi Anda segera berakhir", "Your reservation ends soon"),
    "order.placed buyer": ("Pesanan Anda terkirim ke toko", "Your order is placed"),
    "order.placed shop": ("Ada pesanan baru", "A new order"),
    "order.accepted buyer": ("Toko menerima pesanan Anda", "The shop accepted your order"),
    "order.accepted shop": ("Toko Anda menerima pesanan", "Your shop accepted an order"),
    "order.paid buyer": ("Pembayaran Anda diterima", "Your payment is received"),
    "order.paid shop": ("Pesanan sudah dibayar", "An order is paid"),
    "order.handed_over": ("Pesanan sudah diserahkan", "An order was handed over"),
    "order.shipped buyer": ("Pesanan Anda dikirim", "Your order is shipped"),
    "order.shipped shop": ("Pesanan dikirim", "An order is shipped"),
    "order.received": ("Pesanan sudah diterima pembeli", "An order was received"),
    "order.refused buyer": ("Toko menolak pesanan Anda", "The shop refused your order"),
    "order.refused shop": ("Toko Anda menolak pesanan", "Your shop refused an order"),
    "order.cancelled": ("Pesanan dibatalkan", "An order was cancelled"),
    "order.expired": ("Pesanan berakhir karena waktunya habis", "An order expired"),
    "order.overdue buyer": (
        "Toko terlambat menyerahkan pesanan Anda: Anda boleh membatalkannya",
        "The shop is late with your order: you may cancel it",
    ),
    "order.overdue shop": (
        "Pesanan yang sudah dibayar terlambat diserahkan: pembeli boleh membatalkannya",
        "A paid order is late: its buyer may cancel it",
    ),
    "order.returned": ("Pesanan dikembalikan", "An order was returned"),
    "message.hidden": ("Admin telah menghapus sebuah pesan", "An admin has removed a message"),
    "message.kept": (
        "Admin telah memeriksa pesan yang dilaporkan dan membiarkannya",
        "An admin has looked at a reported message and leaves it",
    ),
    "review.written": ("Ada ulasan baru untuk barang Anda", "A new review of your goods"),
    "stock.low": ("Stok hampir habis", "Stock is low"),
    "webhook.off": (
        "Webhook toko Anda dimatikan karena tidak menjawab",
        "A webhook of your shop is off, as it did not answer",
    ),
    "webhook.owner_left": (
        "Webhook toko Anda dimatikan karena pemilik yang memasangnya atau tahu rahasianya sudah keluar; "
        "buat rahasia baru dahulu",
        "A webhook of your shop is off, as the owner who set it or knew its secret has left; make a new secret "
        "before you turn it on",
    ),
}
# For kinds without a text of their own.
_GROUP_TEXTS: dict[NewsGroup, tuple[str, str]] = {
    "holds": ("Kabar tentang reservasi", "News of a reservation"),
    "orders": ("Kabar tentang pesanan", "News of an order"),
    "messages": ("Ada pesan baru", "A new message"),
    "prices": ("Kabar tentang harga atau persediaan barang", "News of a price or of goods"),
    "stock": ("Kabar tentang stok", "News of stock"),
    "reviews": ("Kabar tentang ulasan", "News of a review"),
    "account": ("Kabar tentang akun Anda", "News of your account"),
}
_PARTS: dict[NewsGroup, tuple[str, str]] = {  # of the pages of buyers and of shops
    "holds": ("#/holds", "#/holds"),
    "orders": ("#/orders", "#/orders"),
    "messages": ("#/messages", "#/messages"),
    "prices": ("", ""),
    "stock": ("", "#/stock"),
    "reviews": ("", "#/reviews"),
    "account": ("#/account", "#/shop"),
}
_MANY = ("{num} kabar dari pasar", "{num} notices of the market")
_MORE = ("dan {num} lagi", "and {num} more")
_WHY = (
    "Email ini sesuai pilihan pemberitahuan akun Anda. Berhenti menerima email seperti ini:",
    "You get this mail by the notice settings of your account. To stop mails like this one:",
)


@dataclass(frozen=True)
class MailedNotice:
    type: str
    data: Mapping[str, Any]
    at: datetime

    @property
    def group(self) -> NewsGroup:
        return NEWS_KINDS[self.type].group


def subject_of(notices: Sequence[MailedNotice], language: Language | None) -> str:
    if len(notices) == 1:
        texts = _texts_of(notices[0])
    else:
        texts = (_MANY[0].format(num=len(notices)), _MANY[1].format(num=len(notices)))
    return " / ".join(texts[_at(one)] for one in _languages(language))


def text_of(
    notices: Sequence[MailedNotice],
    preferences: MailPreferences,
    product_names: Mapping[int, str],
    public_url: str,
    unsubscribe: str,
) -> str:
    parts = []
    for language in _languages(preferences.language):
        at = _at(language)
        said = [_paragraph(one, preferences, language, product_names, public_url) for one in notices[:_MAX_LISTED]]
        if len(notices) > _MAX_LISTED:
            said.append(_MORE[at].format(num=len(notices) - _MAX_LISTED))
        parts.append("\n\n".join([*said, f"{_WHY[at]}\n{unsubscribe}"]))
    return "\n\n--\n\n".join(parts) + "\n"


def _paragraph(
    notice: MailedNotice,
    preferences: MailPreferences,
    language: Language,
    product_names: Mapping[int, str],
    public_url: str,
) -> str:
    at = local_time(notice.at, preferences.time_zone)
    when = f"{at.day} {_MONTHS[language][at.month - 1]} {at.year} {at:%H.%M} {preferences.time_zone}"
    about = [_on_one_line(product_names.get(notice.data.get("product_id", 0), "")), _order_number(notice)]
    named = ", ".join(filter(None, about))
    said = _texts_of(notice)[_at(language)] + (f": {named}" if named else "")
    return f"{when}\n{said}\n{_link(notice, public_url)}"


def _link(notice: MailedNotice, public_url: str) -> str:
    is_shop = notice.data.get("role") == "shop"
    part = _PARTS[notice.group][is_shop]
    if not part and not is_shop and "product_id" in notice.data:
        part = f"#/p/{notice.data['product_id']}"
    return f"{public_url}/{'desk' if is_shop else 'shop'}{part}"


def _order_number(notice: MailedNotice) -> str:
    return _on_one_line(str(notice.data["number"])) if notice.group == "orders" and "number" in notice.data else ""


def _texts_of(notice: MailedNotice) -> tuple[str, str]:
    by_role = _TEXTS.get(f"{notice.type} {notice.data.get('role')}")
    return by_role or _TEXTS.get(notice.type) or _GROUP_TEXTS[notice.group]


def _on_one_line(text: str) -> str:
    """Sellers choose the names of products: one must not look like a text of ours, nor be a link."""
    return "".join(c for c in " ".join(text.split()) if c.isalnum() or c in " '-&,")[:60].strip()


def _languages(language: Language | None) -> tuple[Language, ...]:
    return ("id", "en") if language is None else (language,)


def _at(language: Language) -> int:
    return 0 if language == "id" else 1
