"""`Market` wires the marketplace together: database, search, token signer and sweeper. One per app."""

import logging
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Literal

from sqlalchemy.orm import Session

from tis.database.database import Database
from tis.database.errors import DatabaseUnavailable
from tis.errors import Unauthenticated
from tis.http.call_counts import CallCounts
from tis.http.rate_limits import RateLimits
from tis.marketplace.admin.retention import RetentionRules, delete_old_rows
from tis.marketplace.alerts.watch import Watch, WatchLimits
from tis.marketplace.assistant.shopping_assistant import AssistantLimits, AssistantModel, ShoppingAssistant
from tis.marketplace.auth.links import delete_expired_links
from tis.marketplace.auth.service import authenticate, find_principal
from tis.marketplace.auth.shop_tokens import delete_expired_tokens, is_shop_token, note_use, use_is_noted
from tis.marketplace.auth.tokens import delete_expired_chains
from tis.marketplace.context import ServiceRules
from tis.marketplace.kit.answer_slots import AnswerSlots
from tis.marketplace.kit.background_job import BackgroundJob
from tis.marketplace.kit.card_check import CardCheck
from tis.marketplace.kit.cursor_key import CursorKey
from tis.marketplace.kit.feed_marks import store_marks
from tis.marketplace.kit.notice_hub import NoticeHub
from tis.marketplace.kit.notice_outbox import store_notices
from tis.marketplace.kit.principal import Principal
from tis.marketplace.kit.signing import Signer, signing_secret
from tis.marketplace.kit.threads import PasswordQueue
from tis.marketplace.mail import Mailer, MailQueue
from tis.marketplace.notices.mail_sender import NoticeMailSender
from tis.marketplace.notices.webhook_http import WebhookPoster
from tis.marketplace.notices.webhook_queue import WebhookQueue
from tis.marketplace.notices.webhook_sender import WebhookSender
from tis.marketplace.orders.clock import OrderClock
from tis.marketplace.payment_providers.payment_desk import PaymentDesk, ProviderUrls
from tis.marketplace.payments.checks import PaymentChecks
from tis.marketplace.picture_files.picture_desk import PictureDesk
from tis.marketplace.picture_files.picture_input import PictureInput
from tis.marketplace.picture_files.picture_storage import MAX_REMOVED_AT_ONCE, PictureStorage, open_picture_store
from tis.marketplace.pictures.alt_texts import AltTextModel, AltTextProposals
from tis.marketplace.places.coding import PlaceCoder
from tis.marketplace.policy import TokenScope
from tis.marketplace.promotions.service import PromotionSweep
from tis.marketplace.search.backends import choose_backend
from tis.marketplace.search.index_renewal import IndexRenewal
from tis.marketplace.search.meaning.meaning_search import MeaningLimits, MeaningSearch
from tis.marketplace.search.meaning.text_models import TextModels
from tis.marketplace.search.meaning.vector_renewal import VectorRenewal
from tis.marketplace.search.product_search import ProductSearch
from tis.marketplace.sheets.jobs import ImportWorker, end_row_of_import
from tis.marketplace.sheets.sheet_pictures import PictureFetcher
from tis.marketplace.sheets.slots import SheetSlots
from tis.marketplace.stock.sweeper import Sweeper
from tis.marketplace.taxonomy.shipped_words import load_words, words_are_loaded
from tis.network.dialling import Dialler
from tis.observability.logs import log_exception
from tis.observability.request_log import current_request_id

_log = logging.getLogger("tis.marketplace")
MIGRATIONS = Path(__file__).parent / "migrations"
_MAX_WAIT_SECONDS = 10
_NUM_PICTURE_FETCHERS = 3
_IMPORT_LOOK_SECONDS = 3.0
_PAYMENT_CHECK_SECONDS = 5.0
_NUM_PAYMENT_CHECKS = 3  # a provider that is slow must not hold up the callbacks of the others
_MAIL_LOOK_SECONDS, _MAIL_CLOSE_SECONDS = 10.0, 5.0  # a mail server may be silent for longer: that mail comes again
_MAX_SHEETS_AT_ONCE = 3  # being read and imported: each may take 200 MB
_MAX_FEEDS_AT_ONCE, _MAX_FEEDS_OF_CALLER = 4, 2  # each reads the catalogue for a minute
_PAUSE_SECONDS = 1.0  # after a failure, requests fail at once for so long, instead of each trying to connect in turn


