"""Memory that was freed goes back to the system."""

import threading

import pytest

from tis.observability.memory import resident_bytes, return_freed_memory


@pytest.mark.skipif(resident_bytes() is None, reason="no /proc")
def test_what_threads_have_freed_leaves_the_process() -> None:
    freed, end = threading.Event(), threading.Event()

    def allocate() -> None:
        kept = [b"x" * (60_000 + number) for number in range(3000)]
        del kept[:-1]  # the last one holds up what glibc would return by itself
        freed.set()
        end.wait(20)

    thread = threading.Thread(target=allocate)
    thread.start()
    assert freed.wait(20)
    before = resident_bytes() or 0
    return_freed_memory()
    after = resident_bytes() or 0
    end.set()
    thread.join()
    assert after < before - 100 * 2**20
