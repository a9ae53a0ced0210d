"""`tis chat`: talk with a model in the terminal."""

import argparse
import base64
import json
import mimetypes
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tis.cli.api_client import (
    CONNECTION_ERRORS,
    AddressError,
    ApiClient,
    ApiRefused,
    EventStream,
    client_of,
    printable,
)
from tis.cli.chat_tools import TOOLS, run_tool
from tis.cli.ctrl_c import raise_keyboard_interrupt
from tis.setting_types import SettingsError
from tis.settings import Settings

DESCRIPTION = """Talk with a model in the terminal.

TARGET is the URL of a server, or the name of a model of the server on HOST and PORT.
Ctrl-C stops an answer; at the prompt it ends the talk. If the connection is lost during an answer, the answer goes on
where it stopped, as soon as the server is back."""
HELP = """/image PATH   show the model a picture with your next message
/tools        let the model use a clock and a calculator of this terminal, or no longer
/clear        begin anew
/exit         end, as Ctrl-D"""
_MAX_ROUNDS = 8
_MAX_IMAGE_BYTES = 20 * 2**20
_RETRY_SECONDS = 0.5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("target", nargs="?", metavar="URL|MODEL", help="a server, or a model of the server here")
    parser.add_argument("--model", help="at a URL: its model; without it the first that it lists")
    parser.add_argument("--key", help="API key; without it OPENAI_API_KEY, or the first of API_KEYS")
    parser.add_argument("--system", metavar="TEXT", help="the system message")
    parser.add_argument("--max-tokens", type=int, metavar="N", help="of an answer")
    parser.add_argument(
        "--wait", type=float, default=120.0, metavar="SECONDS", help="for a lost server to come back (default 120)"
    )


def run(parsed: argparse.Namespace) -> None:
    raise_keyboard_interrupt()
    is_url = bool(parsed.target) and "://" in parsed.target
    try:
        client = client_of(Settings.from_env(), parsed.target if is_url else None, parsed.key)
        model = parsed.model or (None if is_url else parsed.target)
        listed = [str(one["id"]) for one in client.get("/v1/models")["data"]]
        is_ours = "modelReady" in _health(client)
    except (SettingsError, AddressError, ApiRefused) as error:
        sys.exit(f"Cannot chat: {error}")
    except (*CONNECTION_ERRORS, ValueError, KeyError, TypeError) as error:
        sys.exit(f"Cannot chat: no server answers at {client.url} ({error}). `tis serve` starts one.")
    if not (model or listed):
        sys.exit(f"Cannot chat: {client.url} lists no model.")
    talk = TerminalTalk(client, model or listed[0], parsed.max_tokens, parsed.wait, is_resumable=is_ours)
    if parsed.system:
        talk.messages.append({"role": "system", "content": parsed.system})
    _say(f"{talk.model} at {client.url}. /help lists the commands.\n")
    _read_lines(talk)


