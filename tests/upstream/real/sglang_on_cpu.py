"""SGLang's server on a CPU, from its wheel. The kernels for CPUs are in no package, so PyTorch computes.

Its modules import names of two packages that are not there, and that a model of text does not use. Its other processes
run this file again, before anything else.
"""

import sys
from importlib.machinery import ModuleSpec
from types import ModuleType

from transformers.utils import is_torchvision_available

is_torchvision_available()  # asked before the stand-in is there, and remembered


def _stand_in(name: str, **names: object) -> ModuleType:
    module = sys.modules[name] = ModuleType(name)
    vars(module).update({"__path__": [], "__spec__": ModuleSpec(name, None), **names})
    return module


class _NoMode:
    BICUBIC = BILINEAR = NEAREST = LANCZOS = None


def _refuse(*_: object) -> None:
    raise NotImplementedError


def _kernel(name: str) -> object:
    """Kernels are imported by name, and called by what is not used here."""
    if name.startswith("__"):
        raise AttributeError(name)
    return _refuse


_functional = _stand_in("torchvision.transforms.functional", InterpolationMode=_NoMode)
_transforms = _stand_in("torchvision.transforms", InterpolationMode=_NoMode, functional=_functional)
_stand_in("torchvision", transforms=_transforms)
_stand_in("sgl_kernel", __getattr__=_kernel)


if __name__ == "__main__":
    from sglang.launch_server import run_server
    from sglang.srt.server_args import prepare_server_args

    run_server(prepare_server_args(sys.argv[1:]))
