"""A GGUF file, served: by the OpenAI client, from a catalogue, and by `tis serve model.gguf`."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
from openai import OpenAI

from tests.cli.tis_process import TIS, environment
from tests.engine.batching.tiny import run, tokens
from tests.engine.conftest import DEMO
from tests.serving import NO_RATE_LIMITS, free_port, served, settings_with, wait_until_live
from tis.engine.models.loading import LoadOptions, load_model
from tis.engine.prepared_request import PreparedRequest
from tis.engine.prompt import ChatPrompt
from tis.engine.request import Request
from tis.engine.sampling.params import SamplingParams

pytestmark = [pytest.mark.model, pytest.mark.slow, pytest.mark.long]
CHAT: list[Any] = [{"role": "user", "content": "Hello, how are you?"}]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import transformers
    from gguf import GGMLQuantizationType

    from tests.engine.gguf_files import tiny_model, write_gguf

    path = tmp_path_factory.mktemp("gguf") / "shop-q4_k.gguf"
    tokenizer = transformers.AutoTokenizer.from_pretrained(DEMO)
    model = tiny_model(transformers, "Qwen3", len(tokenizer), max_position_embeddings=1024)
    write_gguf(path, model, tokenizer, GGMLQuantizationType.Q4_K)
    return path


@pytest.fixture(scope="module")
def expected(file: Path) -> str:
    loaded = load_model(str(file), LoadOptions(device_map="cpu"), lambda stage, share: None)
    prompt_ids = loaded.tokenizer.encode_chat(ChatPrompt(CHAT))
    params = SamplingParams(temperature=0, max_tokens=8, ignore_eos=True)
    request = Request(PreparedRequest("m", "r", loaded.tokenizer, prompt_ids, params, 1))
    assert not run(loaded.new_runner(), [request]).errors
    return "".join(loaded.tokenizer.token_text(one) for one in tokens(request))


def answer_of(client: OpenAI, model: str) -> str:
    made = client.chat.completions.create(
        model=model, messages=CHAT, max_tokens=8, temperature=0, extra_body={"ignore_eos": True}
    )
    assert made.usage is not None and made.usage.completion_tokens == 8
    return made.choices[0].message.content or ""


def test_a_catalogue_entry_may_name_a_file(file: Path, expected: str, tmp_path: Path) -> None:
    catalogue = tmp_path / "models.yaml"
    catalogue.write_text(f"models:\n  shop:\n    repo: {file}\n  echo: {{}}\n")
    settings = settings_with(model_config_path=str(catalogue), models="shop", device_map="cpu")
    with served(settings) as server, OpenAI(base_url=f"{server.url}/v1", api_key="none", timeout=120) as client:
        assert {model.id for model in client.models.list()} == {"echo", "shop"}
        streamed = client.chat.completions.create(
            model="shop", messages=CHAT, max_tokens=8, temperature=0, stream=True, extra_body={"ignore_eos": True}
        )
        text = "".join(chunk.choices[0].delta.content or "" for chunk in streamed if chunk.choices)
        assert text == answer_of(client, "shop") == expected


def test_tis_serve_takes_a_file(file: Path, expected: str, tmp_path: Path) -> None:
    port = free_port()
    variables = environment(**NO_RATE_LIMITS, DEVICE_MAP="cpu", OMP_NUM_THREADS="1")
    command = [*TIS, "serve", str(file), "--port", str(port), "--host", "127.0.0.1"]
    process = subprocess.Popen(command, cwd=tmp_path, env=variables)
    try:
        wait_until_live(f"http://127.0.0.1:{port}")
        with OpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="none", timeout=120, max_retries=5) as client:
            [model] = client.models.list()
            assert model.id == "shop-q4_k"
            assert answer_of(client, "shop-q4_k") == expected
    finally:
        process.terminate()
        process.wait(30)
