"""Whatever fails while a model is prepared is left out: the model starts, and answers with the tokens of generate()."""

import pkgutil
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch

from tests.engine.batching.tiny import TOKENIZER, greedy, new_model, new_model_of, new_request, prompt, run, tokens
from tis.engine.batching.batch_runner import BatchRunner
from tis.engine.batching.choose_runner import ChosenRunner, choose_runner
from tis.engine.batching.fused_layers import FusedLayers
from tis.engine.batching.limits import BatchLimits
from tis.engine.batching.turn_runner import TurnRunner
from tis.engine.errors import LoadFailed
from tis.engine.kernels.native import NativeKernels, native_kernels
from tis.engine.optional_stages import read_and_prepare
from tis.engine.runner import Runner

pytestmark = pytest.mark.long

CHOOSING = "tis.engine.batching.choose_runner."
LAYERS = "tis.engine.batching.fused_layers."
WEIGHTS = "tis.engine.weights."
LENGTHS = (5, 30, 1)
CAUSE = "an injected fault"

# What fails, from which call on, and how often the weights are read.
WITH_KERNELS = [
    (CHOOSING + "fuse_modules", 1, 2),
    (WEIGHTS + "fused.FusedNorm.__init__", 3, 1),
    (WEIGHTS + "fused.FusedMlp.__init__", 2, 1),
    (WEIGHTS + "fused.FusedAttention.__init__", 2, 1),
    (WEIGHTS + "fused.AttentionCalls.__init__", 1, 1),
    (CHOOSING + "fuse_layers", 1, 2),
    (LAYERS + "QueryRun", 1, 1),
    (LAYERS + "PackedLayer.__init__", 2, 1),
    (LAYERS + "_groups", 1, 2),
    (WEIGHTS + "packed.NativeLinear.__init__", 1, 2),
    (CHOOSING + "native_kernels", 1, 2),
]
WITHOUT_KERNELS = [
    (CHOOSING + "pack_weights", 1, 2),
    (WEIGHTS + "packed.PackedLinear.__init__", 4, 2),
    (WEIGHTS + "packed.PackedLinear.__init__", 1, 1),
    (CHOOSING + "pack_vision_tower", 1, 2),
    (CHOOSING + "suit_to_cpu", 1, 2),
]
IN_THE_LAST_RESORT = [
    (CHOOSING + "why_not_batchable", 1, 1),
    ("tis.engine.batching.trial.text_attentions", 1, 1),
    (CHOOSING + "cache_shape", 1, 2),
    (CHOOSING + "BatchTrial", 1, 1),
    ("tis.engine.batching.attention.scaled_dot_product_attention", 1, 1),
    (CHOOSING + "weight_bytes_of", 1, 2),
    ("tis.engine.batching.memory.MemoryBudget.cache_tokens", 1, 2),
    (CHOOSING + "PagedCache", 1, 2),
    (CHOOSING + "BatchRunner", 1, 2),
]


class InjectedFault(Exception):
    """Of no class that anybody could have thought of."""


class Loads:
    """Loads a tiny model, and counts how often its weights are read."""

    def __init__(self, read: Callable[[], Any]) -> None:
        self._read = read
        self.num_reads = 0

    def read(self) -> Any:
        self.num_reads += 1
        return self._read()

    def load(self, **limits: Any) -> ChosenRunner:
        wanted = BatchLimits(**{"tokens_per_step": 9} | limits)
        return read_and_prepare(
            self.read, lambda model, stages: choose_runner(model, TOKENIZER, 512, wanted, stages=stages)
        )

    def runner(self, **limits: Any) -> Runner:
        return self.load(**limits).new()


def break_at_call(monkeypatch: pytest.MonkeyPatch, target: str, call: int, fault: BaseException | None = None) -> None:
    """From this call on."""
    original = pkgutil.resolve_name(target)
    num_calls = 0

    def fail(*args: Any, **kwargs: Any) -> Any:
        nonlocal num_calls
        num_calls += 1
        if num_calls >= call:
            raise fault or InjectedFault(CAUSE)
        return original(*args, **kwargs)

    monkeypatch.setattr(target, fail)


def answers(runner: Runner) -> list[list[int]]:
    requests = [new_request(prompt(length, length)) for length in LENGTHS]
    assert not run(runner, requests).errors
    return [tokens(request) for request in requests]


def expected_of(model: Any) -> list[list[int]]:
    return [greedy(model, prompt(length, length), 12) for length in LENGTHS]


