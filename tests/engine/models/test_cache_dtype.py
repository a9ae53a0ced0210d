"""Models that have no cache of a batch say that CACHE_DTYPE does not apply to them."""

import pytest

from tis.arguments.catalogue import served_models_of
from tis.arguments.loading import loader_of
from tis.settings import Settings

pytestmark = [pytest.mark.slow, pytest.mark.model]


@pytest.mark.parametrize("model", ["echo", "demo-embedding", "demo-reranker", "demo-whisper", "demo-voice"])
@pytest.mark.parametrize("dtype", ["auto", "int8"])
def test_a_model_of_another_kind_says_so_once(model: str, dtype: str, caplog: pytest.LogCaptureFixture) -> None:
    variables = {"MODEL_REPO_ID": "echo", "MODELS": "" if model == "echo" else model, "CACHE_DTYPE": dtype}
    settings = Settings.from_env(variables, env_file=None)
    [entry] = [one for one in served_models_of(settings) if one.id == model]
    loader_of(settings)(entry, lambda stage, share: None)
    line = f"CACHE_DTYPE=int8 does not apply to {model}: only chat models of this server have such a cache"
    assert caplog.text.count(line) == (dtype == "int8")
