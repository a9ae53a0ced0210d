"""How a test asks in the chat page, and what the page sends."""

import json
from collections.abc import Callable
from typing import Any

from playwright.sync_api import Locator, Page, expect

_DROP = """async ([name, type, data, kinds]) => {
  const bytes = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
  const transfer = new DataTransfer();
  transfer.items.add(new File([bytes], name, { type }));
  for (const kind of kinds) {
    document.body.dispatchEvent(new DragEvent(kind, { dataTransfer: transfer, bubbles: true, cancelable: true }));
  }
}"""


def field_of(page: Page) -> Locator:
    return page.locator(".composer-field")


def ask(page: Page, text: str) -> Any:
    """Sends with the keyboard, and returns the body of the request."""

    def send() -> None:
        field_of(page).fill(text)
        field_of(page).press("Enter")

    return request_of(page, send)


def request_of(page: Page, action: Callable[[], object]) -> Any:
    def is_question(request: Any) -> bool:
        return bool(request.method == "POST" and request.url.endswith(("/v1/chat/completions", "/v1/responses")))

    with page.expect_request(is_question) as sent:
        action()
    return json.loads(sent.value.post_data or "")


def answer_of(page: Page) -> Locator:
    """The last answer, complete."""
    answer = page.locator(".message.assistant").last
    expect(answer).to_have_attribute("aria-busy", "false", timeout=60_000)
    return answer


def drag(page: Page, name: str, media_type: str, data: str, *kinds: str) -> None:
    """`kinds`: dragenter, dragover, drop, as a browser sends them; `data` in base64."""
    page.evaluate(_DROP, [name, media_type, data, list(kinds)])
