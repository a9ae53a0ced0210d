from tests.engine.batching.conftest import model, one_thread, qwen3
from tests.engine.kernels.conftest import library

__all__ = ["library", "model", "one_thread", "qwen3"]
