"""The tables. Money is whole rupiah, time is UTC; constraints refuse invalid states."""

from tis.marketplace.tables.accounts import (
    AuditEntry,
    Consent,
    DataRequest,
    OneTimeLink,
    RefreshToken,
    ShopToken,
    Supplier,
    SupplierInvitation,
    SupplierMember,
    User,
)
from tis.marketplace.tables.base import MAX_RUPIAH, UNRATED, Table
from tis.marketplace.tables.branches import Branch, BranchStock, GoodsPlace
from tis.marketplace.tables.feeds import FeedChange, FeedState
from tis.marketplace.tables.found import (
    Lexeme,
    ProductAttribute,
    ProductFacts,
    ProductVector,
    SupplierFacts,
    SupplierHours,
    SupplierWord,
)
from tis.marketplace.tables.goods import (
    Category,
    PictureFetch,
    PriceChange,
    Product,
    ProductPicture,
    SheetBatch,
    SheetImport,
    ShippedWord,
    StoredPicture,
    Synonym,
    TaxonomyVersion,
)
from tis.marketplace.tables.messages import ShopMessage, ShopTalk
from tis.marketplace.tables.notices import Notice, NoticeCounter, NoticeDelivery, NoticePreferences, Webhook
from tis.marketplace.tables.orders import CourierFee, Order, OrderAddress, OrderLine, OrderMove, ShopOrderRules
from tis.marketplace.tables.payments import Payment, PaymentCallback, PaymentRefund, ShopPaymentMethods
from tis.marketplace.tables.prices import ProductAlert, Promotion, SavedSearch, SearchFind, UnwatchedChange
from tis.marketplace.tables.sales import IdempotentRequest, Reservation, Review, StockMovement
from tis.marketplace.tables.talks import ChatUsage, Conversation, ConversationMessage, UserPreferences
from tis.marketplace.tables.variants import ProductGroup
from tis.marketplace.tables.verifications import SupplierVerification

__all__ = [
    "Branch",
    "BranchStock",
    "GoodsPlace",
    "AuditEntry",
    "Category",
    "ChatUsage",
    "Consent",
    "Conversation",
    "ConversationMessage",
    "CourierFee",
    "DataRequest",
    "FeedChange",
    "FeedState",
    "IdempotentRequest",
    "Lexeme",
    "MAX_RUPIAH",
    "Notice",
    "NoticeCounter",
    "NoticeDelivery",
    "NoticePreferences",
    "OneTimeLink",
    "Order",
    "OrderAddress",
    "OrderLine",
    "OrderMove",
    "Payment",
    "PaymentCallback",
    "PaymentRefund",
    "PictureFetch",
    "PriceChange",
    "Product",
    "ProductAlert",
    "ProductAttribute",
    "ProductFacts",
    "ProductGroup",
    "ProductPicture",
    "ProductVector",
    "Promotion",
    "RefreshToken",
    "Reservation",
    "Review",
    "SavedSearch",
    "SearchFind",
    "SheetBatch",
    "SheetImport",
    "ShippedWord",
    "ShopMessage",
    "ShopOrderRules",
    "ShopTalk",
    "ShopPaymentMethods",
    "ShopToken",
    "StockMovement",
    "StoredPicture",
    "Supplier",
    "SupplierFacts",
    "SupplierHours",
    "SupplierInvitation",
    "SupplierMember",
    "SupplierVerification",
    "SupplierWord",
    "Synonym",
    "Table",
    "TaxonomyVersion",
    "UNRATED",
    "UnwatchedChange",
    "User",
    "UserPreferences",
    "Webhook",
]
