"""What pyproject.toml cannot say: the catalogue lies beside the package in a checkout, inside of it once installed.

The native kernels are compiled where there is a C compiler; the package works without them.
"""

from runpy import run_path

from setuptools import find_namespace_packages, setup

KERNELS = "tis/engine/kernels"

setup(
    packages=[*find_namespace_packages(include=["tis*"]), "tis.configs"],
    package_dir={"tis.configs": "configs"},
    ext_modules=[run_path(f"{KERNELS}/build.py")["extension"](KERNELS)],
)