def migrate(database: Database) -> None:
    """Makes the tables, or brings them and the shipped words up to date. Several servers may do so at once."""
    database.migrate(MIGRATIONS)
    with database.reading() as session:
        if words_are_loaded(session):
            return
    with database.writing() as session:
        load_words(session)


def default_pictures_url(database: Database) -> str:
    """A folder beside the file of SQLite, with its name; else `pictures` in the current one."""
    path = database.sqlite_path
    return (path.with_name(f"{path.stem}-pictures") if path else Path("pictures")).absolute().as_uri()


@dataclass(frozen=True)
class MarketRules(ServiceRules):
    auto_migrate: bool = True
    jwt_secret: str | None = None
    rates: Mapping[str, int] = field(default_factory=dict)  # `RateSettings` by their names
    # No request waits for a sweep: a reservation that finds too little stock sweeps its product itself.
    sweep_seconds: float = 3.0
    hold_reminder_minutes: int = 0  # 0: buyers are not reminded
    alert_check_seconds: float = 10.0
    watch: WatchLimits = WatchLimits()
    mailer: Mailer | None = None
    retention: RetentionRules = RetentionRules()
    assistant: AssistantLimits = AssistantLimits()
    meaning: MeaningLimits = MeaningLimits()
    providers: ProviderUrls = ProviderUrls()
    provider_seconds: float = 10.0  # for an answer of a payment provider
    pictures_url: str | None = None  # None: the folder that `default_pictures_url` names


