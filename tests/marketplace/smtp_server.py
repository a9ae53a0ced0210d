"""A mail server on a real socket: enough of SMTP for one mail, without STARTTLS."""

import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class _SmtpHandler(socketserver.StreamRequestHandler):
    """Refuses recipients at `refused.example`. While `holds_back`, it takes a mail and does not say so."""

    def handle(self) -> None:
        assert isinstance(self.server, SmtpServer)
        self._say("220 here")
        for line in self.rfile:
            word = line.split(b":")[0].strip().upper()
            if word == b"DATA":
                self._say("354 go on")
                lines = iter(self.rfile.readline, b".\r\n")
                self.server.received.append(b"".join(lines))
                if self.server.holds_back:
                    self.rfile.read()  # until the client is gone
                    return
            elif word == b"QUIT":
                self._say("221 bye")
                return
            if word == b"RCPT TO" and b"refused.example" in line:
                self._say("550 nobody of this name")
            elif self.server.is_busy and word == b"MAIL FROM":
                self._say("451 later")
            else:
                self._say("250 fine")

    def _say(self, line: str) -> None:
        self.wfile.write(f"{line}\r\n".encode())


class SmtpServer(socketserver.ThreadingTCPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _SmtpHandler)
        self.received: list[bytes] = []
        self.holds_back = self.is_busy = False

    @property
    def port(self) -> int:
        return int(self.server_address[1])


@contextmanager
def smtp_server() -> Iterator[SmtpServer]:
    with SmtpServer() as server:
        thread = threading.Thread(target=lambda: server.serve_forever(0.01))
        thread.start()
        yield server
        server.shutdown()
        thread.join()
