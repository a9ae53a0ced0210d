"""A ticket goes back at the end of the request and of the run that it began."""

from typing import get_args

import pytest

from tis.admission.admission import RESUMED, Admission
from tis.admission.limits import AdmissionLimits, Resource, Stage
from tis.errors import QueueFull

pytestmark = pytest.mark.anyio


def held(admission: Admission) -> dict[str, int]:
    used = {name: admission.used(name) for name in get_args(Resource)}
    stages = {name: admission.num_in(name) for name in get_args(Stage)}
    return {name: amount for name, amount in {**used, **stages}.items() if amount}


async def test_a_request_without_a_run_gives_everything_back_at_its_end() -> None:
    admission = Admission()
    ticket = admission.ticket("a")
    ticket.enter("receiving")
    await ticket.take("requests", 1)
    await ticket.take("body_bytes", 10)
    assert held(admission) == {"requests": 1, "body_bytes": 10, "receiving": 1}
    assert (admission.num_in("receiving", "a"), admission.num_in("receiving", "b")) == (1, 0)
    assert admission.used("body_bytes", "a") == 10
    ticket.answer()
    assert held(admission) == {"body_bytes": 10, "answering": 1}
    ticket.end_request()
    assert held(admission) == {} and admission.num_in("answering", "a") == 0


@pytest.mark.parametrize("run_ends_first", [True, False])
async def test_a_run_gives_back_what_it_holds_whoever_ends_first(run_ends_first: bool) -> None:
    admission = Admission()
    ticket = admission.ticket("a")
    for resource in ("requests", "body_bytes", "media_bytes", "decoded_bytes"):
        await ticket.take(resource, 3)
    ticket.keep("decoded_bytes", 1)
    ticket.queue(7)
    ticket.begin_run()
    run = {"media_bytes": 3, "decoded_bytes": 1, "prompt_tokens": 7}
    assert held(admission) == {**run, "body_bytes": 3, "queued": 1}
    ticket.generate()
    ticket.answer()
    assert ticket.stage == "generating"
    if run_ends_first:
        ticket.end_run()
        assert held(admission) == {"body_bytes": 3, "answering": 1}  # a slow reader
        ticket.end_request()
    else:
        ticket.end_request()
        assert held(admission) == {**run, "generating": 1}  # the client has left
        ticket.end_run()
    assert held(admission) == {}
    ticket.end_run()
    ticket.end_request()
    assert held(admission) == {}


async def test_a_round_has_its_own_prompt() -> None:
    admission = Admission(AdmissionLimits(max_prompt_tokens=10))
    ticket = admission.ticket("a")
    ticket.queue(7)
    ticket.queue(9)
    assert admission.used("prompt_tokens") == 9
    with pytest.raises(QueueFull):
        admission.ticket("b").queue(2)
    ticket.queue(20, is_resumed=True)  # a round after a call: the call must not run twice
    assert admission.used("prompt_tokens") == 20


async def test_a_resumed_run_is_counted_and_not_refused() -> None:
    admission = Admission(AdmissionLimits(max_prompt_tokens=10, max_waiting=1))
    tickets = [admission.resumed_ticket() for _ in range(3)]
    for ticket in tickets:
        ticket.begin_run()
        ticket.queue(9)
    assert held(admission) == {"prompt_tokens": 27, "queued": 3} and admission.num_in("queued", RESUMED) == 3
    for ticket in tickets:
        ticket.end_run()
    assert held(admission) == {}
