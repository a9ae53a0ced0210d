"""All routes of the marketplace; `LazyMarketplace` adds the prefix `/api`."""

from fastapi import APIRouter

from tis.marketplace.admin import data_request_routes, overview_routes, preview_routes
from tis.marketplace.admin import routes as admin
from tis.marketplace.alerts import routes as alerts
from tis.marketplace.assistant import chat_routes, conversation_routes, parse_routes
from tis.marketplace.auth import email_routes, link_page
from tis.marketplace.auth import routes as auth
from tis.marketplace.notices import routes as notices
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

router = APIRouter()
# `search` before `products`: the first match wins, and `/products/{product_id}` matches `/products/search`.
for room in (
    search,
    similar,
    product_sheet,
    product_export,
    products,
    shop_routes,
    promotions,
    alerts,
    pictures,
    reviews,
    answers,
    stock,
    notices,
    taxonomy,
    suppliers,
    member_routes,
    token_routes,
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
