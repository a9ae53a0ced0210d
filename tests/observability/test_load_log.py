import logging
from itertools import count

import pytest

from tis.observability.load_log import LoadLog


def test_a_load_is_a_line_for_each_stage_and_each_five_percent(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "tis.engine")
    log = LoadLog(clock=count().__next__)
    log.progress("demo", "asking the hub", None)
    for percent in range(101):
        log.progress("demo", "downloading", percent / 100)
    lines = [record.getMessage() for record in caplog.records]
    assert lines[:3] == ["demo: asking the hub", "demo: downloading, 0 %", "demo: downloading, 5 %"]
    assert len(lines) == 1 + 21 and lines[-1] == "demo: downloading, 100 %"


def test_a_stage_that_takes_no_time_has_no_steps(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "tis.engine")
    log = LoadLog(clock=lambda: 7.0)
    for percent in range(101):
        log.progress("demo", "reading the weights", percent / 100)
    log.progress("demo", "warming up", None)
    lines = [record.getMessage() for record in caplog.records]
    assert lines == ["demo: reading the weights, 0 %", "demo: reading the weights, 100 %", "demo: warming up"]
