"""Models that hear, in the continuous batch: the tokens of `generate()` with the inputs of the official processor."""

import json
from collections.abc import Callable
from dataclasses import replace
from itertools import groupby
from pathlib import Path

import pytest
import torch
import transformers

from tests.engine.batching.tiny import new_request, new_turn_runner, run, tokens
from tests.engine.hearing.tiny_hearing import (
    HEARING,
    generated,
    heard,
    make_hearing,
    official_inputs,
    sound,
)
from tests.engine.resuming import resumed, through_json
from tests.engine.vision.cases import picture
from tis.engine.batching.batch_runner import BatchRunner
from tis.engine.batching.limits import BatchLimits
from tis.engine.batching.picture_trial import find_tower
from tis.engine.batching.towers import ForwardTower
from tis.engine.errors import LoadFailed
from tis.engine.local_engine import EngineLimits, LocalEngine
from tis.engine.models.catalogue import CatalogueEntry
from tis.engine.models.description import describe_loaded, describe_unloaded
from tis.engine.models.loaded_model import LoadedModel
from tis.engine.models.loading import LoadOptions, load_model
from tis.engine.prompt import ChatPrompt, media_of
from tis.engine.request import Request
from tis.engine.vision.official_vision import OfficialVision
from tis.engine.vision.vision_input import preprocessed
from tis.errors import BadRequest

pytestmark = pytest.mark.long

LENGTH = 12
Open = Callable[[str], "Hearing"]