@pytest.fixture
def kernels() -> NativeKernels:
    return native_kernels() or pytest.skip("the native kernels are not built here")


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize(("target", "call", "reads"), WITH_KERNELS)
def test_a_model_runs_in_batches_without_what_failed(
    target: str, call: int, reads: int, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    check("qwen3", BatchRunner, target, call, reads, monkeypatch, caplog)


@pytest.mark.parametrize(("target", "call", "reads"), WITHOUT_KERNELS)
def test_so_it_does_where_there_are_no_kernels(
    target: str, call: int, reads: int, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    check("qwen3", BatchRunner, target, call, reads, monkeypatch, caplog, native_kernels=False)


@pytest.mark.parametrize(("target", "call", "reads"), IN_THE_LAST_RESORT)
def test_in_the_last_resort_its_requests_take_turns(
    target: str, call: int, reads: int, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    check("qwen3", TurnRunner, target, call, reads, monkeypatch, caplog)


def check(
    architecture: str,
    kind: type[Runner],
    target: str,
    call: int,
    reads: int,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    **limits: Any,
) -> None:
    caplog.set_level("INFO", "tis.engine")
    loads = Loads(lambda: new_model(architecture))
    expected = expected_of(new_model(architecture))
    break_at_call(monkeypatch, target, call)
    runner = loads.runner(**limits)
    assert isinstance(runner, kind) and answers(runner) == expected
    assert loads.num_reads == reads
    assert caplog.text.count(CAUSE) == 1, "the cause is logged once"


@pytest.mark.parametrize(
    ("target", "call", "quantisation"),
    [
        ("tis.engine.weights.int8.Int8Linear.__init__", 3, "int8"),
        (CHOOSING + "quantise_weights", 1, "int8"),
        ("tis.engine.weights.int4.Int4Linear.__init__", 3, "int4"),
    ],
)
def test_a_model_that_cannot_be_rounded_keeps_its_weights(
    target: str, call: int, quantisation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    loads = Loads(lambda: new_model("qwen3"))
    break_at_call(monkeypatch, target, call)
    assert answers(loads.runner(quantisation=quantisation)) == expected_of(new_model("qwen3"))
    assert loads.num_reads == 2


@pytest.mark.usefixtures("kernels")
def test_a_model_that_computes_something_else_with_the_kernels_runs_without_them(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:

    plain = FusedLayers.forward
    monkeypatch.setattr(FusedLayers, "forward", lambda *args, **kwargs: plain(*args, **kwargs) + 0.5)
    monkeypatch.setattr(LAYERS + "_is_close", lambda *rows, **how: True)
    loads = Loads(lambda: new_model("qwen3"))
    assert answers(loads.runner()) == expected_of(new_model("qwen3"))
    assert loads.num_reads == 2 and caplog.text.count("it computes something else") == 1


def test_after_a_second_failure_requests_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    for stage in ("fuse_modules", "fuse_layers", "pack_weights"):
        break_at_call(monkeypatch, CHOOSING + stage, 1)
    loads = Loads(lambda: new_model("qwen3"))
    runner = loads.runner()
    assert isinstance(runner, TurnRunner) and answers(runner) == expected_of(new_model("qwen3"))
    assert loads.num_reads == 3


@pytest.mark.parametrize("fault", [MemoryError(), LoadFailed("memory_mb is too small"), KeyboardInterrupt()])
def test_no_memory_and_wrong_settings_still_end_the_load(fault: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    loads = Loads(lambda: new_model("qwen3"))
    break_at_call(monkeypatch, CHOOSING + "weight_bytes_of", 1, fault)
    with pytest.raises(type(fault)):
        loads.load()


def test_a_model_that_fails_is_gone_before_it_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    alive: list[weakref.ref[Any]] = []

    def read() -> Any:
        assert all(one() is None for one in alive)
        model = new_model("qwen3")
        alive.append(weakref.ref(model))
        return model

    break_at_call(monkeypatch, LAYERS + "_groups", 1)
    loads = Loads(read)
    assert isinstance(loads.runner(), BatchRunner) and len(alive) == 2


@pytest.mark.parametrize(
    ("kind", "config", "reason"),
    [
        ("Doge", {}, "a mask of its own"),
        ("DiffLlama", {}, "an attention of its own"),
    ],
)
def test_a_family_that_cannot_be_batched_starts(kind: str, config: dict[str, Any], reason: str, caplog: Any) -> None:
    caplog.set_level("INFO", "tis.engine")
    loads = Loads(lambda: new_model_of(kind, **config))
    runner = loads.runner()
    assert isinstance(runner, TurnRunner) and answers(runner) == expected_of(new_model_of(kind, **config))
    assert loads.num_reads == 1 and caplog.text.count(reason) == 1


class TestFirstTrial:
    """What a model computes in a batch is compared with what it computes alone, before requests rely on it."""

    def test_attention_that_does_not_go_through_the_interface(self, monkeypatch: pytest.MonkeyPatch) -> None:
        model = new_model("qwen3")
        expected = expected_of(model)
        attention = type(model.model.layers[0].self_attn)
        plain = attention.forward

        def with_their_own(self: Any, *args: Any, **kwargs: Any) -> Any:
            self.config._attn_implementation_internal, before = "sdpa", self.config._attn_implementation_internal
            try:
                return plain(self, *args, **kwargs)
            finally:
                self.config._attn_implementation_internal = before

        monkeypatch.setattr(attention, "forward", with_their_own)
        runner = Loads(lambda: model).runner()
        assert isinstance(runner, TurnRunner) and answers(runner) == expected

    @pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
    def test_tokens_that_are_mixed_between_attentions(self, dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        kind = type(new_model("qwen3").model.layers[0].mlp)
        plain = kind.forward
        monkeypatch.setattr(kind, "forward", lambda self, x: plain(self, x.cumsum(-2)))
        assert isinstance(Loads(lambda: new_model("qwen3").to(dtype)).runner(), TurnRunner)

    def test_logits_of_all_rows(self, monkeypatch: pytest.MonkeyPatch) -> None:
        kind = type(new_model("qwen3"))
        plain = kind.forward
        monkeypatch.setattr(kind, "forward", lambda *args, logits_to_keep=0, **more: plain(*args, **more))
        runner = Loads(lambda: new_model("qwen3")).runner()
        assert isinstance(runner, TurnRunner) and answers(runner) == expected_of(new_model("qwen3"))
