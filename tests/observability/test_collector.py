"""A process of our own takes what it has loaded out of later garbage collections; another process is left alone."""

import gc
import subprocess
import sys

from tests.serving import REPOSITORY
from tis.observability.collector import exempt_living_objects

PROGRAM = """
import gc, weakref
from tis.observability.collector import collect_garbage, exempt_living_objects, use_own_process
use_own_process()
loaded = [[number] for number in range(100_000)]
exempt_living_objects()
class Node: pass
old = Node()
old.itself, gone = old, weakref.ref(old)
for _ in range(3):
    gc.collect(1)
del old
young = [[number] for number in range(200_000)]
print(gone() is not None)
collect_garbage()
print(gone() is None)
del young
print(gc.get_freeze_count() > 100_000, len(gc.get_objects()) < 1000)
"""


def test_what_is_loaded_is_collected_no_more_and_the_rest_when_it_is_ordered() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    assert done.stdout == "True\nTrue\nTrue True\n"


IMPORTS = """
import gc
from tis.observability.collector import exempt_imported_objects, use_own_process, without_collections
use_own_process()
with without_collections():
    first = [[number] for number in range(100_000)]
    print(gc.isenabled(), gc.get_count()[0] > 90_000)
print(gc.isenabled(), gc.get_freeze_count() > 90_000)
second = [[number] for number in range(100_000)]
exempt_imported_objects()
print(gc.get_freeze_count() > 190_000, gc.get_stats()[2]["collections"])
"""


def test_what_is_imported_is_never_collected() -> None:
    done = subprocess.run([sys.executable, "-c", IMPORTS], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    assert done.stdout == "False True\nTrue True\nTrue 0\n"


def test_the_collector_of_another_process_stays_as_it_is() -> None:
    before = gc.get_freeze_count()
    exempt_living_objects()
    assert gc.get_freeze_count() == before