def _health(client: ApiClient) -> dict[str, Any]:
    try:
        found = client.get("/health")
    except (ApiRefused, *CONNECTION_ERRORS, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _read_lines(talk: "TerminalTalk") -> None:
    with suppress(ImportError):
        import readline  # noqa: F401  arrow keys and history at the prompt
    while True:
        try:
            line = input("> ").strip()
        except EOFError:
            _say("\n")
            return
        if line in ("/exit", "/quit"):
            return
        try:
            if line.startswith("/"):
                _say(talk.command(line) + "\n")
            elif line:
                talk.ask(line)
        except ApiRefused as refused:
            _say(f"\n[the server refused: {refused}]\n")
        except CONNECTION_ERRORS as error:
            _say(f"\n[no answer: {printable(str(error))}]\n")


def _say(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


@dataclass
class TerminalTalk:
    """The conversation. Messages of a question without an answer are taken back."""

    client: ApiClient
    model: str
    max_tokens: int | None = None
    wait_seconds: float = 120.0
    is_resumable: bool = True
    messages: list[dict[str, Any]] = field(default_factory=list)
    images: list[str] = field(default_factory=list)
    uses_tools: bool = False
    say: Callable[[str], None] = _say

    def command(self, line: str) -> str:
        name, _, argument = line.partition(" ")
        if name == "/image":
            return self._add_image(argument.strip())
        if name == "/tools":
            self.uses_tools = not self.uses_tools
            names = ", ".join(one["function"]["name"] for one in TOOLS)
            return f"[the model may use {names}]" if self.uses_tools else "[no tools]"
        if name == "/clear":
            self.messages = [one for one in self.messages if one["role"] == "system"]
            self.images.clear()
            return "[a new conversation]"
        return HELP if name == "/help" else f"[there is no {name}; /help lists the commands]"

    def _add_image(self, path: str) -> str:
        file = Path(path).expanduser()
        kind = mimetypes.guess_type(file.name)[0] or "image/png"
        try:
            if file.stat().st_size > _MAX_IMAGE_BYTES:
                return f"[{path} is larger than {_MAX_IMAGE_BYTES >> 20} MiB]"
            data = file.read_bytes()
        except OSError as error:
            return f"[{path} cannot be read: {error.strerror}]"
        self.images.append(f"data:{kind};base64,{base64.b64encode(data).decode()}")
        return f"[{file.name} goes with your next message]"

    def ask(self, text: str) -> None:
        num_before = len(self.messages)
        content: Any = text
        if self.images:
            pictures = [{"type": "image_url", "image_url": {"url": url}} for url in self.images]
            content = [*pictures, {"type": "text", "text": text}]
        self.messages.append({"role": "user", "content": content})
        try:
            for _ in range(_MAX_ROUNDS):
                answer = self._answer()
                self.messages.append(answer)
                if not answer.get("tool_calls"):
                    break
                self._run_tools(answer["tool_calls"])
        except (ApiRefused, *CONNECTION_ERRORS):
            del self.messages[num_before:]
            raise
        self.images.clear()

    def _run_tools(self, calls: list[dict[str, Any]]) -> None:
        for call in calls:
            called = call["function"]
            result = run_tool(called["name"], called["arguments"])
            self.say(f"[{printable(called['name'])}({printable(called['arguments'])}) = {result}]\n")
            self.messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})

    def _answer(self) -> dict[str, Any]:
        body: dict[str, Any] = {"model": self.model, "messages": self.messages, "stream": True}
        if self.max_tokens:
            body["max_tokens"] = self.max_tokens
        if self.uses_tools:
            body["tools"] = TOOLS
        session = f"chat-{uuid.uuid4().hex}" if self.is_resumable else ""
        if session:
            body["session_id"] = session
        parts = AnswerParts()
        try:
            for chunk in self._chunks(body, session):
                self.say(printable(parts.add(chunk)))
        except KeyboardInterrupt:
            self.say(" [stopped]")
            if session:
                with suppress(ApiRefused, *CONNECTION_ERRORS, ValueError):
                    self.client.post(f"/v1/cancel/{session}", {})
            parts.calls.clear()  # a call that is cut has no arguments to run with
        self.say("\n")
        return parts.message

    def _chunks(self, body: dict[str, Any], session: str) -> Iterator[dict[str, Any]]:
        """The chunks of the answer, over as many connections as it takes."""
        stream: EventStream | None = self.client.stream("POST", "/v1/chat/completions", body)
        last_id, lost_at = "", 0.0
        while stream:
            try:
                for event in stream:
                    lost_at = 0.0
                    last_id = event.id or last_id
                    chunk = json.loads(event.data)
                    if error := chunk.get("error"):
                        raise ApiRefused(int(error.get("status") or 500), printable(str(error.get("message"))))
                    yield chunk
                return
            except CONNECTION_ERRORS:
                if not (session and last_id):
                    raise
                lost_at = lost_at or time.monotonic()
                stream.close()
                self.say(" [connection lost] ")
                stream = self._again(session, last_id, lost_at + self.wait_seconds)
                self.say("[resumed] ")

    def _again(self, session: str, last_id: str, until: float) -> EventStream:
        while True:
            time.sleep(_RETRY_SECONDS)
            try:
                return self.client.stream("GET", f"/v1/stream/{session}", None, last_id)
            except ApiRefused as refused:
                if refused.status not in (429, 502, 503, 504) or time.monotonic() > until:
                    raise
            except CONNECTION_ERRORS:
                if time.monotonic() > until:
                    raise


@dataclass
class AnswerParts:
    """What the chunks of an answer say, put together."""

    text: str = ""
    calls: list[dict[str, Any]] = field(default_factory=list)
    thinks: bool = False

    def add(self, chunk: dict[str, Any]) -> str:
        """Returns what is new for the eye."""
        choices = chunk.get("choices") or [{}]
        delta = choices[0].get("delta") or {}
        for call in delta.get("tool_calls") or ():
            self._add_call(call)
        shown = ""
        if thought := delta.get("reasoning_content") or delta.get("reasoning"):
            shown = thought if self.thinks else f"[thinking] {thought}"
            self.thinks = True
        if new := delta.get("content"):
            shown += f"\n[answer] {new}" if self.thinks else new
            self.thinks = False
            self.text += new
        return shown

    def _add_call(self, call: dict[str, Any]) -> None:
        place = int(call.get("index") or 0)
        while len(self.calls) <= min(place, 63):
            self.calls.append({"id": "", "type": "function", "function": {"name": "", "arguments": ""}})
        known, new = self.calls[min(place, 63)], call.get("function") or {}
        known["id"] = call.get("id") or known["id"]
        known["function"]["name"] += new.get("name") or ""
        known["function"]["arguments"] += new.get("arguments") or ""

    @property
    def message(self) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": self.text}
        return {**message, "tool_calls": self.calls} if self.calls else message
