"""Exports all data about a user."""

from typing import Any

from sqlalchemy import Select, or_, select
from sqlalchemy.orm import Session

from tis.marketplace.auth.accounts import MAX_EXPORTED_ROWS, account_export, columns_of, rows_of, user_account
from tis.marketplace.reviews.answers import exported_answers
from tis.marketplace.tables import (
    ChatUsage,
    Conversation,
    ConversationMessage,
    DataRequest,
    ProductAlert,
    Review,
    SavedSearch,
    SearchFind,
    ShopToken,
    Supplier,
    SupplierInvitation,
    SupplierMember,
    UserPreferences,
    Webhook,
)
from tis.marketplace.users.service import find_user

_MAX_MESSAGES = 5000  # of all conversations together; each may be long, and the routes of conversations have the rest


def export_user_data(session: Session, user_id: int) -> dict[str, Any]:
    user = find_user(session, user_id)
    answers = exported_answers(session, Review.answered_by == user_account(user_id))
    conversations, were_cut = _conversations(session, user_id)
    cut = {"conversations": were_cut, "review_answers": len(answers) == MAX_EXPORTED_ROWS}
    preferences, account = session.get(UserPreferences, user_id), user_account(user_id)
    set_or_shown = or_(Webhook.set_by == account, Webhook.secret_by == account)
    return {
        "profile": {**columns_of(user), "has_password": user.password_hash is not None},
        "memberships": _memberships(session, user_id),
        "invitations": rows_of(session, select(SupplierInvitation).where(SupplierInvitation.user_id == user_id)),
        "reviews": rows_of(session, select(Review).where(Review.user_id == user_id)),
        "review_answers": answers,  # in the name of a shop
        "tokens": rows_of(session, select(ShopToken).where(ShopToken.created_by == account)),
        "webhooks": rows_of(session, select(Webhook).where(set_or_shown)),
        "conversations": conversations,
        "preferences": columns_of(preferences) if preferences else None,
        "chat_usage": rows_of(session, select(ChatUsage).where(ChatUsage.user_id == user_id)),
        "data_requests": rows_of(session, select(DataRequest).where(DataRequest.user_id == user_id)),
        "product_alerts": rows_of(session, select(ProductAlert).where(ProductAlert.user_id == user_id)),
        "saved_searches": rows_of(session, select(SavedSearch).where(SavedSearch.user_id == user_id)),
        "search_finds": rows_of(session, _finds(user_id)),
        **account_export(session, user_account(user_id), [name for name, is_cut in cut.items() if is_cut]),
    }


def _finds(user_id: int) -> Select[SearchFind]:
    own = select(SavedSearch.id).where(SavedSearch.user_id == user_id)
    return select(SearchFind).where(SearchFind.saved_search_id.in_(own))


def _conversations(session: Session, user_id: int) -> tuple[list[dict[str, Any]], bool]:
    """Oldest first, each with its messages. Were there too many messages, the oldest ones are missing."""
    own = select(Conversation).where(Conversation.user_id == user_id).order_by(Conversation.id.desc())
    found, num_left, were_cut = [], _MAX_MESSAGES, False
    for conversation in session.scalars(own).all():
        rows = select(ConversationMessage).where(ConversationMessage.conversation_id == conversation.id)
        newest = session.scalars(rows.order_by(ConversationMessage.id.desc()).limit(num_left + 1)).all()
        were_cut = were_cut or len(newest) > num_left
        newest = newest[:num_left]
        num_left -= len(newest)
        found.append({**columns_of(conversation), "messages": [columns_of(message) for message in reversed(newest)]})
    return found[::-1], were_cut


def _memberships(session: Session, user_id: int) -> list[dict[str, Any]]:
    rows = session.execute(
        select(SupplierMember, Supplier.business_name)
        .join(Supplier, Supplier.id == SupplierMember.supplier_id)
        .where(SupplierMember.user_id == user_id)
        .order_by(SupplierMember.supplier_id)
    )
    return [{**columns_of(member), "business_name": name} for member, name in rows]
