"""How log lines look."""

import logging


def configure_logs(level: str) -> None:
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("tis").setLevel(level.upper())
