"""Fetches the libraries of the pages from npm into web/vendor. Run it after a change of the list below.

The browser loads modules by address, so bare names in their imports become addresses; else each file is as it was
published. `web/vendor/vendor.json` names version, licence and hash of each; a test compares the files with it.
"""

import argparse
import hashlib
import io
import json
import re
import subprocess
import tarfile
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

VENDOR = Path(__file__).parents[1] / "web" / "vendor"
_LANGUAGES = (
    "bash c cpp csharp css diff dockerfile go graphql http ini java javascript json kotlin lua makefile markdown "
    "nginx php plaintext powershell python r ruby rust scss sql swift typescript xml yaml"
).split()
_KATEX_FONTS = (
    "AMS-Regular Caligraphic-Bold Caligraphic-Regular Fraktur-Bold Fraktur-Regular Main-Bold Main-BoldItalic "
    "Main-Italic Main-Regular Math-BoldItalic Math-Italic SansSerif-Bold SansSerif-Italic SansSerif-Regular "
    "Script-Regular Size1-Regular Size2-Regular Size3-Regular Size4-Regular Typewriter-Regular"
).split()
_ICONS = (
    "activity archive arrow-down arrow-right arrow-up arrow-up-down audio-lines ban bell book-open braces brain "
    "calendar calendar-clock camera chart-column chart-line check chevron-down chevron-left chevron-right "
    "circle-alert circle-check circle-help circle-x clipboard-copy clipboard-paste clock code copy cpu credit-card "
    "crosshair download ellipsis external-link eye eye-off file-spreadsheet file-text flag folder folder-tree gauge "
    "git-branch globe grip-vertical hand hard-drive history id-card image image-plus inbox info key key-round "
    "keyboard languages layers link list list-checks loader-circle log-in log-out mail map map-pin maximize "
    "memory-stick menu message-circle message-square mic minus monitor moon network octagon-x package package-plus "
    "panel-left panels-top-left pause pencil percent phone play plug plus power redo-2 refresh-cw reply rotate-ccw "
    "scale scan-line search send server settings share-2 shield shield-check shopping-bag skull sliders-horizontal "
    "sparkles square square-pen star store sun table tag tags terminal thumbs-up timer trash-2 trending-up "
    "triangle-alert truck undo-2 unplug upload user user-check user-plus users video volume-2 wifi wifi-off wrench x "
    "zap zoom-in zoom-out"
).split()


@dataclass(frozen=True)
class Package:
    """One package of npm, pinned, and which of its files become which of ours."""

    name: str
    version: str
    files: dict[str, str]
    imports: dict[str, str] = field(default_factory=dict)
    icons: tuple[str, ...] = ()


PACKAGES = [
    Package(
        "preact",
        "11.2.0",
        {"dist/preact.mjs": "preact.js", "hooks/dist/hooks.mjs": "preact-hooks.js"},
        {"preact": "./preact.js"},
    ),
    Package("@preact/signals-core", "1.14.5", {"dist/signals-core.mjs": "signals-core.js"}),
    Package(
        "@preact/signals",
        "2.11.4",
        {"dist/signals.mjs": "signals.js"},
        {"preact": "./preact.js", "preact/hooks": "./preact-hooks.js", "@preact/signals-core": "./signals-core.js"},
    ),
    Package("htm", "3.1.1", {"dist/htm.mjs": "htm.js"}),
    Package("marked", "18.2.1", {"lib/marked.esm.js": "marked.js"}),
    Package("dompurify", "3.4.18", {"dist/purify.es.mjs": "dompurify.js"}),
    Package(
        "@highlightjs/cdn-assets",
        "11.12.0",
        {"es/core.min.js": "highlight/core.js"}
        | {f"es/languages/{name}.min.js": f"highlight/{name}.js" for name in _LANGUAGES},
    ),
    Package(
        "katex",
        "0.19.1",
        {"dist/katex.mjs": "katex/katex.js", "dist/katex.min.css": "katex/katex.css"}
        | {f"dist/fonts/KaTeX_{name}.woff2": f"katex/fonts/KaTeX_{name}.woff2" for name in _KATEX_FONTS},
    ),
    Package("uplot", "1.6.32", {"dist/uPlot.esm.js": "uplot.js", "dist/uPlot.min.css": "uplot.css"}),
    Package("@fontsource-variable/geist", "5.3.0", {"files/geist-latin-wght-normal.woff2": "fonts/geist.woff2"}),
    Package(
        "@fontsource-variable/geist-mono",
        "5.3.0",
        {"files/geist-mono-latin-wght-normal.woff2": "fonts/geist-mono.woff2"},
    ),
    Package("lucide-static", "1.62.0", {}, icons=tuple(_ICONS)),
]


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    listing = {}
    for package in PACKAGES:
        with tempfile.TemporaryDirectory() as folder:
            listing[package.name] = _vendor(package, Path(folder))
    (VENDOR / "vendor.json").write_text(json.dumps(listing, indent=2) + "\n", encoding="utf-8")


def _vendor(package: Package, folder: Path) -> dict[str, object]:
    command = ["npm", "pack", "--silent", f"{package.name}@{package.version}"]
    archive = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout.split()[-1]
    with tarfile.open(folder / archive) as tar:
        contents = {
            member.name.split("/", 1)[1]: extracted.read()
            for member in tar.getmembers()
            if member.isfile() and (extracted := tar.extractfile(member))
        }
    description = json.load(io.BytesIO(contents["package.json"]))
    hashes = {}
    for source, target in package.files.items():
        hashes[target] = _write(
            target, _with_addresses(contents[source], package.imports) if package.imports else contents[source]
        )
    if package.icons:
        hashes["icons.svg"] = _write("icons.svg", _sprite(contents, package.icons))
    licence = next((name for name in contents if re.fullmatch(r"licen[cs]e(\.\w+)?", name, re.IGNORECASE)), None)
    if licence:
        hashes[name] = _write(name := f"licences/{package.name.replace('/', '-').lstrip('@')}.txt", contents[licence])
    return {"version": package.version, "license": description["license"], "files": hashes}


def _write(target: str, content: bytes) -> str:
    path = VENDOR / target
    path.parent.mkdir(parents=True, exist_ok=True)
    content = re.sub(rb"\n?//# sourceMappingURL=\S+\s*$", b"\n", content)
    path.write_bytes(content)
    return hashlib.sha256(content).hexdigest()


def _with_addresses(source: bytes, addresses: dict[str, str]) -> bytes:
    def address(match: re.Match[str]) -> str:
        return f"{match[1]}{match[2]}{addresses.get(match[3], match[3])}{match[2]}"

    return re.sub(r"""(\bfrom\s*|\bimport\s*)(["'])([^"']+)\2""", address, source.decode()).encode()


def _sprite(contents: dict[str, bytes], names: tuple[str, ...]) -> bytes:
    """One file with a `<symbol>` for each icon; a page shows one by `<use href="icons.svg#name">`."""
    symbols = []
    for name in names:
        [inner] = re.findall(r"<svg[^>]*>(.*)</svg>", contents[f"icons/{name}.svg"].decode(), re.DOTALL)
        symbols.append(f'<symbol id="{name}" viewBox="0 0 24 24">{" ".join(inner.split())}</symbol>')
    return ('<svg xmlns="http://www.w3.org/2000/svg">\n' + "\n".join(symbols) + "\n</svg>\n").encode()


if __name__ == "__main__":
    main()
