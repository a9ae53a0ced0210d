"""What pyproject.toml cannot say: catalogue and pages lie beside the package in a checkout, inside it once installed.

The native kernels are compiled where there is a C compiler; the package works without them.
"""

from runpy import run_path

from setuptools import find_namespace_packages, setup

KERNELS = "tis/engine/kernels"
build = run_path(f"{KERNELS}/build.py")

setup(
    packages=[*find_namespace_packages(include=["tis*"]), "tis.configs", "tis.pages.web"],
    package_dir={"tis.configs": "configs", "tis.pages.web": "web"},
    ext_modules=[] if build["why_not_here"]() else [build["extension"](KERNELS)],
)
