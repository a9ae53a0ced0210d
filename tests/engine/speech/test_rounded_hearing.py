"""A Whisper whose weights are integers: how many bits have what, and that it hears the same in company."""

from pathlib import Path
from typing import Any, Literal

import pytest
import torch

from tests.engine.speech.hearing import heard, load, prepared
from tests.engine.speech.models import save_whisper, sound
from tis.engine.batching.limits import BatchLimits
from tis.engine.kernels.integer_product import WeightBits, takes_integers
from tis.engine.kernels.native import NativeKernels, native_kernels
from tis.engine.speech.linear_maps import LinearMaker, RoundedMap, TorchMap

pytestmark = pytest.mark.model


@pytest.fixture
def kernels() -> NativeKernels:
    found = native_kernels()
    if found is None or not takes_integers(found, 4, 64):
        pytest.skip("there are no kernels for integers here")
    return found


@pytest.mark.parametrize("bits", [8, 4])
def test_a_head_has_8_bits(kernels: NativeKernels, bits: WeightBits) -> None:
    torch.manual_seed(0)
    maker, rows = LinearMaker(kernels, bits=bits), torch.randn(3, 64)
    for is_head, expected in ((False, bits), (True, 8)):
        layer = torch.nn.Linear(64, 96)
        exact = layer(rows).detach()
        made: Any = maker.of(layer, is_head=is_head)
        assert isinstance(made, RoundedMap)
        error = float((made(rows) - exact).norm() / exact.norm())
        assert error < 0.015 if expected == 8 else 0.03 < error < 0.12


def test_without_kernels_weights_stay_as_they_are() -> None:
    layer, rows = torch.nn.Linear(64, 96), torch.randn(3, 64)
    exact = layer(rows)
    made: Any = LinearMaker(None, bits=4).of(layer)
    assert isinstance(made, TorchMap) and torch.equal(made(rows), exact)


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("quantisation", ["int8", "int4"])
def test_windows_are_heard_alike_alone_and_in_company(
    tmp_path: Path, quantisation: Literal["int8", "int4"], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tis.engine.speech.running_window.repeats_itself", lambda text: False)
    loaded = load(save_whisper(tmp_path), batch=BatchLimits(quantisation=quantisation))
    windows = [prepared(loaded, sound(seed, 0.5)) for seed in (1, 2, 3)]
    together = [answer.tokens for answer in heard(loaded, windows)]
    assert together == [heard(loaded, [window])[0].tokens for window in windows]
    assert all(together)
