"""Uses the real server as a client would, in under a minute: `make smoke`.

Needs only what the server needs. Starts `main.py` with the demo model in a temporary folder, asks for one thing after
the other, kills it once and starts it again. One line for each step; exit code 1 with the reason and the end of the
server's log if one fails. Neither a process nor a file stays behind. `python scripts/smoke.py MODEL` takes another
model, which then has to know what the demo model knows.
"""

import http.client
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema

ROOT = Path(__file__).resolve().parent.parent
START_SECONDS = 120
REQUEST_SECONDS = 60
LOG_LINES = 40
# Long enough that a stream of it is still running when its connection or its process ends.
STORY = {
    "messages": [{"role": "user", "content": "Tell me a short story."}],
    "stream": True,
    "temperature": 0,
    "ignore_eos": True,
    "max_tokens": 300,
}
BLOCKS_BEFORE_THE_CUT = 20
WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Get the weather in a city",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 20}, "city": {"enum": ["Bandung", "Medan", "Solo"]}},
    "required": ["name", "city"],
    "additionalProperties": False,
}


class SmokeFailed(Exception):
    """The server did something else than it should; the message says what."""


class ServerUnderTest:
    """`main.py` as a process, with a temporary folder as its current folder."""

    def __init__(self, folder: Path, model: str) -> None:
        self.folder = folder
        self.log = folder / "output.txt"
        self.port = _free_port()
        # The rest of the environment is not passed on: a setting of whoever runs this would change the outcome.
        inherited = ("PATH", "HOME", "LANG", "LD_LIBRARY_PATH", "SYSTEMROOT", "USERPROFILE")
        self.environment = {name: os.environ[name] for name in inherited if name in os.environ} | {
            # torch leaves a folder where temporary files go.
            **dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(folder)),
            "PORT": str(self.port),
            "MODEL_REPO_ID": model,
            "MODEL_CONFIG": str(ROOT / "configs" / "model_config.yaml"),
            "EAGER_LOAD_MODEL": "1",
            "PERSIST_SESSIONS": "1",
            "SESSIONS_DB_PATH": str(folder / "sessions.db"),
            "DATABASE_URL": f"sqlite:///{folder / 'marketplace.db'}",
            "MARKETPLACE_AUTH": "required",
        }
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, str(ROOT / "main.py")],
                cwd=self.folder,
                env=self.environment,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        end = time.monotonic() + START_SECONDS
        while not self._is_ready():
            if self._process.poll() is not None:
                raise SmokeFailed(f"the server exited with {self._process.returncode} instead of starting")
            if time.monotonic() > end:
                raise SmokeFailed(f"the server was not ready after {START_SECONDS} seconds")
            time.sleep(0.05)

    def _is_ready(self) -> bool:
        try:
            self.get("/ready")
        except (SmokeFailed, OSError, http.client.HTTPException):
            return False
        return True

    def kill(self) -> None:
        if self._process:
            self._process.kill()
            self._process.wait()
            self._process = None

    def seed(self) -> None:
        with self.log.open("ab") as log:
            subprocess.run(
                [sys.executable, str(ROOT / "seed_data.py")],
                cwd=self.folder,
                env=self.environment,
                stdout=log,
                stderr=subprocess.STDOUT,
                check=True,
                timeout=REQUEST_SECONDS,
            )

    def get(self, path: str) -> bytes:
        with self._open(path) as answer:
            return bytes(answer.read())

    def chat(self, question: str, **parameters: Any) -> Any:
        """The only choice of a chat that is not streamed."""
        body = {"messages": [{"role": "user", "content": question}], "temperature": 0, **parameters}
        with self._open("/v1/chat/completions", body) as answer:
            [choice] = json.load(answer)["choices"]
        return choice

    def stream(self, body: Any, *, after: str | None = None, max_blocks: int | None = None) -> list[bytes]:
        """The blocks of a stream, those behind the id `after`; the connection is dropped after `max_blocks`."""
        blocks: list[bytes] = []
        block = b""
        headers = {"Last-Event-ID": after} if after else {}
        with self._open("/v1/chat/completions", body, **headers) as answer:
            while (max_blocks is None or len(blocks) < max_blocks) and (line := answer.readline()):
                block += line
                if line == b"\n":
                    blocks.append(block)
                    block = b""
        return blocks

    def read_card(self, picture: Path) -> Any:
        head = f'--smoke\r\nContent-Disposition: form-data; name="image"; filename="{picture.name}"\r\n\r\n'
        form = head.encode() + picture.read_bytes() + b"\r\n--smoke--\r\n"
        headers = {"Content-Type": "multipart/form-data; boundary=smoke"}
        with self._open("/ktp-ocr/", form, **headers) as answer:
            return json.load(answer)

    def _open(self, path: str, body: Any = None, **headers: str) -> Any:
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{path}", data, {"Content-Type": "application/json", **headers}
        )
        try:
            return urllib.request.urlopen(request, timeout=REQUEST_SECONDS)
        except urllib.error.HTTPError as error:
            with error:
                raise SmokeFailed(f"{path} answered {error.code}: {error.read(500).decode(errors='replace')}") from None

    def log_tail(self) -> str:
        if not self.log.exists():
            return "(the server wrote nothing)"
        return "\n".join(self.log.read_text(encoding="utf-8", errors="replace").splitlines()[-LOG_LINES:])


def _free_port() -> int:
    # Below the ports that the kernel gives to clients: a client that tries one of those while the server is down may
    # connect to itself.
    for port in random.sample(range(12000, 32000), 20000):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise SmokeFailed("no port is free")


