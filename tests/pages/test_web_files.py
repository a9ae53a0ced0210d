"""The files of the pages: their addresses change with them, and all that a page needs is named in it."""

import gzip
import hashlib
import json
import re

import httpx2
import pytest

from tests.serving import REPOSITORY
from tis.pages.web_files import WebFile, WebFiles, read_web_files

VENDOR = REPOSITORY / "web" / "vendor"


def files_with(**bodies: str) -> WebFiles:
    return WebFiles({name: WebFile(name, body.encode()) for name, body in bodies.items()})


def test_the_address_changes_with_any_file() -> None:
    assert files_with(a="1", b="2").digest == files_with(b="2", a="1").digest
    others = [files_with(a="1", b="3"), files_with(a="1"), files_with(a="2", b="1"), files_with(c="1", b="2")]
    assert files_with(a="1", b="2").digest not in {one.digest for one in others}


def test_a_page_names_the_modules_that_its_scripts_import() -> None:
    files = WebFiles(
        {
            path: WebFile(path, body.encode())
            for path, body in {
                "page.html": '<script type="module" src="{{assets}}/page/main.js"></script>\n{{preloads}}',
                "page/main.js": 'import { a } from "../app/a.js";\nimport "./b.js";\nimport("./late.js");',
                "app/a.js": 'export { b } from"./deep/c.js"',
                "app/deep/c.js": 'import{a}from"../a.js";',
                "page/b.js": "",
                "page/late.js": "",
            }.items()
        }
    )
    page = files.page("page.html").decode()
    named = set(re.findall(r'rel="modulepreload" href="pages/\w+/([^"]+)"', page))
    assert named == {"app/a.js", "app/deep/c.js", "page/b.js"}
    assert f'src="../pages/{files.digest}/page/main.js"' in files.page("page.html", depth=1).decode()


@pytest.mark.parametrize("path", ["/", "/shop", "/desk", "/admin", "/card", "/status"])
def test_all_that_a_page_names_is_served_for_ever_under_its_address(http: httpx2.Client, path: str) -> None:
    page = http.get(path)
    assert page.headers["cache-control"] == "no-cache" and page.headers["content-type"].startswith("text/html")
    addresses = set(re.findall(r'(?:src|href)="([^"]+)"', page.text)) - {"docs"}
    assert len(addresses) > 10
    for address in addresses:
        answer = http.get(f"/{address}")
        assert answer.status_code == 200, address
        assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert "{{" not in page.text


def test_a_page_allows_no_code_but_its_own(http: httpx2.Client) -> None:
    policy = http.get("/").headers["content-security-policy"]
    parts = dict(part.strip().partition(" ")[::2] for part in policy.split(";"))
    assert parts["default-src"] == "'none'" and parts["script-src"] == parts["style-src"] == "'self'"
    assert parts["require-trusted-types-for"] == "'script'" and parts["frame-ancestors"] == "'none'"
    assert "unsafe" not in policy and "http" not in policy
    html = http.get("/").text
    assert not re.findall(r"<script(?![^>]*src=)|\son\w+=|\sstyle=|<style", html)


def test_files_are_compressed_for_those_who_ask(http: httpx2.Client) -> None:
    address = "/pages/any/vendor/marked.js"
    plain = http.get(address, headers={"accept-encoding": "identity"})
    small = http.get(address, headers={"accept-encoding": "gzip, br"})
    assert small.headers["content-encoding"] == "gzip" and small.content == plain.content
    assert plain.headers["vary"].lower().startswith("accept-encoding")
    assert plain.headers["cache-control"] == "no-cache", "not the address of today's files"


@pytest.mark.parametrize("path", ["%2e%2e/setup.py", "..%2fsetup.py", "chat.html", "nothing.js", "vendor", ""])
def test_nothing_else_is_served(http: httpx2.Client, path: str) -> None:
    assert http.get(f"/pages/any/{path}").status_code == 404


def test_vendored_files_are_those_of_their_list() -> None:
    listing = json.loads((VENDOR / "vendor.json").read_text())
    listed = {path: digest for package in listing.values() for path, digest in package["files"].items()}
    found = {
        path.relative_to(VENDOR).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in VENDOR.rglob("*")
        if path.is_file() and path.name != "vendor.json"
    }
    assert found == listed
    assert all(package["license"] for package in listing.values())


def test_every_page_loads_little() -> None:
    files = read_web_files()
    for page in ("chat.html", "shop.html", "desk.html", "admin.html", "card.html", "link.html", "status.html"):
        html = files.page(page).decode()
        addresses = re.findall(r'(?:src|href)="pages/\w+/([^"]+)"', html)
        total = sum(len(file.compressed or file.body) for address in addresses if (file := files.get(address)))
        assert total < 300_000, f"{page}: {total} bytes"
        assert len(gzip.compress(html.encode())) < 5_000
