"""Loads the largest library of torch before `import torch` does, and without Python's lock.

An import holds the lock while the system loads a library, half a second for this one, and no other thread runs: nobody
gets an answer, not even from /live. A foreign function that is called by ctypes runs without the lock.
"""

import ctypes
import importlib.util
import os
import sys
from pathlib import Path

_LIBRARY = "libtorch_cpu.so"  # knows nothing of Python


def preload_torch() -> bool:
    """Returns whether it loaded something. If not, as on other systems than Linux, `import torch` does."""
    if "torch" in sys.modules or not sys.platform.startswith("linux"):
        return False
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        return False
    library = Path(spec.origin).parent / "lib" / _LIBRARY
    if not library.exists():
        return False
    load = ctypes.CDLL(None).dlopen
    load.argtypes, load.restype = [ctypes.c_char_p, ctypes.c_int], ctypes.c_void_p
    return load(os.fsencode(library), os.RTLD_NOW) is not None