def expect(fact: object, reason: str) -> None:
    # No `assert`: with `python -O` every step would pass.
    if not fact:
        raise SmokeFailed(reason)


def text_of(blocks: list[bytes]) -> str:
    """What the model said; needs all blocks of a stream, so that none of them can be an error."""
    expect(blocks and blocks[-1].endswith(b"data: [DONE]\n\n"), f"the stream does not end with [DONE]: {blocks[-1:]}")
    chunks = [json.loads(block.partition(b"data: ")[2]) for block in blocks[:-1]]
    return "".join(choice["delta"].get("content") or "" for chunk in chunks for choice in chunk["choices"])


def last_event_id(blocks: list[bytes]) -> str:
    return blocks[-1].partition(b"id: ")[2].partition(b"\n")[0].decode()


def check_chat(served: ServerUnderTest) -> None:
    answer = served.chat("What is 12 + 7?")["message"]["content"]
    expect("19" in answer, f"12 + 7 is {answer!r}")


def check_cut_stream(served: ServerUnderTest) -> None:
    _cut_and_resume(served, "cut", lambda: None)


def check_killed_stream(served: ServerUnderTest) -> None:
    def kill_and_start() -> None:
        served.kill()
        served.start()

    _cut_and_resume(served, "killed", kill_and_start)


def _cut_and_resume(served: ServerUnderTest, session_id: str, interrupt: Callable[[], None]) -> None:
    body = {**STORY, "session_id": f"smoke-{session_id}"}
    uninterrupted = served.stream({**STORY, "session_id": f"smoke-{session_id}-reference"})
    first = served.stream(body, max_blocks=BLOCKS_BEFORE_THE_CUT)
    expect(len(first) == BLOCKS_BEFORE_THE_CUT, f"the stream ended after {len(first)} blocks")
    interrupt()
    rest = served.stream(body, after=last_event_id(first))
    replayed = served.stream(body)
    expect(b"".join(first + rest) == b"".join(replayed), "cut and resumed, the bytes differ from those of one reading")
    # Identifiers and times of two answers differ; their tokens do not.
    expect(text_of(first + rest) == text_of(uninterrupted), "cut and resumed, the model says something else")


def check_tool_call(served: ServerUnderTest) -> None:
    choice = served.chat("What is the weather in Jakarta?", tools=[WEATHER])
    expect(choice["finish_reason"] == "tool_calls", f"no tool was called: {choice}")
    function = choice["message"]["tool_calls"][0]["function"]
    call = function["name"], json.loads(function["arguments"])
    expect(call == ("get_weather", {"city": "Jakarta"}), f"another call came: {call}")


def check_schema(served: ServerUnderTest) -> None:
    form = {"type": "json_schema", "json_schema": {"name": "person", "schema": PERSON, "strict": True}}
    answer = served.chat("Answer in JSON: name and city of Sari from Bandung.", response_format=form, max_tokens=200)
    text = answer["message"]["content"]
    try:
        jsonschema.validate(json.loads(text), PERSON)
    except (ValueError, jsonschema.ValidationError) as error:
        raise SmokeFailed(f"{text!r} is not what the schema asks for: {error}") from None


def check_search(served: ServerUnderTest) -> None:
    query = urllib.parse.urlencode({"q": "leptop gam", "user_lat": -6.2088, "user_lon": 106.8456})
    products = json.loads(served.get(f"/api/products/search?{query}"))
    names = [product["name"] for product in products]
    expect(names and "Laptop Gaming" in names[0], f"no gaming laptop is found for `leptop gam`: {names}")
    expect(products[0]["distance_km"] is not None, "the hit has no distance")


def check_card(served: ServerUnderTest) -> None:
    card = served.read_card(ROOT / "docs" / "samples" / "ktp-specimen.jpg")
    expect(card["nik"] == "3603125002977921", f"the NIK of the specimen is read as {card['nik']}")
    expect(card["engine"]["path"] == "ocr", f"the demo model took part: {card['engine']}")


STEPS: tuple[tuple[str, Callable[[ServerUnderTest], None]], ...] = (
    ("sample marketplace", ServerUnderTest.seed),
    ("start with the demo model", ServerUnderTest.start),
    ("chat", check_chat),
    ("stream cut and resumed", check_cut_stream),
    ("tool call", check_tool_call),
    ("answer held to a JSON schema", check_schema),
    ("marketplace search", check_search),
    ("identity card", check_card),
    ("stream resumed after SIGKILL", check_killed_stream),
)


def main() -> int:
    # Ending by SIGTERM unwinds like Ctrl-C does, so that the server ends, too.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    model = sys.argv[1] if len(sys.argv) > 1 else str(ROOT / "models" / "demo")
    with tempfile.TemporaryDirectory(prefix="tis-smoke-", ignore_cleanup_errors=True) as folder:
        served = ServerUnderTest(Path(folder), model)
        try:
            for name, step in STEPS:
                began = time.monotonic()
                try:
                    step(served)
                except Exception as error:  # the boundary: whatever a step meets is printed, and the exit code says so
                    print(f"[failed] {name}: {error or type(error).__name__}\n\n{served.log_tail()}", flush=True)
                    return 1
                print(f"[ok] {name} ({time.monotonic() - began:.1f} s)", flush=True)
        finally:
            served.kill()
    return 0


if __name__ == "__main__":
    sys.exit(main())
