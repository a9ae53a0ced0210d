"""The attention on CUDA, one kernel over the paged cache, agrees with the attention on a CPU."""

from typing import Any

import pytest
import torch

from tis.engine.batching.attention import batch_attention
from tis.engine.batching.batch import Batch, QueryRun
from tis.engine.batching.kv_cache import CacheShape, LayerCache, PagedCache

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA"),
]


class _Layer:
    layer_idx = 0


def _batch(device: str, dtype: Any) -> Batch:
    """Sequences of 300 and 5 tokens in the cache, of which one and all five are new."""
    cache = PagedCache(CacheShape((LayerCache(2, 64, 64),), dtype, torch.device(device)), 4, 256)
    query_runs = [QueryRun(0, 1, 0, 299), QueryRun(1, 5, 512, 0)]
    slots = torch.tensor([299, *range(512, 517)], device=device)
    generator = torch.Generator().manual_seed(1)
    for tensor in (*cache.keys, *cache.values):
        filler = torch.randn(1024, 2, 64, generator=generator).to(device, dtype)
        tensor.copy_(filler if cache.token_axis == 0 else filler.transpose(0, 1))
    return Batch(cache, query_runs, slots)


@pytest.mark.parametrize("window", [None, 3, 100])
def test_the_paged_kernel_agrees_with_the_cpu(window: int | None) -> None:
    generator = torch.Generator().manual_seed(2)
    query, key, value = (torch.randn(1, heads, 6, 64, generator=generator) for heads in (4, 2, 2))
    results = []
    for device, dtype in (("cpu", torch.float32), ("cuda", torch.bfloat16)):
        q, k, v = (tensor.to(device, dtype) for tensor in (query, key, value))
        out, _ = batch_attention(_Layer(), q, k, v, None, sliding_window=window, batch=_batch(device, dtype))
        results.append(out.float().cpu())
    assert torch.allclose(*results, atol=0.03)
