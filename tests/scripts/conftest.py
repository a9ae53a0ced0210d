from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from scripts.demo_model.asking import DemoModel
from scripts.demo_model.folder import load


@pytest.fixture(scope="package")
def demo() -> Iterator[DemoModel]:
    # So small a model is faster on one thread, above all when other tests keep the cores busy.
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield load(Path(__file__).parents[2] / "models" / "demo")
    torch.set_num_threads(threads)
