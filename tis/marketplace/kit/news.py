"""What accounts are told: one piece of news, and the kinds of it with who hears them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

# Accounts turn each on or off, by mail and for webhooks.
NewsGroup = Literal["holds", "orders", "messages", "prices", "stock", "reviews", "account"]
Role = Literal["buyer", "shop"]


@dataclass(frozen=True)
class NewsKind:
    group: NewsGroup
    told: tuple[Role, ...] = ("buyer", "shop")


NEWS_KINDS: dict[str, NewsKind] = {
    "hold.made": NewsKind("holds"),
    "hold.accepted": NewsKind("holds"),
    "hold.refused": NewsKind("holds"),
    "hold.sold": NewsKind("holds"),
    "hold.released": NewsKind("holds"),
    "hold.expired": NewsKind("holds"),
    "hold.ordered": NewsKind("holds"),
    "message.asked": NewsKind("messages", ("shop",)),
    "message.answered": NewsKind("messages", ("buyer",)),
    "message.hidden": NewsKind("messages"),
    "message.kept": NewsKind("messages"),
    "hold.ends_soon": NewsKind("holds", ("buyer",)),
    "order.placed": NewsKind("orders"),
    "order.accepted": NewsKind("orders"),
    "order.paid": NewsKind("orders"),
    "order.handed_over": NewsKind("orders"),
    "order.shipped": NewsKind("orders"),
    "order.received": NewsKind("orders"),
    "order.refused": NewsKind("orders"),
    "order.cancelled": NewsKind("orders"),
    "order.expired": NewsKind("orders"),
    "order.returned": NewsKind("orders"),
    "order.overdue": NewsKind("orders"),  # a paid order waits for the shop too long
    "order.return_asked": NewsKind("orders", told=("shop",)),
    "order.return_refused": NewsKind("orders", told=("buyer",)),
    "payment.late": NewsKind("orders"),  # money came for an order that is not to be paid any more
    "payment.differs": NewsKind("orders", ("shop",)),
    "payment.refunded": NewsKind("orders"),
    "payment.refund_failed": NewsKind("orders", ("shop",)),
    "review.written": NewsKind("reviews", ("shop",)),
    "stock.low": NewsKind("stock", ("shop",)),
    "webhook.off": NewsKind("account", ("shop",)),
    "webhook.owner_left": NewsKind("account", ("shop",)),
    "price.fell": NewsKind("prices", ("buyer",)),
    "search.match": NewsKind("prices", ("buyer",)),
    "stock.back": NewsKind("stock", ("buyer",)),
}


@dataclass(frozen=True)
class News:
    """Told to the buyer (an account: `user:7`) and to the members of the shop, as far as its kind says."""

    type: str
    data: Mapping[str, str | int]  # numbers to read what it is about; never a name or a phone
    buyer: str | None = None
    supplier_id: int | None = None
    only: Role | None = None  # of those whom its kind tells

    @property
    def told(self) -> tuple[Role, ...]:
        roles = NEWS_KINDS[self.type].told
        return roles if self.only is None else tuple(role for role in roles if role == self.only)
