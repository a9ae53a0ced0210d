"""TLS of the server itself: a renewed certificate is used for new connections, without a restart."""

import logging
import ssl
from pathlib import Path
from typing import Self

from tis.http.file_watch import FileWatch
from tis.settings import Settings

_log = logging.getLogger("tis.cli")


class CertificateError(Exception):
    """One line that says why the certificate cannot be used."""


class Certificates:
    """A certificate and a key that do not fit, as between two copies, leave the pair before them in use."""

    def __init__(self, certfile: Path, keyfile: Path) -> None:
        """Raises CertificateError."""
        self._certfile, self._keyfile = certfile, keyfile
        self._current = self._read()
        self._watch = FileWatch([certfile, keyfile], self._reload)

    @classmethod
    def of(cls, settings: Settings) -> Self | None:
        """Raises CertificateError."""
        if settings.ssl_certfile is None or settings.ssl_keyfile is None:
            return None
        return cls(Path(settings.ssl_certfile), Path(settings.ssl_keyfile))

    def follow(self, listening: ssl.SSLContext) -> None:
        """Called on the event loop: every handshake of this context takes the newest pair."""

        def choose(connection: ssl.SSLObject, name: str | None, context: ssl.SSLContext) -> None:
            connection.context = self._current

        listening.sni_callback = choose
        self._watch.open()

    def _reload(self) -> None:
        try:
            self._current = self._read()
        except CertificateError as error:
            _log.error("%s The certificate that was read before stays in use.", error)
        else:
            _log.info("read the certificate %s", self._certfile)

    def _read(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        try:
            # A key with a password would ask for it in the terminal.
            context.load_cert_chain(self._certfile, self._keyfile, password=lambda: "")
        except (OSError, ValueError) as error:
            reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or "it is not usable"
            raise CertificateError(
                f"SSL_CERTFILE={self._certfile} with SSL_KEYFILE={self._keyfile}: {reason}."
            ) from None
        return context
