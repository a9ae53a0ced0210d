"""Pictures of every family in the batch: each request gets the tokens of `generate()` with the processor's inputs.

`make soak` tries all families; otherwise those that differ most.
"""

import logging
import os
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import transformers
from torch.nn.functional import scaled_dot_product_attention

from tests.engine.batching.tiny import TOKENIZER, Readers, run, tokens
from tests.engine.batching.vision_case import ALONE, LENGTH, TRIED, VisionCase, vision_case
from tests.engine.batching.vision_families import FamilyPrompt
from tests.engine.resuming import resumed
from tests.engine.vision.cases import picture, prompt
from tests.engine.vision.tiny_models import TINY, make_tiny
from tis.engine.batching.attention import batch_attention
from tis.engine.batching.batch import Batch, QueryRun
from tis.engine.batching.batch_runner import BatchRunner
from tis.engine.batching.choose_runner import choose_runner
from tis.engine.batching.kv_cache import CacheShape, LayerCache, PagedCache
from tis.engine.batching.limits import BatchLimits
from tis.engine.batching.towers import EncodeJob, ForwardTower, Tower
from tis.engine.batching.turn_runner import TurnRunner
from tis.engine.kernels.native import native_kernels
from tis.engine.models.loaded_model import LoadedModel
from tis.engine.models.loading import LoadOptions, load_model
from tis.engine.prepared_request import PreparedRequest
from tis.engine.prompt import ChatPrompt, media_of
from tis.engine.request import Request
from tis.engine.sampling.params import SamplingParams

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", params=TRIED)
def case(request: pytest.FixtureRequest) -> VisionCase:
    return vision_case(str(request.param))


@pytest.fixture(scope="module", params=[name for name in TRIED if name not in ALONE])
def batched(request: pytest.FixtureRequest) -> VisionCase:
    return vision_case(str(request.param))


@pytest.fixture(scope="module")
def gemma3() -> VisionCase:
    return vision_case("gemma3")


def test_the_trial_tells_which_pictures_a_batch_computes(case: VisionCase) -> None:
    assert isinstance(case.tower, str) == (case.name in ALONE), case.tower
    assert len({tuple(answer) for answer in case.expected}) == len(case.expected), "they depend on the pictures"
    assert not any("forward" in module.__dict__ for module in case.model.modules()), "the model is as it was"


def test_a_model_whose_pictures_differ_runs_through_generate_and_the_log_says_why(
    caplog: pytest.LogCaptureFixture,
) -> None:
    case = VisionCase("ovis2")
    vision: Any = SimpleNamespace(sample=lambda: case.prompts[2].sample)
    with caplog.at_level(logging.INFO, "tis.engine"):
        runner = choose_runner(case.model, TOKENIZER, 512, BatchLimits(cache_tokens=2048), vision).new()
    assert isinstance(runner, TurnRunner) and "with pictures, in a batch it computes something else" in caplog.text
    requests = [one.request(max_tokens=LENGTH) for one in case.prompts[:2]]
    assert not run(runner, requests).errors
    assert [tokens(request) for request in requests] == case.expected[:2]


@pytest.mark.parametrize("options", [{}, {"tokens_per_step": 7, "patches_per_step": 16}], ids=["whole", "parts"])
@pytest.mark.parametrize("has_kernels", [True, False], ids=["kernels", "plain"])
def test_eight_at_once_get_the_tokens_of_generate(
    batched: VisionCase, has_kernels: bool, options: dict[str, int]
) -> None:
    kernels = native_kernels() if has_kernels else None
    assert batched.answers(batched.new_runner(kernels=kernels, **options), batched.prompts) == batched.expected


def test_alone_they_get_the_tokens_of_generate(batched: VisionCase) -> None:
    for one, expected in zip(batched.prompts, batched.expected, strict=True):
        assert batched.answers(batched.new_runner(), [one]) == [expected]


