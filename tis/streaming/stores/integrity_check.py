"""Reads the whole file for damage, in a thread of its own: writes and readers go on meanwhile."""

import sqlite3
import threading
from contextlib import closing

from tis.streaming.stores.sqlite_file import FILE_ERRORS, SqliteFile, check_integrity, error_label


class IntegrityCheck:
    """Runs at the start, and again whenever a reader finds damage."""

    def __init__(self, file: SqliteFile) -> None:
        self._file = file
        self._changed = threading.Condition()
        self._is_wanted = self._is_over = False
        self._connection: sqlite3.Connection | None = None

    def start(self) -> None:
        self.request()
        threading.Thread(target=self._run, name="sessions-check", daemon=True).start()

    def request(self) -> None:
        with self._changed:
            self._is_wanted = True
            self._changed.notify()

    def stop(self) -> None:
        with self._changed:
            self._is_over = True
            if self._connection:
                self._connection.interrupt()
            self._changed.notify()

    def _run(self) -> None:
        while self._wait():
            checked = self._file.identity()[0]
            try:
                self._check()
            except FILE_ERRORS as error:  # another error than damage is for the writer to notice
                if error_label(error) == "corrupt":
                    self._file.damage = checked, str(error)

    def _wait(self) -> bool:
        with self._changed:
            self._changed.wait_for(lambda: self._is_wanted or self._is_over)
            self._is_wanted = False
            return not self._is_over

    def _check(self) -> None:
        with closing(self._file.connect_to_read()) as connection:
            with self._changed:
                if self._is_over:
                    return
                self._connection = connection
            try:
                check_integrity(connection)
            finally:
                with self._changed:
                    self._connection = None
