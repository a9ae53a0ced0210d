"""How log lines look."""

import logging
import traceback


def configure_logs(level: str) -> None:
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("tis").setLevel(level.upper())


def log_fault(what: str, fault: BaseException, request_id: str) -> None:
    """The class and the place, not the message: it may hold what a user wrote."""
    place = "".join(traceback.format_tb(fault.__traceback__))
    logging.getLogger("tis.errors").error("%s: %s, request %s\n%s", what, type(fault).__name__, request_id, place)
