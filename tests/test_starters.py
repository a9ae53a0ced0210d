"""`make check` leaves out what starts servers and processes, and nobody keeps a list of it."""

import subprocess
import sys
from collections.abc import Callable

import pytest

from tests.serving import Served, listening, settings_with
from tests.starters import starts


class Opener:
    def open(self) -> object:
        return listening


def of_a_class() -> object:
    return Opener().open()


def of_a_process() -> list[object]:
    return [subprocess.run([sys.executable, "-c", argument]) for argument in ("", "1")]


def of_nothing() -> object:
    return settings_with(), Served, of_nothing


@pytest.mark.parametrize(("function", "expected"), [(of_a_class, True), (of_a_process, True), (of_nothing, False)])
def test_what_starts_something_is_seen_through_functions_and_classes(
    function: Callable[[], object], expected: bool
) -> None:
    assert starts(function) is expected


@pytest.mark.usefixtures("http")
def test_a_test_is_marked_for_its_fixtures(request: pytest.FixtureRequest) -> None:
    assert request.node.get_closest_marker("server")


def test_what_no_fixture_starts_is_left_to_make_check(request: pytest.FixtureRequest) -> None:
    assert not request.node.get_closest_marker("server")
