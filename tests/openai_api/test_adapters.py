"""LoRA adapters as models of their own, over HTTP: beside their base and one another, also after kill -9."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import transformers
from openai import AsyncOpenAI, NotFoundError

from tests.engine.adapters import save_adapter
from tests.engine.conftest import DEMO
from tests.serving import Served, served, settings_with
from tis.arguments.catalogue import served_models_of
from tis.engine.models.catalogue import CatalogueError

pytestmark = [
    pytest.mark.model,
    pytest.mark.anyio,
    pytest.mark.filterwarnings("ignore:.*is_gradient_checkpointing.*:FutureWarning"),  # of PEFT itself
]

NAMES = ("formal", "terse")
LENGTH = 24


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    model = transformers.AutoModelForImageTextToText.from_pretrained(DEMO).eval()
    made = {name: tmp_path_factory.mktemp(name) for name in NAMES}
    for seed, folder in enumerate(made.values()):
        targets = r".*language_model.*\.(q_proj|v_proj|up_proj|down_proj)"
        save_adapter(model, folder, seed, r=4, lora_alpha=8, target_modules=targets)
    return made


@pytest.fixture(scope="module")
def server(folders: dict[str, Path]) -> Iterator[Served]:
    with served(_settings(folders)) as running:
        yield running


def _settings(folders: dict[str, Path], **more: Any) -> Any:
    adapters = ",".join(f"{name}={folder}" for name, folder in folders.items())
    return settings_with(model_repo_id=str(DEMO), adapters=adapters, load_wait_seconds=120, **more)


async def _said(client: AsyncOpenAI, model: str, text: str) -> str:
    asked = {"messages": [{"role": "user", "content": text}], "max_tokens": LENGTH, "extra_body": {"ignore_eos": True}}
    answer = await client.chat.completions.create(model=model, temperature=0, **asked)  # type: ignore[call-overload]
    assert answer.model == model
    return str(answer.choices[0].message.content)


async def test_each_adapter_is_a_model_and_answers_alike_in_any_company(server: Served) -> None:
    async with AsyncOpenAI(base_url=f"{server.url}/v1", api_key="none") as client:
        listed = [model async for model in client.models.list()]
        assert [(model.id, model.parent) for model in listed] == [  # type: ignore[attr-defined]
            ("demo", None),
            *((name, "demo") for name in NAMES),
        ]
        models = [*("demo", *NAMES) * 3]
        alone = {model: await _said(client, model, "Berapa harga keyboard?") for model in models}
        assert len({*alone.values()}) == len(alone)
        together = await asyncio.gather(*(_said(client, model, "Berapa harga keyboard?") for model in models))
        assert together == [alone[model] for model in models]


async def test_a_wrong_name_means_the_base_or_404_as_without_adapters(server: Served, folders: dict[str, Path]) -> None:
    body = {"messages": [{"role": "user", "content": "Halo"}], "max_tokens": 1}
    async with AsyncOpenAI(base_url=f"{server.url}/v1", api_key="none") as client:
        answer = await client.chat.completions.create(model="no-such", **body)  # type: ignore[call-overload]
        assert answer.model == "demo"
    with served(_settings(folders, strict_model="1")) as strict:
        async with AsyncOpenAI(base_url=f"{strict.url}/v1", api_key="none") as client:
            with pytest.raises(NotFoundError):
                await client.chat.completions.create(model="no-such", **body)  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("adapters", "reason"),
    [
        ("formal", "NAME=FOLDER"),
        ("demo=./somewhere", "Two served models are called demo"),
    ],
)
def test_a_wrong_setting_ends_the_start_with_one_line(adapters: str, reason: str) -> None:
    with pytest.raises(CatalogueError, match=reason):
        served_models_of(settings_with(model_repo_id=str(DEMO), adapters=adapters))