class Market:
    """Migrates the tables before the first transaction, as soon as the database answers."""

    def __init__(
        self,
        database: Database,
        rules: MarketRules,
        model: AssistantModel | None = None,
        text_models: TextModels | None = None,
        counts: CallCounts | None = None,
        picture_input: PictureInput | None = None,
        alt_model: AltTextModel | None = None,
        card_check: CardCheck | None = None,
        dialler: Dialler | None = None,
    ) -> None:
        """`counts`: of requests, where servers share them. `dialler`: of webhooks."""
        self.database = database
        self.rules = rules
        self.search = ProductSearch(choose_backend(database))
        self.assistant = ShoppingAssistant(self, model, rules.assistant)
        self.signer: Signer  # set by the first transaction: its key may lie beside the database
        self.mail = MailQueue(rules.mailer)
        self.notices = NoticeHub(self.reading)
        self.card_check = card_check
        self.sheet_slots = SheetSlots(_MAX_SHEETS_AT_ONCE)
        self.feed_slots = AnswerSlots("feeds", _MAX_FEEDS_AT_ONCE, _MAX_FEEDS_OF_CALLER)
        self.rates = RateLimits(rules.rates, counts)
        self.passwords = PasswordQueue()
        self._is_ready = False
        self._has_warned = False
        self._ready_lock = threading.Lock()
        self._failure: tuple[float, DatabaseUnavailable] | None = None
        self._place_coder = PlaceCoder(self.reading, self.writing)
        self._index_renewal = IndexRenewal(self.reading, self.writing, self.search)
        self._order_clock = OrderClock(self.reading, self.writing, self.search, rules)
        self._promotions = PromotionSweep(self.reading, self.writing, self.search)
        self._sweeper = Sweeper(
            self.reading,
            self.writing,
            self.search,
            self._do_hourly,
            self._do_often,
            interval_seconds=rules.sweep_seconds,
            reminder_minutes=rules.hold_reminder_minutes,
        )
        self.meaning: MeaningSearch | None = None
        self._vectors: VectorRenewal | None = None
        if text_models:
            self.meaning = MeaningSearch(self.reading, self.search, text_models, rules.meaning)
            self._vectors = VectorRenewal(self.reading, self.writing, text_models, self.meaning.matrix)
        imports = ImportWorker(
            self.reading,
            self.writing,
            self.search,
            self.find_principal,
            rules.max_products_per_supplier,
            public_url=rules.public_url,
        )
        self._importer = BackgroundJob("sheet-importer", imports.step, _IMPORT_LOOK_SECONDS)
        store = open_picture_store(rules.pictures_url or default_pictures_url(database))
        storage = PictureStorage(self.writing, store, timedelta(seconds=rules.picture_grace_seconds))
        self.pictures = PictureDesk(storage, picture_input)
        self._picture_jobs = self._jobs_of_pictures(storage, alt_model)
        self.payments = PaymentDesk(rules.providers, rules.provider_seconds, rules.public_url)
        checks = PaymentChecks(self.reading, self.writing, self.search, self.payments, lambda: self.signer, rules)
        self._payment_checks = [
            BackgroundJob(f"payment-checks-{number}", checks.step, _PAYMENT_CHECK_SECONDS)
            for number in range(_NUM_PAYMENT_CHECKS)
        ]
        poster = WebhookPoster(
            dialler or Dialler(), seconds=rules.webhooks.call_seconds, allow_http=rules.webhooks.allow_http
        )
        queue = WebhookQueue(self.reading, self.writing, lambda: self.signer, rules.webhooks)
        self._webhooks = WebhookSender(queue, poster)
        self._notice_mails: BackgroundJob | None = None
        if rules.mailer:
            sender = NoticeMailSender(self.reading, self.writing, lambda: self.signer, rules.mailer, rules.public_url)
            self._notice_mails = BackgroundJob("notice-mails", sender.step, _MAIL_LOOK_SECONDS)
        watch = Watch(self.reading, self.writing, self.search, rules.watch)
        self._watch_job = BackgroundJob("price-watch", watch.step, rules.alert_check_seconds)

    @property
    def state(self) -> Literal["ready", "waiting"]:
        return "ready" if self._is_ready and self.database.is_available else "waiting"

    @property
    def failure(self) -> str | None:
        """Why the state is `waiting`, as far as it is known."""
        return self.database.failure

    @contextmanager
    def reading(self) -> Iterator[Session]:
        self._ensure_ready()
        with self.database.reading() as session:
            yield session

    @contextmanager
    def writing(self) -> Iterator[Session]:
        self._ensure_ready()
        with self.database.writing() as session:
            yield session
            store_marks(session)
            stored = store_notices(session, is_open=self.rules.is_open, by_mail=self.mail.is_configured)
        self.notices.wake(stored.accounts)
        if stored.go_out:
            self.wake_senders()

    def authenticate(self, session: Session, token: str | None, scope: TokenScope | None = None) -> Principal:
        request_id, is_open = current_request_id(), self.rules.is_open
        return authenticate(session, self.signer, token, is_open=is_open, request_id=request_id, scope=scope)

    def note_token_use(self, token: str | None) -> None:
        """Before the request, so that nothing is done if this fails. Other tokens than those of programs need none."""
        if token is None or not is_shop_token(token):
            return
        with self.reading() as session:
            is_noted = use_is_noted(session, token)
        if not is_noted:
            with self.writing() as session:
                note_use(session, token)

    def wake_importer(self) -> None:
        self._importer.wake()
        for name, job in self._picture_jobs.items():
            if name.startswith("picture-fetcher"):
                job.wake()

    def wake_alt_texts(self) -> None:
        if job := self._picture_jobs.get("alt-texts"):
            job.wake()

    def wake_payment_checks(self) -> None:
        for job in self._payment_checks:
            job.wake()

    def wake_senders(self) -> None:
        self._webhooks.wake()
        if self._notice_mails:
            self._notice_mails.wake()

    def find_principal(self, session: Session, account: str | None, request_id: str) -> Principal | None:
        return find_principal(session, account, is_open=self.rules.is_open, request_id=request_id)

    def account_named_by(self, token: str | None) -> str | None:
        """The account of a token of ours, without a look at the database: its session may have ended."""
        if token is None or not self._is_ready:
            return None
        try:
            return self.signer.read(token, "access").account
        except Unauthenticated:
            return None

    def open(self) -> None:
        """At start, in a thread. Without a database the server still serves models, and the sweeper tries again."""
        if self.rules.is_open:
            _log.warning("MARKETPLACE_AUTH=open: this computer needs no token under /api, but for what admins do")
        try:
            self._ensure_ready()
        except DatabaseUnavailable:
            _log.warning("the marketplace waits for its database")
        except Exception as fault:
            log_exception("the marketplace cannot make its tables", fault, "-")
        self._sweeper.start()
        self._importer.start()
        for job in self._picture_jobs.values():
            job.start()
        for job in self._payment_checks:
            job.start()
        self._watch_job.start()
        if self._vectors:
            self._vectors.start()
        self._webhooks.start()
        if self._notice_mails:
            self._notice_mails.start()
        _log.info("the jobs of the marketplace run")

    def delete_expired(self) -> None:
        """Hourly: sessions and links that have expired, and rows beyond their retention."""
        with self.writing() as session:
            delete_expired_chains(session)
        with self.writing() as session:
            delete_expired_links(session)
            delete_expired_tokens(session)
        delete_old_rows(self.writing, self.rules.retention)

    def _do_often(self) -> None:
        if num_moved := self._order_clock.move_some():
            _log.info("%d orders were moved by the clock", num_moved)
        self._promotions.move_due()
        self._index_renewal.renew_some()

    def _do_hourly(self) -> None:
        self.delete_expired()
        if num_coded := self._place_coder.code_some():
            _log.info("%d suppliers and users got the code of their place", num_coded)

    def close(self) -> None:
        self.passwords.close()
        self.mail.close()
        self._webhooks.stop()
        if self._notice_mails:
            self._notice_mails.stop(_MAIL_CLOSE_SECONDS)
        if self._vectors:
            self._vectors.stop()
        self._importer.stop()
        for job in self._payment_checks:
            job.stop()
        self.payments.close()
        for job in self._picture_jobs.values():
            job.stop()
        self._watch_job.stop()
        self.pictures.close()
        self._sweeper.stop()
        self.database.close()

    def _jobs_of_pictures(self, storage: PictureStorage, alt_model: AltTextModel | None) -> dict[str, BackgroundJob]:
        fetcher = PictureFetcher(
            self.reading,
            self.writing,
            self.pictures,
            self.find_principal,
            end_row_of_import,
            self.rules.public_url,
        )
        jobs = {f"picture-fetcher-{number}": (fetcher.step, 3.0) for number in range(_NUM_PICTURE_FETCHERS)}
        jobs["picture-removal"] = (lambda: storage.remove_unneeded() == MAX_REMOVED_AT_ONCE, 600.0)
        if alt_model:
            jobs["alt-texts"] = (AltTextProposals(self.reading, self.writing, storage, alt_model).step, 30.0)
        return {name: BackgroundJob(name, step, seconds) for name, (step, seconds) in jobs.items()}

    def _ensure_ready(self) -> None:
        if self._is_ready:
            return
        if not self._ready_lock.acquire(timeout=_MAX_WAIT_SECONDS):
            raise DatabaseUnavailable("The marketplace is getting ready.", retry_after=5)
        try:
            self._fail_during_pause()
            if not self._is_ready:
                try:
                    self._migrate()
                finally:
                    self._warn_of_new_file()
                secret = signing_secret(self.database, self.rules.jwt_secret)
                self.signer, self.search.cursor_key = Signer(secret), CursorKey(secret)
                self._is_ready = True
        except DatabaseUnavailable as failure:
            self._failure = self._failure or (time.monotonic(), failure)
            raise
        finally:
            self._ready_lock.release()

    def _warn_of_new_file(self) -> None:
        if self.database.created_file and not self._has_warned:
            _log.warning("there was no database at %s: created an empty one", self.database.created_file)
            self._has_warned = True

    def _fail_during_pause(self) -> None:
        if self._failure and time.monotonic() - self._failure[0] < _PAUSE_SECONDS:
            failure = self._failure[1]
            raise DatabaseUnavailable(failure.message, retry_after=failure.retry_after)
        self._failure = None

    def _migrate(self) -> None:
        if self.rules.auto_migrate:
            migrate(self.database)
        elif not self.database.is_migrated(MIGRATIONS):
            raise DatabaseUnavailable("The tables are not up to date: run `python seed_data.py --migrate`.")
