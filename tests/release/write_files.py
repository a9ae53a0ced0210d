"""Writes the files of this version, as a server that was killed leaves them: `python -m tests.release.write_files`.

To be run once for each release, before its tag. Later versions must open them (`test_release_files.py`).
"""

import json
import re
import tarfile
import tempfile
from pathlib import Path
from typing import Any

import httpx2

from tests.serving import Process, server_process, wait_until_live
from tests.test_status import until

FOLDER = Path(__file__).parent
FILES, CONTENTS = FOLDER / "files.tar.xz", FOLDER / "contents.json"
CUT = {"session_id": "cut", "stream": True, "messages": [{"role": "user", "content": "a stream that is cut " * 20}]}
FINISHED = {"session_id": "finished", "stream": True, "messages": [{"role": "user", "content": "Halo!"}]}
# More rows than one transaction takes: some batches are imported when the server is killed.
NUM_ROWS = 5001
SHEET = "nama;harga;stok;kategori\n" + "Paku;1000;1;perkakas\n" * NUM_ROWS
SHEET_PATH = "/api/suppliers/1/products/import"
_FOR_EVER = "3153600000"  # seconds: the files only get older


def release_server(folder: Path, tokens_per_second: int) -> Any:
    return server_process(
        MODEL_REPO_ID=f"echo?tokens_per_second={tokens_per_second}",
        SERVED_MODEL_NAME="echo",
        PERSIST_SESSIONS="1",
        SESSIONS_DB_PATH=str(folder / "sessions.db"),
        DATABASE_URL=f"sqlite:///{folder}/marketplace.db",
        SESSIONS_TTL_SECONDS=_FOR_EVER,
        RESPONSES_TTL_SECONDS=_FOR_EVER,
        CHAT_RETENTION_DAYS="36500",
        CANCEL_AFTER_DISCONNECT_SECONDS="0",
        MARKETPLACE_AUTH="open",
    )


def wait_until_ready(process: Process) -> None:
    wait_until_live(process.url)
    until(lambda: httpx2.get(f"{process.url}/health").json()["marketplace"] == "ready")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        contents = _written(Path(folder))
        with tarfile.open(FILES, "w:xz") as files:
            for path in sorted(Path(folder).iterdir()):
                if path.suffix == ".lock" or path.name.endswith("-shm"):  # made anew
                    continue
                files.add(path, path.name, filter=_without_owner_and_date)
    CONTENTS.write_text(json.dumps(contents, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _without_owner_and_date(file: tarfile.TarInfo) -> tarfile.TarInfo:
    file.uid = file.gid = file.mtime = 0
    file.uname = file.gname = ""
    return file


def _written(folder: Path) -> dict[str, Any]:
    with release_server(folder, tokens_per_second=100) as process:
        wait_until_ready(process)
        contents = _put(httpx2.Client(base_url=process.url, timeout=60))
        with httpx2.stream("POST", f"{process.url}/v1/chat/completions", json=CUT, timeout=60) as answer:
            seen = ""
            for text in answer.iter_text():
                seen += text
                if len(re.findall("^id: ", seen, re.MULTILINE)) > 40:
                    break
            sheet = httpx2.post(f"{process.url}{SHEET_PATH}", content=SHEET, headers={"Content-Type": "text/csv"})
            process.popen.kill()
    contents["import"] = sheet.headers["location"]
    return contents | {"cut_stream": seen[: seen.rindex("\n\n") + 2]}


def _put(http: httpx2.Client) -> dict[str, Any]:
    finished = http.post("/v1/chat/completions", json=FINISHED).text
    conversation = http.post("/v1/conversations", json={"items": [{"role": "user", "content": "Nama saya SPECIMEN."}]})
    conversation_id = conversation.json()["id"]
    response = http.post("/v1/responses", json={"input": "Apa kabar?", "conversation": conversation_id}).json()
    person = {
        "name": "Sari Specimen",
        "email": "sari@example.com",
        "password": "a long pass phrase",
        "ai_access_enabled": True,
    }
    user = http.post("/api/users/register", json={**person, "latitude": -6.9, "longitude": 107.6}).json()
    place = {"city": "Bandung", "latitude": -6.9, "longitude": 107.6}
    shop = {"name": "Toko Specimen", "business_name": "Toko Specimen", "email": "toko@example.com", **place}
    supplier = http.post("/api/suppliers/register", json={**shop, "password": "another long phrase"}).json()
    goods = {"name": "Kopi Gayo 250 gram", "price": 60_000, "category": "coffee", "stock_quantity": 5, "sku": "KOPI-1"}
    owner = {"Authorization": f"Bearer {supplier['access_token']}"}
    where = f"/api/suppliers/{supplier['id']}/products"
    product = http.post(where, json={**goods, "attributes": {"berat_g": 250}}, headers=owner).json()
    own = {"Authorization": f"Bearer {user['access_token']}"}
    held = f"/api/products/{product['id']}/reservations"
    reservation = http.post(held, json={"quantity": 2}, headers=own).json()
    http.put("/api/users/me/preferences", json={"brands": ["gayo"]}, headers=own)
    http.post(f"/api/products/{product['id']}/reviews", json={"rating": 4, "title": "Wangi"}, headers=own)
    asked = http.post("/api/chat/search", json={"user_id": user["id"], "query": "kopi di Bandung"}, headers=own).json()
    return {
        "finished_stream": finished,
        "conversation": conversation_id,
        "response": {"id": response["id"], "text": response["output"][0]["content"][0]["text"]},
        "user": {"id": user["id"], "email": person["email"], "password": person["password"]},
        "product": product["id"],
        "reservation": {"id": reservation["id"], "product_id": product["id"], "quantity": 2},
        "talk": asked["session_id"],
    }


if __name__ == "__main__":
    main()
