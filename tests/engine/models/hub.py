"""A fake Hugging Face hub with one repository, as far as downloads need it."""

import hashlib
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

REPO = "tis/demo"
COMMIT = "0123456789abcdef0123456789abcdef01234567"


@contextmanager
def hub_with(
    folder: Path,
    extra: dict[str, bytes],
    token: str | None = None,
    on_file: Callable[[str], object] = lambda name: None,
) -> Iterator[str]:
    """Serves the files of a folder, and `extra` ones, as the repository `tis/demo`; may require a token.

    It has the branches `main` and `v1`. `on_file` is called before a file is sent.
    """
    files = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()} | extra
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(files, token, on_file))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _handler(
    files: dict[str, bytes], token: str | None, on_file: Callable[[str], object]
) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            if token and self.headers["Authorization"] != f"Bearer {token}":
                self.send_error(401)
            elif path in (f"/api/models/{REPO}/revision/main", f"/api/models/{REPO}/revision/v1"):
                siblings = [{"rfilename": name} for name in files]
                self._send(json.dumps({"id": REPO, "sha": COMMIT, "siblings": siblings}).encode())
            elif path.startswith(f"/api/models/{REPO}/tree/"):
                tree = [{"type": "file", "path": n, "size": len(d), "oid": _etag(d)} for n, d in files.items()]
                self._send(json.dumps(tree).encode())
            else:
                self._send_file(path)

        do_HEAD = do_GET

        def _send_file(self, path: str) -> None:
            name = path.removeprefix(f"/{REPO}/resolve/{COMMIT}/")
            if name in files:
                if self.command == "GET":
                    on_file(name)
                self._send(files[name], ETag=f'"{_etag(files[name])}"', **{"X-Repo-Commit": COMMIT})
            else:
                self.send_error(404)

        def _send(self, body: bytes, **headers: str) -> None:
            self.send_response(200)
            for name, value in {"Content-Length": str(len(body)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    return Handler


def _etag(content: bytes) -> str:
    return hashlib.sha1(content, usedforsecurity=False).hexdigest()
