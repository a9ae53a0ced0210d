"""Embedding models that see, with the client of OpenAI: vectors of pictures are those of the model's own forward."""

import base64
import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch
import transformers
import yaml
from openai import BadRequestError, OpenAI
from PIL import Image

from tests.engine.pooling.models import LAST, add_sentence_files, save, save_seeing_model
from tests.engine.vision.cases import pixels
from tests.serving import Served, served, settings_with
from tis.engine.prompt import Picture
from tis.engine.text.hf_tokenizer import HfTokenizer
from tis.engine.vision.qwen_vision import QwenVision

pytestmark = pytest.mark.model

RED, WIDE = pixels(64, 96, 1), pixels(40, 200, 2)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_seeing_model(tmp_path_factory.mktemp("models") / "seeing")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Served]:
    add_sentence_files(save(folder.parent / "blind", "BertModel"), LAST)
    models = {
        "echo": {"repo": "echo"},
        "seeing": {"repo": str(folder), "task": "embedding"},
        "blind": {"repo": str(folder.parent / "blind"), "task": "embedding"},
    }
    catalogue = folder.parent / "models.yaml"
    catalogue.write_text(yaml.safe_dump({"models": models}))
    settings = settings_with(model_repo_id="echo", models="seeing,blind", model_config_path=str(catalogue))
    with served(settings) as running:
        yield running


@pytest.fixture(scope="module")
def client(server: Served) -> OpenAI:
    return OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0)


def data_uri(picture: Any) -> str:
    file = io.BytesIO()
    Image.fromarray(picture).save(file, "PNG")
    return "data:image/png;base64," + base64.b64encode(file.getvalue()).decode()


class SeenVectors:
    """Transformers alone: the template, the model's own forward, the last token."""

    def __init__(self, folder: Path) -> None:
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        self.model = transformers.AutoModel.from_pretrained(folder).eval()
        config = self.model.config
        ours = HfTokenizer(transformers.AutoTokenizer.from_pretrained(folder), (), config.text_config.vocab_size)
        self.vision = QwenVision(folder, config, ours)
        self.pad = config.image_token_id

    def vector(self, *parts: Any, system: str | None = None) -> tuple[Any, int]:
        content = [{"type": "text", "text": part} if isinstance(part, str) else {"type": "image"} for part in parts]
        messages: list[Any] = [{"role": "system", "content": system}] if system else []
        text = self.tokenizer.apply_chat_template(
            [*messages, {"role": "user", "content": content}], tokenize=False, add_generation_prompt=True
        )
        pictures = [Picture(part, str(number)) for number, part in enumerate(parts) if not isinstance(part, str)]
        ids = self._with_placeholders(self.tokenizer.encode(text, add_special_tokens=False), pictures)
        inputs = self.vision.preprocess(ids, pictures).generate_kwargs()
        with torch.inference_mode():
            state = self.model(input_ids=torch.tensor([ids]), **inputs).last_hidden_state[0, -1]
        return torch.nn.functional.normalize(state, dim=0).numpy(), len(ids)

    def _with_placeholders(self, ids: Sequence[int], pictures: Sequence[Picture]) -> list[int]:
        """A token for every four patches of 16 pixels; these pictures keep their size but for whole patches."""
        sizes = iter([round(one.pixels.shape[0] / 32) * round(one.pixels.shape[1] / 32) for one in pictures])
        return [token for one in ids for token in ([one] * next(sizes) if one == self.pad else [one])]


@pytest.fixture(scope="module")
def reference(folder: Path) -> SeenVectors:
    return SeenVectors(folder)


def test_texts_go_through_the_template(client: OpenAI, reference: SeenVectors) -> None:
    made = client.embeddings.create(model="seeing", input=["kopi", "Where is it?"], encoding_format="float")
    expected = [reference.vector("kopi"), reference.vector("Where is it?")]
    numpy.testing.assert_allclose([one.embedding for one in made.data], [one for one, _ in expected], atol=2e-5)
    assert made.usage.prompt_tokens == sum(number for _, number in expected)


def test_texts_and_pictures_of_one_request_as_jina_takes_them(client: OpenAI, reference: SeenVectors) -> None:
    given: Any = [{"image": data_uri(RED)}, {"text": "kopi"}, {"image": {"url": data_uri(WIDE)}, "text": "kopi"}, "teh"]
    made = client.embeddings.create(model="seeing", input=given, encoding_format="float")
    expected = [reference.vector(*parts) for parts in ((RED,), ("kopi",), (WIDE, "kopi"), ("teh",))]
    numpy.testing.assert_allclose([one.embedding for one in made.data], [one for one, _ in expected], atol=2e-5)
    assert made.usage.prompt_tokens == sum(number for _, number in expected)
    vectors = numpy.array([one.embedding for one in made.data])
    assert abs(vectors[1] - vectors[2]).max() > 1e-3  # the picture counts


def test_a_conversation_as_vllm_takes_it(client: OpenAI, reference: SeenVectors) -> None:
    content = [
        {"type": "image_url", "image_url": {"url": data_uri(RED)}},
        {"type": "text", "text": "with "},
        {"type": "image_url", "image_url": {"url": data_uri(WIDE)}},
    ]
    body = {"model": "seeing", "messages": [{"role": "user", "content": content}], "encoding_format": "float"}
    made: Any = client.post("/embeddings", body=body, cast_to=object)
    expected, number = reference.vector(RED, "with ", WIDE)
    numpy.testing.assert_allclose(made["data"][0]["embedding"], expected, atol=2e-5)
    assert made["usage"]["prompt_tokens"] == number


def test_a_prompt_of_the_repository_is_that_of_the_system(client: OpenAI, reference: SeenVectors) -> None:
    given: Any = [{"image": data_uri(RED)}]
    made = client.embeddings.create(
        model="seeing", input=given, encoding_format="float", extra_body={"prompt_name": "query"}
    )
    expected, _ = reference.vector(RED, system="Cari barang yang cocok.")
    numpy.testing.assert_allclose(made.data[0].embedding, expected, atol=2e-5)


def test_another_picture_of_the_same_size_has_another_vector(client: OpenAI) -> None:
    inputs: list[Any] = [[{"image": data_uri(pixels(64, 64, seed))}] for seed in (5, 6, 5)]
    one, other, again = (
        client.embeddings.create(model="seeing", input=given, encoding_format="float").data[0] for given in inputs
    )
    assert one.embedding == again.embedding and one.embedding != other.embedding


@pytest.mark.parametrize(
    ("body", "param", "said"),
    [
        ({"model": "blind", "input": [{"image": data_uri(RED)}]}, "input.0", "does not accept images"),
        ({"model": "blind", "messages": [{"role": "user", "content": "kopi"}]}, "messages", "plain texts"),
        ({"model": "seeing", "input": [{"image": "data:image/png;base64,AAAA"}]}, "input.0", ""),
        ({"model": "seeing", "input": [{}]}, "input.0", "neither"),
        ({"model": "seeing", "input": "kopi", "messages": [{"role": "user", "content": "x"}]}, "messages", "either"),
        ({"model": "seeing", "input": [{"image": data_uri(RED)}] * 65}, "input", "images"),
        ({"model": "seeing", "input": "kopi " * 40_000, "truncate": True}, "truncate", "cannot be cut"),
    ],
)
def test_what_is_refused(client: OpenAI, body: Any, param: str, said: str) -> None:
    with pytest.raises(BadRequestError) as refusal:
        client.post("/embeddings", body=body, cast_to=object)
    error: Any = refusal.value.body
    assert error["param"].startswith(param) and said in error["message"], error
