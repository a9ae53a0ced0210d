"""The rules of the marketplace, of the settings."""

from pathlib import Path
from typing import TYPE_CHECKING

from tis.http.origins import AllowedOrigins
from tis.settings import Settings

if TYPE_CHECKING:
    from tis.marketplace.mail import Mailer
    from tis.marketplace.market import MarketRules


def market_rules_of(settings: Settings) -> "MarketRules":
    from tis.marketplace.admin.retention import RetentionRules
    from tis.marketplace.alerts.watch import WatchLimits
    from tis.marketplace.assistant.shopping_assistant import AssistantLimits
    from tis.marketplace.kit.notice_deliveries import WebhookRules
    from tis.marketplace.market import MarketRules
    from tis.marketplace.payment_providers.payment_desk import ProviderUrls
    from tis.marketplace.search.meaning.meaning_search import MeaningLimits
    from tis.marketplace.settings import RateSettings

    return MarketRules(
        auth=settings.marketplace_auth,
        origins=AllowedOrigins(settings.cors_origins),
        is_local=settings.is_local,
        auto_migrate=settings.auto_migrate,
        jwt_secret=settings.jwt_secret_key.get_secret_value() if settings.jwt_secret_key else None,
        access_token_minutes=settings.access_token_expire_minutes,
        refresh_token_days=settings.refresh_token_expire_days,
        reservation_seconds=settings.reservation_seconds,
        mailer=_mailer(settings),
        public_url=public_url_of(settings),
        consent_version=settings.consent_version,
        consent_url=settings.consent_url,
        max_products_per_supplier=settings.max_products_per_supplier,
        max_branches_per_supplier=settings.max_branches_per_supplier,
        max_alerts_per_user=settings.max_alerts_per_user,
        max_saved_searches_per_user=settings.max_saved_searches_per_user,
        alert_check_seconds=settings.alert_check_seconds,
        watch=WatchLimits(search_news_minutes=settings.search_news_minutes),
        max_unsold_hold_minutes=settings.max_unsold_hold_minutes,
        max_reservations_per_account=settings.max_reservations_per_account,
        max_reserved_units_per_product=settings.max_reserved_units_per_product,
        max_open_orders_per_account=settings.max_open_orders_per_account,
        order_receipt_days=settings.order_receipt_days,
        retention=RetentionRules(
            audit_days=settings.audit_retention_days,
            movement_days=settings.movement_retention_days,
            reservation_days=settings.reservation_retention_days,
            chat_days=settings.chat_retention_days,
            order_days=settings.order_retention_days,
            message_days=settings.message_retention_days,
            order_address_days=settings.order_address_retention_days,
            delivery_days=settings.delivery_retention_days,
        ),
        hold_reminder_minutes=settings.hold_reminder_minutes,
        webhooks=WebhookRules(
            max_per_supplier=settings.max_webhooks_per_supplier,
            allow_http=settings.webhook_allow_http,
            call_seconds=settings.webhook_seconds,
            off_after_hours=settings.webhook_off_after_hours,
            max_waiting=settings.max_waiting_per_webhook,
        ),
        assistant=AssistantLimits(
            extraction_seconds=settings.assistant_extraction_seconds,
            answer_seconds=settings.assistant_answer_seconds,
            tokens_per_day=settings.chat_tokens_per_day,
        ),
        pictures_url=settings.pictures_url,
        providers=ProviderUrls(
            midtrans_snap=settings.midtrans_snap_url,
            midtrans_api=settings.midtrans_api_url,
            midtrans_sandbox_snap=settings.midtrans_sandbox_snap_url,
            midtrans_sandbox_api=settings.midtrans_sandbox_api_url,
            xendit=settings.xendit_url,
        ),
        provider_seconds=settings.payment_provider_seconds,
        meaning=MeaningLimits(settings.marketplace_meaning_seconds, settings.marketplace_min_similarity),
        rates={name: getattr(settings, name) for name in RateSettings.model_fields},
    )


def public_url_of(settings: Settings) -> str:
    return settings.public_url or f"http://127.0.0.1:{settings.port}"


def _mailer(settings: Settings) -> "Mailer | None":
    from tis.marketplace.mail import FolderMailer, SmtpMailer

    if settings.mail_folder:
        return FolderMailer(Path(settings.mail_folder), settings.mail_from)
    if settings.smtp_host is None:
        return None
    return SmtpMailer(
        settings.smtp_host,
        settings.smtp_port,
        settings.mail_from,
        settings.smtp_user,
        settings.smtp_password.get_secret_value() if settings.smtp_password else None,
        settings.smtp_security,
    )
