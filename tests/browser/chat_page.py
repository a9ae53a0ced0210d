"""The chat page as a user handles it, and what it has stored."""

import json
import re
import time
import urllib.request
from typing import Any

from playwright.sync_api import Page, expect

_STORED = """async () => {
  const database = await new Promise((resolve, reject) => {
    const request = indexedDB.open("tis-chat");
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
  const all = (store) => new Promise((resolve) => {
    database.transaction(store).objectStore(store).getAll().onsuccess = (event) => resolve(event.target.result);
  });
  const found = { conversations: await all("conversations"), messages: await all("messages") };
  database.close();
  return found;
}"""


class ChatPage:
    def __init__(self, page: Page) -> None:
        self.page = page
        self.answers = page.locator(".message.assistant")
        self.questions = page.locator(".message.user")
        self.answer = self.answers.last
        self.text = self.answer.locator(".rich")

    def send(self, text: str) -> None:
        self.page.locator(".chat-bottom textarea").fill(text)
        self.page.locator(".chat-bottom button.send").click()

    def until_text(self, text: str) -> None:
        expect(self.text).to_contain_text(text)

    def until_done(self, timeout: float = 30_000) -> None:
        expect(self.answer).to_have_attribute("aria-busy", "false", timeout=timeout)

    @property
    def session_id(self) -> str:
        match = re.fullmatch(r"#/c/[\w-]+/([\w-]+)", self.page.evaluate("location.hash"))
        assert match, self.page.url
        return match[1]

    def stored(self) -> dict[str, Any]:
        found = self.page.evaluate(_STORED)
        assert isinstance(found, dict)
        return found

    def until_stored(self, text: str) -> None:
        """The answer is stored as far as this text: a reload goes on behind it."""
        end = time.monotonic() + 20
        while not any(text in one["answer"]["text"] for one in self.stored()["messages"] if one["answer"]):
            assert time.monotonic() < end
            self.page.wait_for_timeout(50)

    def stored_answer(self, session_id: str) -> dict[str, Any]:
        [answer] = [
            one["answer"]
            for one in self.stored()["messages"]
            if one["answer"] and one["answer"]["sessionId"] == session_id
        ]
        assert isinstance(answer, dict)
        return answer


def recorded_text(url: str, session_id: str, **headers: str) -> str:
    """The text of an answer as the server has recorded it."""
    request = urllib.request.Request(f"{url}/v1/stream/{session_id}", headers=headers)
    with urllib.request.urlopen(request, timeout=30) as answer:
        blocks = answer.read().decode().split("\n\n")
    lines = [line for block in blocks for line in block.split("\n") if line.startswith("data: {")]
    choices = [choice for line in lines for choice in json.loads(line[6:])["choices"]]
    return "".join(choice["delta"].get("content") or "" for choice in choices)
