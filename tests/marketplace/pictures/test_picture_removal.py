"""What no product has goes after its time of grace, and no upload loses a picture by that."""

import hashlib
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import select, update

from tests.marketplace.shop import Shop
from tis.database.database import Database
from tis.database.errors import DatabaseUnavailable
from tis.errors import Conflict
from tis.marketplace.columns import now
from tis.marketplace.kit.picture_links import PICTURE_SIZES, PictureSize
from tis.marketplace.kit.principal import Principal
from tis.marketplace.market import Market, MarketRules
from tis.marketplace.picture_files.folder_store import FolderStore
from tis.marketplace.picture_files.picture_rendering import RenderedPicture
from tis.marketplace.picture_files.picture_storage import PictureStorage
from tis.marketplace.picture_files.picture_store import PicturesUnavailable
from tis.marketplace.pictures.service import NewPicture, add_picture, remove_picture
from tis.marketplace.tables import ProductPicture, StoredPicture

ANYBODY = Principal(is_open=True)
DAY = timedelta(days=1)
_SECRET = "a secret of the tests, long enough to be taken"


class SlowStore(FolderStore):
    """Calls `before_delete` when it is asked to delete."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.before_delete: Callable[[], object] = lambda: None
        self.fails = False

    def put(self, picture_id: str, size: PictureSize, data: bytes) -> None:
        if self.fails:
            raise PicturesUnavailable("as the test wants")
        super().put(picture_id, size, data)

    def delete(self, picture_id: str) -> None:
        self.before_delete()
        super().delete(picture_id)


@pytest.fixture
def market(database_url: str, tmp_path: Path) -> Iterator[Market]:
    market = Market(Database(database_url), MarketRules(jwt_secret=_SECRET, pictures_url=tmp_path.as_uri()))
    yield market
    market.close()


@pytest.fixture
def store(tmp_path: Path) -> SlowStore:
    return SlowStore(tmp_path / "files")


@pytest.fixture
def storage(market: Market, store: SlowStore) -> PictureStorage:
    return PictureStorage(market.writing, store, DAY)


@pytest.fixture
def product(market: Market) -> int:
    return Shop(market).product()


def rendered(name: str) -> RenderedPicture:
    digest = hashlib.sha256(name.encode()).hexdigest()
    return RenderedPicture(digest, 4, 3, {size: f"{name} {size}".encode() for size in PICTURE_SIZES})


def make_old(market: Market, picture: RenderedPicture) -> None:
    with market.writing() as session:
        old = update(StoredPicture).where(StoredPicture.hash == picture.hash)
        session.execute(old.values(unused_since=now() - 2 * DAY))


def give(market: Market, product: int, picture: RenderedPicture) -> None:
    with market.writing() as session:
        add_picture(session, ANYBODY, product, NewPicture(picture.hash))


def has_row(market: Market, picture: RenderedPicture) -> bool:
    with market.reading() as session:
        return session.get(StoredPicture, picture.hash) is not None


def is_whole(storage: PictureStorage, picture: RenderedPicture) -> bool:
    return {size: storage.read(picture.hash, size) for size in PICTURE_SIZES} == picture.files


@contextmanager
def in_thread(work: Callable[[], object]) -> Iterator[None]:
    with ThreadPoolExecutor(1) as threads:
        future = threads.submit(work)
        yield
        future.result(60)


def test_a_picture_goes_only_after_its_last_product_and_its_time_of_grace(
    market: Market, storage: PictureStorage, product: int
) -> None:
    picture, other = rendered("one"), Shop(market).product()
    storage.keep(picture)
    give(market, product, picture)
    give(market, other, picture)
    make_old(market, picture)  # as if it had lost a product long ago
    assert storage.remove_unneeded() == 1 and is_whole(storage, picture)  # looked at, and kept
    for number in (product, other):
        with market.writing() as session:
            remove_picture(session, ANYBODY, number, picture.hash)
        assert storage.remove_unneeded() == 0 and is_whole(storage, picture)
    make_old(market, picture)
    assert storage.remove_unneeded() == 1
    assert not has_row(market, picture) and storage.read(picture.hash, "small") is None


def test_an_upload_that_a_kill_has_cut_off_leaves_a_row_and_so_goes_later(
    market: Market, storage: PictureStorage, store: SlowStore, product: int
) -> None:
    """The row is committed before the first file, so whatever was written is found."""
    cut, whole = rendered("cut"), rendered("whole")
    store.fails = True
    with pytest.raises(PicturesUnavailable):
        storage.keep(cut)
    store.fails = False
    storage.keep(whole)  # and no product has it
    assert has_row(market, cut) and has_row(market, whole)
    for picture in (cut, whole):
        make_old(market, picture)
    assert storage.remove_unneeded() == 2
    assert not has_row(market, cut) and storage.read(whole.hash, "large") is None


def test_a_removal_that_a_kill_has_cut_off_loses_no_later_upload(
    market: Market, storage: PictureStorage, store: SlowStore, product: int
) -> None:
    """The files are gone, their row is still there: an upload of the same picture writes them again."""
    picture = rendered("half removed")
    storage.keep(picture)
    store.delete(picture.hash)
    storage.keep(picture)
    give(market, product, picture)
    assert is_whole(storage, picture)


def test_an_upload_of_a_picture_that_is_being_removed_waits_and_writes_it_again(
    market: Market, storage: PictureStorage, store: SlowStore, product: int
) -> None:
    picture = rendered("contested")
    storage.keep(picture)
    make_old(market, picture)
    begun = threading.Event()
    uploader: list[threading.Thread] = []

    def upload() -> None:
        begun.set()
        storage.keep(picture)
        give(market, product, picture)

    def start_upload() -> None:
        uploader.append(threading.Thread(target=upload))
        uploader[0].start()
        begun.wait(30)

    store.before_delete = start_upload
    assert storage.remove_unneeded(max_pictures=1) == 1
    uploader[0].join(60)
    assert is_whole(storage, picture) and has_row(market, picture)
    with market.reading() as session:
        assert session.scalars(select(ProductPicture.product_id).where(ProductPicture.hash == picture.hash)).all() == [
            product
        ]


def test_uploads_and_removals_at_once_never_lose_a_picture_that_a_product_has(
    market: Market, storage: PictureStorage, store: SlowStore
) -> None:
    """Four sellers take the same picture and lose it again, while two servers remove what nobody has, without grace."""
    picture, hasty = rendered("popular"), PictureStorage(market.writing, store, timedelta(0))
    products = [Shop(market).product() for _ in range(4)]
    done = threading.Event()

    def again(work: Callable[[], object]) -> None:
        """As a client does that is told to: without grace a picture may be gone, and MariaDB may see a deadlock."""
        while True:
            try:
                work()
                return
            except Conflict as error:
                assert "removed meanwhile" in error.message or "at this moment" in error.message
            except DatabaseUnavailable:
                pass

    def upload(product: int) -> None:
        storage.keep(picture)
        give(market, product, picture)

    def take_away(product: int) -> None:
        with market.writing() as session:
            remove_picture(session, ANYBODY, product, picture.hash)

    def sell(product: int) -> None:
        for at in range(6):
            again(lambda: upload(product))
            if at < 5:
                again(lambda: take_away(product))

    def remove() -> None:
        while not done.wait(0.05):  # else no upload would ever be faster
            again(lambda: hasty.remove_unneeded(max_pictures=2))

    with in_thread(remove), in_thread(remove):
        try:
            with ThreadPoolExecutor(4) as threads:
                list(threads.map(sell, products))
        finally:
            done.set()
    with market.reading() as session:
        links = session.scalars(select(ProductPicture.product_id).where(ProductPicture.hash == picture.hash)).all()
    assert sorted(links) == sorted(products) and is_whole(storage, picture) and has_row(market, picture)


def test_half_written_files_of_killed_servers_are_removed_after_an_hour(tmp_path: Path) -> None:
    moment = [0.0]
    store = FolderStore(tmp_path, clock=lambda: moment[0])
    partial = tmp_path / ".partial" / "of-a-killed-server"
    partial.parent.mkdir()
    partial.write_bytes(b"RIFF")
    moment[0] = partial.stat().st_mtime + 60
    store.tidy()
    assert partial.exists()
    moment[0] += 3600
    store.tidy()
    assert not partial.exists()


def test_a_full_disk_is_a_503_and_leaves_nothing_half_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    store = FolderStore(tmp_path / "file" / "folder")
    with pytest.raises(PicturesUnavailable) as raised:
        store.put("ab" * 32, "small", b"RIFF")
    assert raised.value.status == 503 and "file" not in raised.value.message
