"""Builds the image where no Docker engine is, and uses it: `sudo python scripts/try_image.py`.

buildah carries out the steps of the Dockerfile (chroot isolation) on a base that debootstrap makes: Debian with its own
Python 3.11, not the image `python:3.11-slim-bookworm` of a registry. The server runs as the user of the image, with a
read-only root; the script asks its health, chats, reads a card and stops it. Exit code 0: it works; 1: it does not;
77: it was skipped, and a line says why. With `--folder` a second run uses tools and base again.
"""

import argparse
import json
import os
import socket
import sys
import tempfile
import urllib.error
import urllib.request
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from scripts.image.container import ImageProcess, status_of, wait_for
from scripts.image.root_folder import REPOSITORY, Image, ImageBuild
from scripts.image.tools import ImageFailed, ImageSkipped, find_tools

MAX_BYTES = 2 * 10**9
START_SECONDS = 300
REQUEST_SECONDS = 120
SKIPPED = 77


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, help="for tools, base, layers and logs; a temporary one otherwise")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="try-image-", dir="/var/tmp" if os.name == "posix" else None) as temporary:
        folder = (chosen.folder or Path(temporary)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        try:
            try_image(folder)
        except ImageSkipped as reason:
            print(f"SKIPPED: {reason}.")
            return SKIPPED
        except ImageFailed as error:
            print(f"FAILED: {error}")
            return 1
    print("The image works.")
    return 0


def try_image(folder: Path) -> None:
    builder = ImageBuild(find_tools(folder), folder, say)
    try:
        image = builder.build({"BAKE_MODEL": "models/demo", "VERSION": "0.0.0"})
        check_folder(image)
        use(image, folder)
    finally:
        with suppress(ImageFailed, OSError):
            builder.remove()


def check_folder(image: Image) -> None:
    size = sum(path.lstat().st_size for path in image.root.rglob("*") if path.is_file() and not path.is_symlink())
    say(f"size: {size / 1e9:.2f} GB with the demo model")
    expect(size < MAX_BYTES, f"the image has {size} bytes")
    kernels = [path.name for path in image.root.glob("opt/venv/lib/python3*/site-packages/tis/engine/kernels/*.so")]
    say(f"native kernels: {', '.join(kernels) or 'none'}")
    expect(image.config["Labels"]["org.opencontainers.image.version"] == "0.0.0", "the label of the version")
    expect(not [entry for entry in image.config["Env"] if entry.startswith("HF_TOKEN=")], "a token is in the image")


def use(image: Image, folder: Path) -> None:
    port = free_port()
    variables = {"PORT": str(port), "HF_HUB_OFFLINE": "1"}
    server = ImageProcess(image, folder / "data", folder / "server.txt", variables)
    client = ImageClient(port)
    server.start()
    try:
        wait_for(lambda: is_ready(server, client), START_SECONDS, "/ready")
        say(f"health: {client.get('/health')}")
        check_processes(server)
        answer = client.post_json(
            "/v1/chat/completions", {"messages": [{"role": "user", "content": "What is 12 + 7?"}]}
        )
        expect("19" in answer["choices"][0]["message"]["content"], f"12 + 7 is {answer}")
        say(f"chat: {answer['choices'][0]['message']['content']!r}")
        card = client.read_card(REPOSITORY / "docs" / "samples" / "ktp-specimen.jpg")
        expect(card["nik"] == "3603125002977921", f"the card is read as {card}")
        say(f"card: NIK {card['nik']}")
        check_orphan(server)
        server.inside(*health_command())
        say("health check of the Dockerfile: healthy")
        expect((folder / "data" / "sessions.db").stat().st_uid == server.user, "the sessions belong to somebody else")
        code = server.stop()
        expect(code == 0, f"it exited with {code} after SIGTERM")
        say("stopped by SIGTERM with exit code 0")
    finally:
        server.kill()


def is_ready(server: ImageProcess, client: "ImageClient") -> bool:
    server.check_alive()
    with suppress(ImageFailed, OSError):
        return bool(client.get("/ready"))
    return False


def check_processes(server: ImageProcess) -> None:
    processes = {number: status_of(number) for number in server.processes()}
    users = {status["Uid"].split()[0] for status in processes.values() if status}
    expect(users == {str(server.user)}, f"it runs as {users}")
    expect(processes[server.first]["Name"] == "tini", f"process 1 is {processes[server.first]['Name']}")
    for name in ("app", "opt/venv", "etc"):
        try:
            Path(f"/proc/{server.first}/root/{name}/written").touch()
        except OSError as error:
            expect("Read-only" in str(error), f"/{name}: {error}")
        else:
            raise ImageFailed(f"/{name} can be written")
    say(f"{len(processes)} processes of user {server.user}, process 1 is tini; the root is read-only")


def check_orphan(server: ImageProcess) -> None:
    """A process whose parent is gone becomes a child of process 1, which has to reap it."""
    server.inside("sh", "-c", "sleep 0.5 > /dev/null 2>&1 &")
    wait_for(
        lambda: not [number for number in server.processes() if status_of(number).get("Name") == "sleep"],
        10,
        "the end of an orphan",
    )
    zombies = [number for number in server.processes() if status_of(number).get("State", "").startswith("Z")]
    expect(not zombies, f"{len(zombies)} zombies")
    say("orphans are reaped")


def health_command() -> list[str]:
    lines = (REPOSITORY / "Dockerfile").read_text(encoding="utf-8").splitlines()
    [check] = [line for line in lines if line.startswith("HEALTHCHECK")]
    command: list[str] = json.loads(check.partition("CMD ")[2])
    return command


class ImageClient:
    def __init__(self, port: int) -> None:
        self._url = f"http://127.0.0.1:{port}"

    def get(self, path: str) -> Any:
        return self._ask(urllib.request.Request(f"{self._url}{path}"))

    def post_json(self, path: str, body: Any) -> Any:
        headers = {"Content-Type": "application/json"}
        return self._ask(urllib.request.Request(f"{self._url}{path}", json.dumps(body).encode(), headers))

    def read_card(self, picture: Path) -> Any:
        head = '--card\r\nContent-Disposition: form-data; name="image"; filename="card.jpg"\r\n\r\n'
        form = head.encode() + picture.read_bytes() + b"\r\n--card--\r\n"
        headers = {"Content-Type": "multipart/form-data; boundary=card"}
        return self._ask(urllib.request.Request(f"{self._url}/ktp-ocr/", form, headers))

    def _ask(self, request: urllib.request.Request) -> Any:
        try:
            with urllib.request.urlopen(request, timeout=REQUEST_SECONDS) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                raise ImageFailed(f"{request.selector} answered {error.code}: {error.read(300)!r}") from None


def free_port() -> int:
    with closing(socket.socket()) as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def expect(fact: bool, otherwise: str) -> None:
    if not fact:
        raise ImageFailed(otherwise)


def say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