def test_preempted_they_get_the_same_tokens(batched: VisionCase) -> None:
    """There is room for the prompts, and not for the answers."""
    chosen = [0, 1, 6, 7]
    prompts = [batched.prompts[at] for at in chosen]
    runner = batched.new_runner(tokens=sum(-(-len(one.ids) // 4) * 4 + 4 for one in prompts))
    assert batched.answers(runner, prompts, every=1) == [batched.expected[at] for at in chosen]
    assert runner.scheduler.num_preemptions > 0


def test_a_repeated_picture_is_encoded_once(batched: VisionCase, monkeypatch: pytest.MonkeyPatch) -> None:
    encoded = _count_encoded(batched.tower, monkeypatch)
    runner = batched.new_runner()
    for number in range(2):
        assert batched.answers(runner, batched.prompts[4:5]) == batched.expected[4:5], number
    assert sorted(encoded) == sorted({one.digest for one in batched.prompts[4].vision_inputs})


def test_another_picture_does_not_share_blocks(batched: VisionCase) -> None:
    alike = [batched.prompts[0], batched.prompts[6]]
    assert alike[0].ids == alike[1].ids
    runner = batched.new_runner()
    assert [batched.answers(runner, [one])[0] for one in alike] == [batched.expected[0], batched.expected[6]]


def test_an_answer_resumes_in_another_batch(batched: VisionCase) -> None:
    request = batched.prompts[2].request(max_tokens=LENGTH)
    whole = run(batched.new_runner(), [request]).of(request)
    parts = [(cut, resumed(request.prepared, whole[:cut])) for cut in (1, LENGTH - 1)]
    readers = run(batched.new_runner(tokens_per_step=9), [again for _, again in parts])
    for cut, again in parts:
        assert [*whole[:cut], *readers.of(again)] == whole


def test_a_picture_whose_tokens_see_each_other_is_never_cut(
    gemma3: VisionCase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its tokens are more than a step has room for."""
    runner = gemma3.new_runner(tokens_per_step=3)
    begins_and_ends: list[tuple[Any, int, int]] = []
    compute = runner._compute

    def recording(chunks: list[Any]) -> Any:
        begins_and_ends.extend((chunk.sequence, chunk.start, chunk.stop) for chunk in chunks)
        return compute(chunks)

    monkeypatch.setattr(runner, "_compute", recording)
    assert gemma3.answers(runner, gemma3.prompts) == gemma3.expected
    for sequence, start, stop in begins_and_ends:
        for first, last in sequence.pictures:
            assert not first < stop < last and not first < start < last


def test_a_cached_prefix_may_end_within_such_a_picture(gemma3: VisionCase) -> None:
    """The picture has the tokens 6 to 9, and blocks have 4."""
    runner, one = gemma3.new_runner(), gemma3.prompts[0]
    assert one.vision_inputs[0].spans == ((6, 10),)
    first = FamilyPrompt(gemma3.model, one.family).text(5, 1).picture(1, 1).text(6, 99).request(max_tokens=LENGTH)
    other, same = (gemma3.prompts[at].request(max_tokens=LENGTH) for at in (6, 0))
    runner.admit(first)
    runner.step(Readers().hand_out)
    for request in (other, same):  # the same tokens, with another picture and with the same
        runner.admit(request)
    while runner.running:
        runner.step(Readers().hand_out)
    assert [tokens(other), tokens(same)] == [gemma3.expected[6], gemma3.expected[0]]
    assert [other.answer.cached_tokens, same.answer.cached_tokens] == [4, 8]


@pytest.mark.parametrize("window", [None, 3])
def test_pictures_look_ahead_in_the_layout_of_cuda_too(window: int | None) -> None:
    """Where no kernel is used, both layouts of the cache give what the formula gives."""
    generator = torch.Generator().manual_seed(3)
    query, key, value = (torch.randn(1, heads, 9, 16, generator=generator) for heads in (4, 2, 2))
    at = torch.arange(9)
    last = torch.where((at >= 3) & (at < 7), 6, at)
    visible = at[None] <= last[:, None]
    if window is not None:
        visible &= at[None] > at[:, None] - window
    keys, values = (one.repeat_interleave(2, 1) for one in (key, value))
    expected = scaled_dot_product_attention(query, keys, values, attn_mask=visible)[0].transpose(0, 1)
    for token_axis in (0, 1):
        cache = PagedCache(CacheShape((LayerCache(2, 16, 16),), torch.float32, torch.device("cpu")), 3, 4)
        if token_axis == 0:
            cache.token_axis = 0
            cache.keys, cache.values = ([one[0].transpose(0, 1).contiguous()] for one in (cache.keys, cache.values))
        batch = Batch(cache, [QueryRun(0, 9, 0, 0, ((3, 7),))], torch.arange(9), native_kernels())
        out, _ = batch_attention(_FirstAttention(), query, key, value, None, sliding_window=window, batch=batch)
        assert torch.allclose(out[0], expected, atol=1e-5)


class _FirstAttention:
    layer_idx = 0


def test_layer_by_layer_a_tower_gives_the_same_features(batched: VisionCase) -> None:
    assert isinstance(batched.tower, ForwardTower) and batched.tower.layers is not None
    job = EncodeJob(batched.prompts[0].vision_inputs[0], 0, 1)
    with torch.inference_mode():
        [whole] = batched.tower.encode([job])
        for layers_at_once in (1, 2):
            tower_run = batched.tower.begin(job)
            assert tower_run
            outs = [tower_run.advance(layers_at_once) for _ in range(-(-tower_run.num_layers // layers_at_once))]
            assert not any(outs[:-1]) and outs[-1]
            assert torch.equal(outs[-1][0].tokens, whole.tokens)


def _count_encoded(tower: Tower | str, monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Records the digest of each picture that a tower encodes."""
    assert isinstance(tower, ForwardTower)
    encoded: list[bytes] = []
    encode = tower.encode

    def counted(jobs: Sequence[EncodeJob]) -> Any:
        encoded.extend(job.vision_input.digest for job in jobs)
        return encode(jobs)

    monkeypatch.setattr(tower, "encode", counted)
    return encoded


# From here on with official processors, from the folder of a model.
OFFICIAL = tuple(TINY) if os.environ.get("SOAK") else ("gemma3", "llava_onevision", "idefics3")


@pytest.fixture(scope="module", params=OFFICIAL)
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny(tmp_path_factory.mktemp("official") / request.param, request.param)


ASKED: tuple[ChatPrompt, ...] = (
    prompt("Bandingkan ", picture(40, 60), " dengan ", picture(90, 20), "."),
    prompt("Halo"),
    prompt(picture(40, 60), "Apa ini?"),
    prompt("Apa ", picture(30, 30), " dan ", picture(30, 30), "?"),
    prompt("Sebutkan tiga ibu kota di Asia Tenggara."),
)


def test_a_loaded_model_answers_about_pictures_as_generate_does(folder: Path) -> None:
    loaded = _loaded(folder, "float32")
    model = transformers.AutoModelForImageTextToText.from_pretrained(folder, dtype=torch.float32).eval()
    requests = [_request(loaded, asked) for asked in ASKED]
    expected = [_greedy(model, request) for request in requests]
    assert not run(_batch_runner(loaded), requests, every=2).errors
    assert [tokens(request) for request in requests] == expected


@pytest.mark.parametrize(("dtype", "quantisation"), [("bfloat16", None), ("bfloat16", "int8"), ("bfloat16", "int4")])
def test_with_weights_of_fewer_bits_it_answers_about_pictures(
    folder: Path, dtype: str, quantisation: str | None
) -> None:
    loaded = _loaded(folder, dtype, quantisation=quantisation)
    requests = [_request(loaded, asked) for asked in ASKED]
    assert not run(_batch_runner(loaded), requests, every=2).errors
    assert [len(tokens(request)) for request in requests] == [LENGTH] * len(ASKED)


def _loaded(folder: Path, dtype: str, **limits: Any) -> LoadedModel:
    options = LoadOptions(dtype=dtype, batch=BatchLimits(tokens_per_step=24, cache_tokens=2048, **limits))
    return load_model(str(folder), options, lambda stage, share: None)


def _batch_runner(loaded: LoadedModel) -> BatchRunner:
    runner = loaded.new_runner()
    assert isinstance(runner, BatchRunner)
    return runner


def _request(loaded: LoadedModel, asked: ChatPrompt) -> Request:
    assert loaded.vision
    ids, media = loaded.vision.encode(asked), media_of(asked.messages)
    vision = loaded.vision.preprocess(ids, media) if media else None
    params = SamplingParams(temperature=0.0, max_tokens=LENGTH, ignore_eos=True)
    return Request(PreparedRequest("tiny", "r1", loaded.tokenizer, ids, params, 1, vision=vision))


def _greedy(model: Any, request: Request) -> list[int]:
    row = torch.tensor([request.prompt_ids])
    made = model.generate(
        row,
        attention_mask=torch.ones_like(row),
        **(request.prepared.vision.generate_kwargs() if request.prepared.vision else {}),
        do_sample=False,
        min_new_tokens=LENGTH,
        max_new_tokens=LENGTH,
        eos_token_id=None,
    )
    return [int(token) for token in made[0, row.shape[1] :]]
