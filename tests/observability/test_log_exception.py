"""log_exception logs messages of the system and of libraries, but never what a user wrote."""

import logging
import sqlite3
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import sqlalchemy
import torch

from tis.engine.sampling.params import SamplingParams
from tis.engine.sampling.sample import sample_on_device
from tis.errors import GenerationFailed
from tis.observability.logs import log_exception

SECRET = "what the user wrote"


def logged(caplog: pytest.LogCaptureFixture, fall: Callable[[], object]) -> str:
    """The first line."""
    with caplog.at_level(logging.ERROR, "tis.errors"):
        try:
            fall()
        except Exception as fault:
            log_exception("it failed", fault, "req-1")
    [record] = caplog.records
    assert SECRET not in caplog.text
    return record.getMessage().partition("\n")[0]


def multiply() -> object:
    return torch.nn.Linear(3, 2)(torch.zeros(2, 2))


def sample() -> object:
    """The last frame is one of ours."""
    return sample_on_device(torch.zeros(3, 3), [SamplingParams()] * 2, [1, 2])


def run_out() -> None:
    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate\n 2.00 GiB.\x1b[31m")


def read_nothing() -> None:
    Path("/nowhere/weights.bin").read_bytes()


def select_nothing() -> None:
    sqlite3.connect(":memory:").execute("SELECT * FROM nowhere")


def search_badly() -> None:
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE VIRTUAL TABLE words USING fts5(text)")
    connection.execute("SELECT * FROM words WHERE words MATCH ?", (f'"{SECRET}',)).fetchall()


def insert_through_sqlalchemy() -> None:
    with sqlalchemy.create_engine("sqlite://").connect() as connection:
        connection.execute(sqlalchemy.text("INSERT INTO nowhere VALUES (:name)"), {"name": SECRET})


def wrap() -> None:
    try:
        read_nothing()
    except OSError as error:
        raise GenerationFailed(SECRET) from error


@pytest.mark.parametrize(
    ("fall", "said"),
    [
        (multiply, "it failed: RuntimeError: mat1 and mat2 shapes cannot be multiplied (2x2 and 3x2), request req-1"),
        (sample, "it failed: RuntimeError: The size of tensor a (3) must match the size of tensor b (2)"),
        (run_out, "OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.[31m, request"),
        (read_nothing, "FileNotFoundError: [Errno 2] No such file or directory: '/nowhere/weights.bin', request"),
        (select_nothing, "OperationalError: no such table: nowhere, request"),
        (search_badly, "it failed: OperationalError: "),
        (insert_through_sqlalchemy, "OperationalError from OperationalError: no such table: nowhere, request"),
        (wrap, "GenerationFailed from FileNotFoundError: [Errno 2] No such file"),
    ],
)
def test_messages_of_the_system_and_of_libraries_are_logged(
    caplog: pytest.LogCaptureFixture, fall: Callable[[], object], said: str
) -> None:
    assert said in logged(caplog, fall)


def fall_with(error: type[Exception]) -> None:
    raise error(SECRET)


class FetchFailed(OSError):
    """An OSError of another library, whose message may contain a URL."""


@pytest.mark.parametrize("error", [RuntimeError, ValueError, KeyError, FetchFailed])
def test_messages_that_may_quote_a_user_are_not_logged(
    caplog: pytest.LogCaptureFixture, error: type[Exception]
) -> None:
    assert logged(caplog, partial(fall_with, error)) == f"it failed: {error.__name__}, request req-1"


def test_a_long_message_is_cut(caplog: pytest.LogCaptureFixture) -> None:
    def fall() -> None:
        raise OSError("x" * 100_000)

    assert len(logged(caplog, fall)) < 1000
