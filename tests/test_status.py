import threading
from collections.abc import Callable
from dataclasses import replace

import httpx2
import pytest

from tests.openai_api.test_chat import CHAT, said
from tests.serving import served, settings_with
from tis.arguments.limits import engine_limits_of
from tis.engine.errors import LoadFailed
from tis.engine.local_engine import EngineLimits
from tis.engine.models.catalogue import CatalogueEntry
from tis.engine.models.echo import EchoOptions, EchoRunner, load_echo
from tis.engine.models.load_observer import Backoff
from tis.engine.models.load_progress import Report
from tis.engine.models.loaded_model import LoadedModel
from tis.settings import Settings

Load = Callable[[CatalogueEntry, Report], LoadedModel]


def until(fact: Callable[[], bool]) -> None:
    done = threading.Event()
    for _ in range(500):
        if fact():
            return
        done.wait(0.02)
    raise TimeoutError


class Gate:
    """A load that waits until a test lets it end, and may fail."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.failure: Exception | None = None
        self.loads = 0

    def load(self, entry: CatalogueEntry, report: Report) -> LoadedModel:
        self.loads += 1
        report("downloading", 0.25)
        assert self.open.wait(20)
        if self.failure:
            raise self.failure
        return load_echo("echo")


def test_a_lazy_model_is_ready_before_it_is_loaded(http: httpx2.Client) -> None:
    with served(settings_with()) as fresh:
        health = httpx2.get(f"{fresh.url}/health").json()
        assert (health["ok"], health["modelReady"], health["modelId"], health["error"]) == (True, False, "echo", None)
        assert httpx2.get(f"{fresh.url}/ready").status_code == 200
        assert httpx2.post(fresh.url + CHAT, json=said("Halo")).status_code == 200
        assert httpx2.get(f"{fresh.url}/health").json()["modelReady"]


def test_an_eager_load_shows_its_progress_and_is_not_ready() -> None:
    gate = Gate()
    with served(settings_with(eager_load_model=True), load=gate.load) as loading:
        until(lambda: httpx2.get(f"{loading.url}/health").json()["progress"] == 0.25)
        health = httpx2.get(f"{loading.url}/health")
        assert (health.status_code, health.json()["stage"]) == (200, "downloading")
        assert httpx2.get(f"{loading.url}/ready").status_code == 503
        assert httpx2.get(f"{loading.url}/live").status_code == 200
        gate.open.set()
        until(lambda: httpx2.get(f"{loading.url}/ready").status_code == 200)


def test_a_request_waits_for_the_load_and_then_gets_a_503_with_retry_after() -> None:
    gate = Gate()
    with served(settings_with(load_wait_seconds=0.1), load=gate.load) as loading:
        answer = httpx2.post(loading.url + CHAT, json=said("Halo", stream=True))
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "model_loading")
        assert int(answer.headers["retry-after"]) > 0
        gate.open.set()
        until(lambda: bool(httpx2.get(f"{loading.url}/health").json()["modelReady"]))
        assert httpx2.post(loading.url + CHAT, json=said("Halo")).status_code == 200
        assert gate.loads == 1


def test_many_first_requests_load_once() -> None:
    gate = Gate()
    with served(settings_with(), load=gate.load) as loading:
        statuses: list[int] = []
        post = lambda: statuses.append(httpx2.post(loading.url + CHAT, json=said("Halo")).status_code)  # noqa: E731
        posts = [threading.Thread(target=post) for _ in range(5)]
        for thread in posts:
            thread.start()
        until(lambda: gate.loads == 1)
        gate.open.set()
        for thread in posts:
            thread.join()
        assert (statuses, gate.loads) == ([200] * 5, 1)


def retrying(settings: Settings, seconds: float) -> EngineLimits:
    return replace(engine_limits_of(settings), retry_seconds=seconds)


def test_the_first_retry_is_soon_and_the_last_ones_a_minute_apart() -> None:
    pauses = Backoff(EngineLimits().retry_seconds)
    assert [pauses.failed() for _ in range(8)] == [1, 2, 4, 8, 16, 32, 60, 60]
    assert 59 < pauses.seconds_left <= 60
    pauses.succeeded()
    assert pauses.failed() == 1


@pytest.mark.parametrize("failure", [LoadFailed("The hub cannot be reached."), RuntimeError("a broken file")])
def test_a_failed_load_is_reported_at_once_and_not_retried_soon(failure: Exception) -> None:
    gate = Gate()
    gate.failure = failure
    gate.open.set()
    settings = settings_with()
    with served(settings, load=gate.load, engine_limits=retrying(settings, 50)) as failing:
        answer = httpx2.post(failing.url + CHAT, json=said("Halo"))
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "model_load_failed")
        health = httpx2.get(f"{failing.url}/health")
        assert (health.status_code, health.json()["error"]) == (503, answer.json()["error"]["message"])
        assert httpx2.get(f"{failing.url}/ready").status_code == 503
        assert httpx2.post(failing.url + CHAT, json=said("Halo")).status_code == 503
        assert gate.loads == 1


def test_a_failed_load_is_retried_by_a_later_request() -> None:
    gate = Gate()
    gate.failure = LoadFailed("The hub cannot be reached.")
    gate.open.set()
    settings = settings_with()
    with served(settings, load=gate.load, engine_limits=retrying(settings, 0)) as failing:
        assert httpx2.post(failing.url + CHAT, json=said("Halo")).status_code == 503
        gate.failure = None
        assert httpx2.post(failing.url + CHAT, json=said("Halo")).status_code == 200
        assert httpx2.get(f"{failing.url}/health").status_code == 200
        assert gate.loads == 2


PRIVATE = "no /srv/models/secret: https://hub.example/file?token=hf_abc"


@pytest.mark.parametrize("failure", [LoadFailed(PRIVATE), OSError(PRIVATE)])
def test_the_reason_of_a_failed_load_is_only_in_the_log(failure: Exception, caplog: pytest.LogCaptureFixture) -> None:
    gate = Gate()
    gate.failure = failure
    gate.open.set()
    with served(settings_with(), load=gate.load) as failing:
        answers = [httpx2.post(failing.url + CHAT, json=said("Halo", stream=stream)) for stream in (False, True)]
        answers += [httpx2.get(failing.url + path) for path in ("/health", "/ready", "/v1/models", "/v1/models/echo")]
    assert [answer.status_code for answer in answers] == [503, 503, 503, 503, 200, 200]
    assert all(int(answer.headers["retry-after"]) > 0 for answer in answers[:2])
    assert {answer.json()["error"]["code"] for answer in answers[:2]} == {"model_load_failed"}
    assert not [answer.text for answer in answers if "secret" in answer.text or "token" in answer.text]
    assert PRIVATE in caplog.text


DYING = {"model_repo_id": "echo?die_after=3", "log_level": "error"}


def test_a_request_of_a_dead_worker_gets_a_503() -> None:
    settings = settings_with(**DYING)
    with served(settings, engine_limits=retrying(settings, 50)) as dying:
        answer = httpx2.post(dying.url + CHAT, json=said("a long enough text"))
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "worker_died")
        assert httpx2.get(f"{dying.url}/ready").status_code == 503
        assert httpx2.get(f"{dying.url}/health").status_code == 503


def test_a_dead_worker_is_replaced() -> None:
    settings = settings_with(**DYING)
    with served(settings, engine_limits=retrying(settings, 0)) as dying:
        assert httpx2.post(dying.url + CHAT, json=said("a long enough text")).status_code == 503
        until(lambda: httpx2.get(f"{dying.url}/ready").status_code == 200)
        assert httpx2.post(dying.url + CHAT, json=said("ok")).status_code == 200


class BusyRunner(EchoRunner):
    """An echo that admits no request."""

    has_room = False


@pytest.mark.slow
def test_a_full_queue_is_a_429_with_retry_after() -> None:
    runner = BusyRunner(EchoOptions())
    load: Load = lambda entry, report: replace(load_echo("echo"), new_runner=lambda: runner)  # noqa: E731
    with served(settings_with(max_queue_size=1), load=load) as busy:
        waiting = threading.Thread(target=lambda: httpx2.post(busy.url + CHAT, json=said("x")))
        waiting.start()
        until(lambda: httpx2.get(f"{busy.url}/health").json()["queued"] == 1)
        answer = httpx2.post(busy.url + CHAT, json=said("x", stream=True))
        assert (answer.status_code, answer.json()["error"]["code"]) == (429, "rate_limit_exceeded")
        assert int(answer.headers["retry-after"]) > 0
    waiting.join()


def test_the_event_loop_is_free_while_a_model_loads() -> None:
    gate = Gate()
    with served(settings_with(), load=gate.load) as loading:
        waiting = threading.Thread(target=lambda: httpx2.post(loading.url + CHAT, json=said("Halo")))
        waiting.start()
        until(lambda: gate.loads == 1)
        assert all(httpx2.get(f"{loading.url}/live").status_code == 200 for _ in range(20))
        gate.open.set()
        waiting.join()


def test_a_lost_device_is_a_503_of_ready_and_ends_the_process_with_code_70() -> None:
    ended = threading.Event()
    codes: list[int] = []

    def end_process(code: int) -> None:
        codes.append(code)
        ended.set()

    settings = settings_with(model_repo_id="echo?lose_device_after=2", served_model_name="echo")
    with served(settings, end_process=end_process) as lost:
        answer = httpx2.post(lost.url + CHAT, json=said("Halo"))
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "server_shutting_down")
        ready = httpx2.get(f"{lost.url}/ready")
        assert (ready.status_code, ready.json()["reason"]) == (503, "The device of echo is lost.")
        assert httpx2.get(f"{lost.url}/live").status_code == 200
        assert httpx2.post(lost.url + CHAT, json=said("Halo")).status_code == 503
        assert ended.wait(10) and codes == [70]


def test_no_memory_is_a_503_with_a_code_and_the_server_goes_on() -> None:
    with served(settings_with(model_repo_id="echo?no_memory_after=3")) as short:
        failed = httpx2.post(short.url + CHAT, json=said("too long"))
        assert (failed.status_code, failed.json()["error"]["code"]) == (503, "out_of_memory")
        assert int(failed.headers["retry-after"]) > 0
        assert httpx2.post(short.url + CHAT, json=said("ok")).json()["choices"][0]["message"]["content"] == "ok"
        assert httpx2.get(f"{short.url}/ready").status_code == 200
