"""A line to a server that a test can cut, as a network does: what runs through it ends, and nothing new gets by."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit


class CutLine:
    def __init__(self, url: str) -> None:
        self._target = ("127.0.0.1", urlsplit(url).port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._is_cut = False
        self._flow = _flowing()
        self._frozen: list[threading.Event] = []
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def cut(self) -> None:
        self._is_cut = True
        for one in self._open:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        self._open.clear()

    def mend(self) -> None:
        self._is_cut = False

    def freeze(self) -> None:
        """What is connected stays so, and nothing comes through it any more. New connections work."""
        self._flow.clear()
        self._frozen.append(self._flow)
        self._flow = _flowing()

    def serve(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if self._is_cut:
                client.close()
                continue
            server = socket.create_connection(self._target)
            self._open += [client, server]
            for source, sink in ((client, server), (server, client)):
                self._start(_copy, source, sink, self._flow)

    def close(self) -> None:
        self.cut()
        for flow in self._frozen:
            flow.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join(5)

    def _start(self, work: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=work, args=arguments, daemon=True)
        thread.start()
        self._threads.append(thread)


@contextmanager
def line_to(url: str) -> Iterator[CutLine]:
    line = CutLine(url)
    thread = threading.Thread(target=line.serve)
    thread.start()
    try:
        yield line
    finally:
        line.close()
        thread.join()


def _flowing() -> threading.Event:
    flow = threading.Event()
    flow.set()
    return flow


def _copy(source: socket.socket, sink: socket.socket, flow: threading.Event) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            flow.wait()
            sink.sendall(data)
    for one in (source, sink):
        with suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
        one.close()
