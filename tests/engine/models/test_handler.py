"""The handlers of docs/many-models.md, as they are printed there, behind the server and its clients."""

import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import pytest
from openai import OpenAI

from tests.openai_api.test_chat import CHAT, said
from tests.serving import REPOSITORY, Served, served, settings_with
from tests.test_status import until
from tis.arguments.catalogue import served_models_of
from tis.engine.models.catalogue import CatalogueError
from tis.settings import Settings

post = partial(httpx2.post, timeout=60)
PAGE = (REPOSITORY / "docs" / "many-models.md").read_text(encoding="utf-8")
SECTION = PAGE.partition("## A model of your own code")[2]
OWN = """

class Slow:
    closed = []

    def __init__(self, entry, folder):
        self.folder = folder

    def generate(self, messages, sampling):
        try:
            while True:
                yield f"{sampling['temperature']} "
        finally:
            self.closed.append("answer")

    def close(self):
        self.closed.append("model")


class Broken:
    def __init__(self, entry, folder):
        raise OSError("no such device")


class Faulty:
    def __init__(self, entry, folder):
        pass

    def generate(self, messages, sampling):
        yield "before"
        raise RuntimeError("no more")


class Nothing:
    def __init__(self, entry, folder):
        pass
"""


def block(language: str) -> str:
    [found] = re.findall(rf"```{language}\n(.*?)```", SECTION, re.DOTALL)
    return str(found)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    path = tmp_path_factory.mktemp("handlers")
    (path / "my_models.py").write_text(block("python") + OWN)
    more = "".join(
        f"  {name.lower()}: {{handler: my_models.{name}}}\n" for name in ("Slow", "Broken", "Faulty", "Nothing")
    )
    (path / "models.yaml").write_text(block("yaml") + more)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(path))
        yield path


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Served]:
    settings = settings_with(
        model_repo_id="shouting",
        models="lengths,shared-words,slow,broken,faulty,nothing",
        model_config_path=str(folder / "models.yaml"),
        model_idle_seconds=0.5,
    )
    with served(settings) as running:
        yield running


def test_a_chat_handler_answers_whole_and_streamed(server: Served, sdk: Callable[[Served], OpenAI]) -> None:
    client = sdk(server)
    messages: Any = [{"role": "user", "content": "good morning to you"}]
    answer = client.chat.completions.create(model="shouting", messages=messages)
    assert answer.choices[0].message.content == "GOOD MORNING TO YOU "
    assert answer.choices[0].finish_reason == "stop" and answer.usage and answer.usage.completion_tokens == 4
    stream = client.chat.completions.create(model="shouting", messages=messages, stream=True)
    texts = [chunk.choices[0].delta.content for chunk in stream if chunk.choices and chunk.choices[0].delta.content]
    assert texts == ["GOOD ", "MORNING ", "TO ", "YOU "]


def test_pieces_are_tokens_and_stop_strings_are_the_servers(server: Served) -> None:
    body = said("good morning to you", model="shouting")
    cut = post(server.url + CHAT, json={**body, "max_tokens": 2}).json()["choices"][0]
    assert (cut["message"]["content"], cut["finish_reason"]) == ("GOOD MORNING ", "length")
    stopped = post(server.url + CHAT, json={**body, "stop": ["TO"]}).json()["choices"][0]
    assert (stopped["message"]["content"], stopped["finish_reason"]) == ("GOOD MORNING ", "stop")
    two = post(server.url + CHAT, json={**body, "n": 2}).json()["choices"]
    assert [choice["message"]["content"] for choice in two] == ["GOOD MORNING TO YOU "] * 2


def test_embeddings_and_scores_of_handlers(server: Served, sdk: Callable[[Served], OpenAI]) -> None:
    made = sdk(server).embeddings.create(model="lengths", input=["kopi Gayo", "teh 🍵", "kopi Gayo"])
    assert [one.embedding for one in made.data] == [[9.0, 2.0], [5.0, 2.0], [9.0, 2.0]]
    long = post(f"{server.url}/v1/embeddings", json={"model": "lengths", "input": "x" * 1001})
    assert (long.status_code, long.json()["error"]["code"]) == (400, "context_length_exceeded")
    tokens = post(f"{server.url}/v1/embeddings", json={"model": "lengths", "input": [1, 2]})
    assert tokens.status_code == 400 and "no tokens" in tokens.json()["error"]["message"]
    body = {"model": "shared-words", "query": "kopi dari Aceh", "documents": ["teh hijau", "kopi Gayo dari Aceh"]}
    ranked = post(f"{server.url}/v1/rerank", json=body).json()["results"]
    assert [(one["index"], one["relevance_score"]) for one in ranked] == [(1, 3.0), (0, 0.0)]


def test_an_answer_that_nobody_needs_is_closed_and_so_is_an_idle_model(server: Served) -> None:
    import my_models  # type: ignore[import-not-found]

    body = said("x", model="slow", max_tokens=3, temperature=0.5)
    answer = post(server.url + CHAT, json=body).json()
    assert answer["choices"][0]["message"]["content"] == "0.5 0.5 0.5 "
    assert my_models.Slow.closed == ["answer"]
    until(lambda: my_models.Slow.closed == ["answer", "model"])


def test_what_a_handler_raises_fails_a_request_or_a_load_and_no_other(
    server: Served, caplog: pytest.LogCaptureFixture
) -> None:
    faulty = post(server.url + CHAT, json=said("x", model="faulty"))
    assert (faulty.status_code, faulty.json()["error"]["code"]) == (500, "generation_failed")
    for name, words in {"broken": "OSError: no such device", "nothing": "has no method generate()"}.items():
        answer = post(server.url + CHAT, json=said("x", model=name))
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "model_load_failed")
        assert words in caplog.text and words not in answer.text
    assert post(server.url + CHAT, json=said("x", model="shouting")).status_code == 200
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    seen = {"model": "shouting", "messages": [{"role": "user", "content": [picture]}]}
    assert post(server.url + CHAT, json=seen).status_code == 400


@pytest.mark.parametrize(
    ("handler", "words"),
    [
        ("no_such_module.Thing", "there is no module 'no_such_module'"),
        ("no_such_package.module.Thing", "cannot be imported"),
        ("Thing", "is a class by its path"),
        ("os.system('x')", "is a class by its path"),
    ],
)
def test_a_handler_that_is_not_there_ends_the_start_with_one_line(tmp_path: Path, handler: str, words: str) -> None:
    (tmp_path / "models.yaml").write_text(f'models: {{a: {{handler: "{handler}"}}}}')
    settings = Settings.from_env({"MODEL_CONFIG": str(tmp_path / "models.yaml"), "MODELS": "a"}, env_file=None)
    with pytest.raises(CatalogueError, match=re.escape(words)) as refused:
        served_models_of(settings)
    assert "\n" not in str(refused.value)
