"""All routes of the marketplace; `LazyMarketplace` adds the prefix `/api`."""

from fastapi import APIRouter

from tis.marketplace.admin import data_request_routes, overview_routes, preview_routes
from tis.marketplace.admin import routes as admin
from tis.marketplace.alerts import routes as alerts
from tis.marketplace.assistant import chat_routes, conversation_routes, parse_routes
from tis.marketplace.auth import email_routes, link_page
from tis.marketplace.auth import routes as auth
from tis.marketplace.branches import routes as branches
from tis.marketplace.feeds import routes as feeds
from tis.marketplace.messages import draft_routes as message_drafts
from tis.marketplace.messages import routes as messages
from tis.marketplace.notices import preference_routes, webhook_routes
from tis.marketplace.notices import routes as notices
from tis.marketplace.orders import move_routes as order_moves
from tis.marketplace.orders import routes as orders
from tis.marketplace.orders import shop_routes as order_rules
from tis.marketplace.payments import method_routes as payment_methods
from tis.marketplace.payments import routes as payments
from tis.marketplace.pictures import routes as pictures
from tis.marketplace.products import routes as products
from tis.marketplace.products import search_routes as search
from tis.marketplace.products import shop_routes
from tis.marketplace.products import similar_routes as similar
from tis.marketplace.promotions import routes as promotions
from tis.marketplace.reviews import answer_routes as answers
from tis.marketplace.reviews import routes as reviews
from tis.marketplace.sheets import export_routes as product_export
from tis.marketplace.sheets import routes as product_sheet
from tis.marketplace.stock import routes as stock
from tis.marketplace.suppliers import member_routes, token_routes
from tis.marketplace.suppliers import routes as suppliers
from tis.marketplace.taxonomy import routes as taxonomy
from tis.marketplace.users import routes as users
from tis.marketplace.variants import routes as variants
from tis.marketplace.verification import routes as verification

router = APIRouter()
# `search` before `products`: the first match wins, and `/products/{product_id}` matches `/products/search`.
for room in (
    search,
    similar,
    product_sheet,
    product_export,
    products,
    shop_routes,
    variants,
    promotions,
    alerts,
    pictures,
    reviews,
    answers,
    stock,
    branches,
    orders,
    order_moves,
    order_rules,
    messages,
    message_drafts,
    payments,
    payment_methods,
    notices,
    feeds,
    preference_routes,
    webhook_routes,
    taxonomy,
    suppliers,
    member_routes,
    token_routes,
    verification,
    users,
    conversation_routes,
    auth,
    email_routes,
    link_page,
    admin,
    overview_routes,
    preview_routes,
    data_request_routes,
    parse_routes,
    chat_routes,
):
    router.include_router(room.router)
router.include_router(preference_routes.link_router)
