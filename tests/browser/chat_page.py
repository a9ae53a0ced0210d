"""The chat page as a user handles it on this screen and in this language, and what it sends and stores."""

import json
import re
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from playwright.sync_api import Locator, Page, Request, TimeoutError, expect

from tests.browser.looks import DESKTOP, PageLook

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
_DROP = """async ([name, type, data, kinds]) => {
  const bytes = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
  const transfer = new DataTransfer();
  transfer.items.add(new File([bytes], name, { type }));
  for (const kind of kinds) {
    document.body.dispatchEvent(new DragEvent(kind, { dataTransfer: transfer, bubbles: true, cancelable: true }));
  }
}"""
_QUESTIONS = ("/v1/chat/completions", "/v1/responses")


class ChatPage:
    def __init__(self, page: Page, look: PageLook = DESKTOP) -> None:
        self.page, self.look, self.t = page, look, look.t
        self.field = page.get_by_role("textbox", name=look.t("composer.field"), exact=True)
        self.dialog = page.get_by_role("dialog")
        self.answers = page.locator(".message.assistant")
        self.questions = page.locator(".message.user")
        self.answer = self.answers.last
        self.text = self.answer.locator(".rich")

    def second_tab(self) -> "ChatPage":
        """Of the same browser, at the same address."""
        other = ChatPage(self.page.context.new_page(), self.look)
        other.page.goto(self.page.url)
        return other

    def button(self, message: str, /, **values: object) -> Locator:
        return self.page.get_by_role("button", name=self.t(message, **values), exact=True)

    def choose(self, message: str) -> None:
        """An item of the menu that is open."""
        self.page.get_by_role("menuitem", name=self.t(message), exact=True).click()

    def menu(self) -> Locator:
        """The button of what one can do with the conversation."""
        return self.page.get_by_role("banner").get_by_role("button", name=self.t("chat.more"), exact=True)

    def send(self, text: str) -> None:
        """As one does it here: on a phone the key breaks the line."""
        self.field.fill(text)
        if self.look.is_phone:
            self.button("composer.send").click()
        else:
            self.field.press("Enter")

    def ask(self, text: str) -> Any:
        """Sends, and returns the body of the request."""
        return self.request_of(lambda: self.send(text))

    def request_of(self, action: Callable[[], object]) -> Any:
        def is_question(request: Request) -> bool:
            return request.method == "POST" and request.url.endswith(_QUESTIONS)

        try:
            with self.page.expect_request(is_question) as sent:
                action()
        except TimeoutError as error:
            focus = self.page.evaluate("() => document.activeElement.outerHTML.slice(0, 200)")
            error.add_note(f"Field: {self.field.input_value()!r}; focus: {focus}; dialogs: {self.dialog.count()}.")
            raise
        return json.loads(sent.value.post_data or "")

    def until_text(self, text: str) -> None:
        expect(self.text).to_contain_text(text)

    def until_done(self, timeout: float = 60_000) -> Locator:
        """The last answer, complete."""
        expect(self.answer).to_have_attribute("aria-busy", "false", timeout=timeout)
        return self.answer

    def give_key(self, key: str) -> None:
        self.page.get_by_role("textbox", name=self.t("key.api"), exact=True).fill(key)
        self.button("key.use").click()

    def settings(self, tab: str | None = None) -> Locator:
        """The drawer of settings, open at this tab."""
        self.page.get_by_role("banner").get_by_role("button", name=self.t("chat.settings"), exact=True).click()
        if tab:
            self.dialog.get_by_role("tab", name=self.t(tab)).click()
        return self.dialog

    def close_dialog(self) -> None:
        """And waits until it is gone: only then the focus is back, and what is typed goes where it shall."""
        self.page.keyboard.press("Escape")
        expect(self.dialog).to_have_count(0)

    def sidebar(self) -> Locator:
        """The list of conversations; on a phone it is a drawer that covers the page."""
        if self.look.is_phone:
            self.button("chat.conversations").click()
        return self.page.get_by_role("navigation", name=self.t("chat.conversations"), exact=True)

    def new_chat(self) -> None:
        self.sidebar().get_by_role("button", name=self.t("chat.new"), exact=True).click()

    def open_menu_of(self, title: str) -> None:
        """Of a conversation in the list."""
        button = self.button("chat.more_of", title=title)
        if not self.look.is_phone:
            button.hover()
        button.click()

    def import_file(self, path: Path) -> None:
        """Where the list of conversations is open."""
        self.page.get_by_label(self.t("chat.import"), exact=True).and_(self.page.locator("input")).set_input_files(path)

    def attach(self, *files: tuple[str, str, bytes]) -> None:
        payloads = [{"name": name, "mimeType": media_type, "buffer": data} for name, media_type, data in files]
        self.page.locator("[data-role=files]").set_input_files(payloads)  # type: ignore[arg-type]

    def drag(self, name: str, media_type: str, data: str, *kinds: str) -> None:
        """`kinds`: dragenter, dragover, drop, as a browser sends them; `data` in base64."""
        self.page.evaluate(_DROP, [name, media_type, data, list(kinds)])

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
        end = time.monotonic() + 60
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
