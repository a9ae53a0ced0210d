from collections.abc import Iterator
from typing import Any

import pytest
import torch

from tests.engine.batching.tiny import ARCHITECTURES, new_model
from tests.faults.forms import SOAK


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """For such small models, threads cost more time than they save."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(params=ARCHITECTURES)
def model(request: pytest.FixtureRequest) -> Any:
    return new_model(request.param)


# Windows, pictures, norms of queries and keys: what is kept of a request, not what a layer computes, differs in these.
@pytest.fixture(params=ARCHITECTURES if SOAK else ("llama", "gemma3", "qwen3_vl"))
def any_model(request: pytest.FixtureRequest) -> Any:
    return new_model(request.param)


@pytest.fixture
def qwen3() -> Any:
    return new_model("qwen3")
