"""An upstream, or a proxy before it, that resets connections as soon as they are made."""

import asyncio
import socket
import struct
import threading
from collections.abc import Iterator

import pytest

from tis.engine.models.entry_fields import UpstreamSeconds
from tis.upstream.errors import UpstreamFault
from tis.upstream.http_client import UpstreamHttp

pytestmark = pytest.mark.long

_RESET = struct.pack("ii", 1, 0)  # SO_LINGER of no time


@pytest.fixture
def resetting_url() -> Iterator[str]:
    listener = socket.create_server(("127.0.0.1", 0), backlog=128)

    def accept() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            connection.close()

    thread = threading.Thread(target=accept)
    thread.start()
    yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    thread.join()


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_a_reset_at_any_moment_is_a_fault_of_the_upstream(resetting_url: str, loop: str) -> None:
    new_loop = pytest.importorskip("uvloop").new_event_loop if loop == "uvloop" else None

    async def ask() -> None:
        http = UpstreamHttp(resetting_url, "", UpstreamSeconds(), None)
        for _ in range(150):  # it takes some luck
            found = await asyncio.gather(*(http.get("/models", 5) for _ in range(12)), return_exceptions=True)
            assert [one for one in found if not isinstance(one, UpstreamFault)] == []
        await http.close()

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(ask())
