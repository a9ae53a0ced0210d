"""The queue of a model knows how many tokens of prompts wait in it, whichever way requests leave."""

import pytest

from tests.engine.test_worker import new_request
from tis.engine.request import Request
from tis.engine.request_queue import RequestQueue
from tis.errors import QueueFull


def queue_of(*texts: str, max_size: int = 10) -> tuple[RequestQueue, list[Request]]:
    queue, requests = RequestQueue("m", max_size), [new_request(text) for text in texts]
    for request in requests:
        queue.put(request)
    return queue, requests


def resumed(text: str) -> Request:
    request = new_request(text)
    request.is_resumed = True
    return request


def test_prompts_that_wait_are_counted_until_a_place_is_free() -> None:
    queue, _ = queue_of("1234", "12")
    queue.put(resumed("123"))
    assert queue.num_prompt_tokens == 9
    left = []
    while queue.next():
        left.append(queue.num_prompt_tokens)
    assert left == [6, 2, 0]


def test_a_request_that_is_refused_does_not_count() -> None:
    queue, _ = queue_of("1234", max_size=1)
    with pytest.raises(QueueFull):
        queue.put(new_request("12"))
    assert queue.num_prompt_tokens == 4


def test_requests_that_leave_the_queue_by_other_ways_do_not_count_any_more() -> None:
    queue, (first, _, _) = queue_of("1234", "12", "123456")
    again = resumed("123")
    queue.put(again)
    queue.remove(first)
    assert queue.num_prompt_tokens == 11
    assert queue.next_of(lambda owner: True) is again
    queue.next_of(lambda owner: True)
    assert queue.num_prompt_tokens == 6
    queue.clear()
    assert queue.num_prompt_tokens == 0