class Hearing:
    """A tiny model, with a step smaller than its prompts."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder = make_hearing(folder, name)
        options = LoadOptions(dtype="float32", batch=BatchLimits(tokens_per_step=16, cache_tokens=4096))
        self.loaded: LoadedModel = load_model(str(self.folder), options, lambda stage, share: None)
        asked = [
            heard("Apa ini? ", sound("satu dua tiga")),
            heard("Halo, siapa kamu?"),
            heard(sound("sembilan tujuh 1 satu"), " lalu apa?"),
            heard("Apa ini? ", sound("empat lima enam")),
        ]
        if HEARING[name].max_sounds > 1:
            asked += [heard(sound("dua"), " dan ", sound("tiga tiga"), " dan ", sound("dua"), "?")]
        if HEARING[name].sees:
            asked += [heard(sound("lima"), picture(40, 60), sound("enam"), "?"), heard("Lihat: ", picture(60, 40))]
        if HEARING[name].max_sounds == 1:
            asked += [heard("Panjang: ", sound("satu 2 dua 2 tiga 2 empat"))]  # more than a window of the encoder
        self.asked = asked
        self.expected = generated(self.folder, asked, LENGTH)

    def request(self, asked: ChatPrompt) -> Request:
        vision = self.loaded.vision
        assert vision
        ids, media = vision.encode(asked), media_of(asked.messages)
        prepared = new_request(ids, max_tokens=LENGTH).prepared
        shown = vision.preprocess(ids, media) if media else None
        return Request(replace(prepared, tokenizer=self.loaded.tokenizer, vision=shown))

    def runner(self) -> BatchRunner:
        runner = self.loaded.new_runner()
        assert isinstance(runner, BatchRunner)
        return runner


@pytest.fixture(scope="module")
def hearing(tmp_path_factory: pytest.TempPathFactory) -> Open:
    made: dict[str, Hearing] = {}

    def of(name: str) -> Hearing:
        if name not in made:
            made[name] = Hearing(tmp_path_factory.mktemp("hearing") / name, name)
        return made[name]

    return of


@pytest.mark.parametrize("name", HEARING)
def test_side_by_side_they_get_the_tokens_of_generate(hearing: Open, name: str) -> None:
    one = hearing(name)
    requests = [one.request(asked) for asked in one.asked]
    assert any(len(request.prompt_ids) > 32 for request in requests), "prompts are computed in several steps"
    assert not run(one.runner(), requests, every=2).errors
    assert [tokens(request) for request in requests] == one.expected
    assert len({tuple(answer) for answer in one.expected}) == len(one.expected), "what is heard must matter"


@pytest.mark.parametrize("name", ["qwen2_audio", "gemma4"])
def test_in_turns_they_get_the_same_tokens(hearing: Open, name: str) -> None:
    """Where the text part of a model cannot be batched."""
    one = hearing(name)
    model = getattr(transformers, HEARING[name].model_class).from_pretrained(one.folder).eval().float()
    requests = [one.request(asked) for asked in one.asked]
    assert not run(new_turn_runner(model, one.loaded.tokenizer), requests).errors
    assert [tokens(request) for request in requests] == one.expected


@pytest.mark.parametrize("name", HEARING)
def test_inputs_equal_those_of_the_documentation(hearing: Open, name: str) -> None:
    one = hearing(name)
    for asked in one.asked:
        request, official = one.request(asked), official_inputs(one.folder, asked)
        assert request.prompt_ids == official["input_ids"][0].tolist()
        vision = request.prepared.vision
        for key, value in (vision.generate_kwargs() if vision else {}).items():
            assert torch.equal(value, official[key]), key


@pytest.mark.parametrize("name", HEARING)
def test_in_bfloat16_a_batch_computes_what_forward_computes(hearing: Open, name: str) -> None:
    """As on a GPU: not every encoder converts the spectrogram itself."""
    one = hearing(name)
    model_class = getattr(transformers, HEARING[name].model_class)
    model = model_class.from_pretrained(one.folder, dtype=torch.bfloat16).eval()
    vision = one.loaded.vision
    assert isinstance(vision, OfficialVision)
    assert isinstance(find_tower(model, vision.sound_sample()), ForwardTower)


@pytest.mark.parametrize("name", HEARING)
def test_before_and_after_it_is_loaded_it_says_that_it_hears(hearing: Open, name: str) -> None:
    one = hearing(name)
    expected = {"audio", "image"} if HEARING[name].sees else {"audio"}
    assert set(describe_loaded(one.loaded).media) == set(describe_unloaded(str(one.folder)).media) == expected


def test_a_repeated_sound_is_heard_once_and_another_one_shares_no_block_of_it(hearing: Open) -> None:
    one = hearing("qwen2_audio")
    first, other = one.asked[0], heard("Apa ini? ", sound("satu dua empat"))
    [expected] = generated(one.folder, [other], LENGTH)
    runner = one.runner()
    requests = [one.request(asked) for asked in (first, first, other)]
    assert requests[0].prompt_ids == requests[2].prompt_ids, "only the sounds differ"
    for request in requests:
        run(runner, [request])
    assert [tokens(request) for request in requests] == [one.expected[0], one.expected[0], expected]
    shown = requests[0].prepared.vision
    assert shown
    placeholder = min(start for start, _ in shown.inputs[0].spans)
    cached = [request.answer.cached_tokens for request in requests]
    assert cached[0] == 0 and cached[1] > placeholder >= cached[2]


def test_an_answer_about_a_sound_goes_on_where_it_was_cut(hearing: Open) -> None:
    one = hearing("qwen2_audio")
    request = one.request(one.asked[-1])
    whole = run(one.runner(), [request]).of(request)
    for cut in (1, LENGTH - 2):
        again = resumed(request.prepared, whole[:cut])
        rest = run(one.runner(), [again]).of(again)
        assert [token for piece in [*whole[:cut], *rest] for token in piece.token_ids] == one.expected[-1]


@pytest.mark.anyio
async def test_another_process_learns_that_it_was_a_sound(hearing: Open) -> None:
    one = hearing("qwen2_audio")
    engine = LocalEngine([CatalogueEntry("m", "m")], lambda entry, report: one.loaded, EngineLimits())
    await engine.open()
    try:
        saved = (await engine.prepare("m", one.asked[0], {"max_tokens": 3})).resumable
    finally:
        await engine.close()
    assert [medium.kind for medium in through_json(saved).media] == ["audio"]
    assert through_json(saved).num_audio_tokens == sum(map(len, _runs(saved.prompt_ids)))


def _runs(ids: list[int]) -> list[list[int]]:
    """Of equal tokens that follow each other: placeholders."""
    return [run for _, group in groupby(ids) if len(run := list(group)) > 3]


@pytest.mark.parametrize(
    ("name", "text", "code"),
    [
        ("qwen2_audio", "5", "audio_too_long"),  # its processor would cut it without a word
        ("audioflamingo3", "13", "audio_too_long"),
        ("qwen2_audio", "0.05", "audio_too_short"),
    ],
)
def test_what_its_processor_would_cut_or_lose_is_a_400(hearing: Open, name: str, text: str, code: str) -> None:
    with pytest.raises(BadRequest, match="audio is too") as refused:
        hearing(name).request(heard(sound(text)))
    assert refused.value.code == code


def test_two_sounds_for_a_model_of_one_are_a_400(hearing: Open) -> None:
    with pytest.raises(BadRequest, match="may take one recording"):
        hearing("audioflamingo3").request(heard(sound("satu"), sound("dua")))


@pytest.mark.parametrize("name", HEARING)
def test_a_user_cannot_type_a_placeholder(hearing: Open, name: str) -> None:
    one, family = hearing(name), HEARING[name]
    typed, honest = (one.request(heard(sound("satu"), text)) for text in (family.placeholder, "?"))
    token = transformers.AutoTokenizer.from_pretrained(one.folder).convert_tokens_to_ids(family.placeholder)
    assert typed.prompt_ids.count(token) == honest.prompt_ids.count(token) > 0


@pytest.mark.parametrize(("kind", "reason"), [("voxtral", "mistral-common"), ("granite_speech", "torchaudio")])
def test_models_that_hear_in_another_way_are_refused_by_name(tmp_path: Path, kind: str, reason: str) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": kind}), encoding="utf-8")
    with pytest.raises(LoadFailed, match=f"{kind} are not served.*{reason}"):
        load_model(str(tmp_path), LoadOptions(), lambda stage, share: None)


def test_pictures_are_refused_by_name(hearing: Open) -> None:
    with pytest.raises(BadRequest, match="accepts no images"):
        hearing("qwen2_audio").request(heard(picture(30, 30)))


def test_a_picture_and_a_sound_of_the_same_file_are_two(hearing: Open) -> None:
    seen, said = replace(picture(40, 60), digest="same"), replace(sound("satu"), digest="same")
    vision = hearing("gemma4").request(heard(seen, said)).prepared.vision
    assert vision
    assert [one.kind for one in vision.inputs] == ["image", "audio"]


def test_media_that_a_processor_cannot_place_are_a_400(hearing: Open) -> None:
    vision = hearing("qwen2_audio").loaded.vision
    assert vision
    with pytest.raises(BadRequest, match="processor refused"):
        preprocessed(vision, [1, 2], [sound("satu")])
