"""instructor: answers as objects, in the ways in which it asks for them.

Left out is JSON mode, which tells the fields in words only: that needs a capable model.
"""

from typing import Any

import instructor
import pytest
from openai import OpenAI
from pydantic import BaseModel


class Person(BaseModel):
    name: str
    city: str


ASKED: list[Any] = [{"role": "user", "content": "Answer in JSON: name and city of Sari from Bandung."}]


@pytest.mark.parametrize("mode", ["TOOLS", "TOOLS_STRICT", "JSON_SCHEMA", "RESPONSES_TOOLS"])
@pytest.mark.parametrize("streamed", [False, True])
def test_an_answer_is_an_object(base_url: str, api_key: str, mode: str, streamed: bool) -> None:
    with OpenAI(base_url=base_url, api_key=api_key, max_retries=0) as client:
        patched = instructor.from_openai(client, mode=instructor.Mode[mode])
        asked: dict[str, Any] = {"model": "demo", "messages": ASKED, "temperature": 0, "max_retries": 0}
        if streamed:
            *_, person = patched.chat.completions.create_partial(response_model=Person, **asked)
        else:
            person = patched.chat.completions.create(response_model=Person, **asked)
    assert isinstance(person.name, str) and isinstance(person.city, str)
