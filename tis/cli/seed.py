"""`tis seed` fills the marketplace with samples. It never prompts, and leaves existing data as it is."""

import argparse
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tis.cli.ctrl_c import raise_keyboard_interrupt
from tis.setting_types import SettingsError
from tis.settings import Settings

if TYPE_CHECKING:
    from tis.database.database import Database

DESCRIPTION = "Fill the marketplace with the sample. It never prompts, and leaves existing data as it is."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--many", type=_count, metavar="N", help="add N made-up products in many shops, too")
    parser.add_argument(
        "--size",
        type=_count,
        metavar="N",
        help="add a made-up market of N products with shops, buyers and reviews, too, for demos and measurements",
    )
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="of --size: another number, another market")
    parser.add_argument(
        "--admin",
        type=_email,
        metavar="EMAIL",
        help="make this user an admin, registering them if need be; alone, it adds no sample",
    )
    parser.add_argument("--reset", action="store_true", help="first remove EVERYTHING in the marketplace")
    parser.add_argument("--yes", action="store_true", help="--reset a database that is not a SQLite file")
    parser.add_argument("--migrate", action="store_true", help="only bring the tables up to date")
    parser.add_argument("--database-url", metavar="URL", help="instead of DATABASE_URL")
    parser.add_argument("--pictures-url", metavar="URL", help="instead of PICTURES_URL; with --database-url always")


def run(parsed: argparse.Namespace) -> None:
    from tis.database.database import Database
    from tis.database.errors import DatabaseUnavailable, DatabaseUrlError
    from tis.marketplace.seed import commands as seed_commands

    raise_keyboard_interrupt()
    try:
        url, pictures_url = parsed.database_url, parsed.pictures_url
        if url is None:
            settings = Settings.from_env()
            url, pictures_url = settings.database_url.get_secret_value(), pictures_url or settings.pictures_url
        database = Database(url)
        try:
            for line in _steps(parsed, database, pictures_url):
                print(line, flush=True)  # noqa: T201
        finally:
            database.close()
    except (SettingsError, DatabaseUrlError, DatabaseUnavailable, seed_commands.SeedingRefused) as error:
        sys.exit(f"Cannot seed: {error}")


def _steps(parsed: argparse.Namespace, database: "Database", pictures_url: str | None) -> Iterator[str]:
    from tis.marketplace.seed import commands as seed_commands

    if parsed.reset:
        yield seed_commands.reset(database, sure=parsed.yes, pictures_url=pictures_url)
    migrated = seed_commands.bring_up_to_date(database)
    if parsed.migrate:
        yield migrated
        return
    if parsed.reset or parsed.many or parsed.size or not parsed.admin:
        yield seed_commands.add_sample(database, pictures_url)
    if parsed.many:
        yield seed_commands.add_large_catalogue(database, parsed.many)
    if parsed.size:
        yield seed_commands.add_market(database, parsed.size, parsed.seed)
    if parsed.admin:
        yield seed_commands.appoint_admin(database, parsed.admin)


def _email(text: str) -> str:
    from tis.marketplace.seed import commands as seed_commands

    try:
        return seed_commands.parse_email(text)
    except ValueError:
        raise argparse.ArgumentTypeError("not an e-mail address") from None


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError("not a number")
    number = int(text)
    if not 1 <= number <= 10_000_000:
        raise argparse.ArgumentTypeError("between 1 and 10,000,000")
    return number
