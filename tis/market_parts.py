"""What server and marketplace give each other: models, places for pictures, tools. It is imported when it is used."""

import asyncio
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tis.cancellation import LoopCalls
from tis.chat.run_spec import Services
from tis.chat.structured_answer import StructuredAnswers
from tis.engine.models.catalogue import CatalogueError
from tis.engine.threaded_pooling import ThreadedPooling
from tis.http.multipart import FormPart
from tis.ktp.reader import CardReader
from tis.lazy_marketplace import LazyMarketplace
from tis.lifetime import ServedEngine
from tis.mcp_server.access import McpAccess
from tis.settings import Settings

if TYPE_CHECKING:
    from tis.marketplace.feeds.crawled_shop import CrawledShop
    from tis.marketplace.feeds.product_head import CrawledHead
    from tis.marketplace.kit.card_check import CardCheck
    from tis.marketplace.pictures.alt_texts import AltTextModel


def text_models_of(settings: Settings, engine: ServedEngine, calls: LoopCalls) -> ThreadedPooling | None:
    """Raises CatalogueError for a model that is not served for this."""
    embedding, rerank = settings.marketplace_embedding_model, settings.marketplace_rerank_model
    tasks = {entry.id: entry.task for entry in engine.models}
    for variable, name, task in (
        ("MARKETPLACE_EMBEDDING_MODEL", embedding, "embedding"),
        ("MARKETPLACE_RERANK_MODEL", rerank, "rerank"),
    ):
        if name is not None and tasks.get(name) != task:
            served = ", ".join(one for one, of_one in tasks.items() if of_one == task) or "none"
            raise CatalogueError(f"{variable} names {name!r}, which is not served for {task}. Served for it: {served}.")
    if embedding is None:
        return None
    return ThreadedPooling(engine, calls, embedding, rerank)


def assistant_model_of(settings: Settings, services: Services) -> StructuredAnswers | None:
    if settings.assistant_model == "off":
        return None
    return StructuredAnswers(services, None if settings.assistant_model == "auto" else settings.assistant_model)


def alt_text_model_of(settings: Settings, services: Services, calls: LoopCalls) -> "AltTextModel | None":
    from tis.marketplace.pictures.alt_texts import AltTextModel

    if settings.picture_alt_model == "off":
        return None
    wanted = None if settings.picture_alt_model == "auto" else settings.picture_alt_model
    return AltTextModel(StructuredAnswers(services, wanted, sees=True), services.admission, calls)


def card_check_of(reader: CardReader) -> "CardCheck":
    from tis.marketplace.kit.card_check import SeenCard

    class ReaderCheck:
        """Shows pictures of shops to the reader of `/ktp-ocr`."""

        max_bytes = reader.max_bytes

        async def look_at(self, picture: FormPart, owner: str) -> SeenCard:
            result = await reader.read(picture, owner, "image", lambda stage: None)
            nik, name = (result.checked.fields[field] for field in ("nik", "nama"))
            return SeenCard(
                nik.value,
                nik.confidence,
                name.value,
                name.confidence,
                contradicts_itself=any(one.field == "nik" for one in result.checked.warnings),
                is_photocopy=result.ocr is not None and result.ocr.quality.photocopy,
            )

    return ReaderCheck()


def catalogue_access_of(marketplace: LazyMarketplace, *, with_buying: bool) -> McpAccess:
    from tis.marketplace.assistant.mcp_access import CatalogueAccess

    return CatalogueAccess(marketplace.market, with_buying=with_buying)


class LazyShopWindow:
    """A `ShopWindow` of the marketplace, which is imported when somebody looks."""

    def __init__(self, marketplace: LazyMarketplace, address: str) -> None:
        self._marketplace, self._address = marketplace, address.rstrip("/")

    async def count_read(self, address: str) -> None:
        market = await asyncio.to_thread(lambda: self._marketplace.market)
        await market.rates.count("feeds", address)

    def robots(self) -> str:
        """Pictures and feeds lie below /api."""
        return (
            f"User-agent: *\nDisallow: /v1/\nDisallow: /desk\nDisallow: /admin\nSitemap: {self._address}/sitemap.xml\n"
        )

    def product_head(self, product_id: int) -> "CrawledHead":
        return self._shop.product_head(product_id)

    def sitemap(self) -> str:
        return self._shop.sitemap()

    def sitemap_part(self, number: int) -> Iterator[str]:
        return self._shop.sitemap_part(number)

    @property
    def _shop(self) -> "CrawledShop":
        from tis.marketplace.feeds.crawled_shop import CrawledShop

        return CrawledShop(self._marketplace.market)


def require_usable_url(database_url: str) -> None:
    """Raises `DatabaseUrlError`. A plain SQLite path, the default, is accepted without importing SQLAlchemy."""
    if not re.fullmatch("sqlite:///[^?]*", database_url):
        from tis.database.database import Database

        Database(database_url).close()


def require_usable_store(pictures_url: str | None) -> None:
    """Raises SettingsError. A folder is accepted without importing SQLAlchemy."""
    if pictures_url and not re.fullmatch("file:///[^?#]+", pictures_url):
        from tis.marketplace.picture_files.picture_storage import open_picture_store

        open_picture_store(pictures_url).close()
