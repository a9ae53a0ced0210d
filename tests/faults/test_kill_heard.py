"""kill -9 while it answers about a recording: the answer goes on about the same recording."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.engine.hearing.tiny_hearing import make_hearing
from tests.faults.checker import final_text
from tests.faults.history import Client
from tests.faults.mortal_server import SharedServer
from tests.media.sounds import sound_file, spoken
from tests.openai_api.media_requests import asking, data_uri

pytestmark = [pytest.mark.slow, pytest.mark.model, pytest.mark.anyio]

# At this length the model still talks when the server is killed.
LONG: dict[str, Any] = {"max_tokens": 300, "ignore_eos": True, "seed": 5, "temperature": 1.0, "stream": True}


@pytest.fixture(scope="module")
def hearing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SharedServer]:
    folder = make_hearing(tmp_path_factory.mktemp("heard") / "qwen2_audio", "qwen2_audio")
    model = {"MODEL_REPO_ID": str(folder), "TORCH_DTYPE": "float32", "EAGER_LOAD_MODEL": "1"}
    shared = SharedServer(lambda: tmp_path_factory.mktemp("hearing"), LOAD_WAIT_SECONDS="120", **model)
    yield shared
    shared.close()


def _about_sounds(session: str, *texts: str) -> dict[str, Any]:
    files = [data_uri(sound_file(spoken(text), "flac", "flac"), "audio/flac") for text in texts]
    sounds = [{"type": "input_audio", "input_audio": {"data": file, "format": "flac"}} for file in files]
    return asking(*sounds, "Apa ini?", session_id=session, **LONG)


async def test_a_resumed_answer_hears_the_same_sounds(hearing: SharedServer) -> None:
    async with hearing.running() as server:
        whole = await Client(server.url, _about_sounds("uncut", "satu", "dua dua", "satu")).follow()
        client = Client(server.url, _about_sounds("cut", "satu", "dua dua", "satu"))
        await client.connect()
        await client.read(blocks=12)
        server.kill()
        client.leave()
        await server.start()
        await client.follow("POST")
        assert final_text(client.blocks, 0) == final_text(whole.blocks, 0)
