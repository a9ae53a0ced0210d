"""Writes the folder of a Hugging Face Space: `python scripts/write_space.py FOLDER`.

The files of the last commit that the image is built from, and the README of the Space with its front matter.
"""

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FILES = [
    *("Dockerfile", ".dockerignore", "LICENSE", "pyproject.toml", "setup.py"),
    *("requirements.txt", "requirements-traces.txt", "requirements-redis.txt"),
    *("configs", "models/demo", "scripts/install_torch.py", "tis", "web"),
]


def write_space(folder: Path) -> None:
    if folder.exists() and any(folder.iterdir()):
        raise SystemExit(f"{folder} is not empty.")
    folder.mkdir(parents=True, exist_ok=True)
    archive = subprocess.run(["git", "archive", "HEAD", "--", *FILES], cwd=ROOT, stdout=subprocess.PIPE, check=True)
    subprocess.run(["tar", "-x", "-C", str(folder)], input=archive.stdout, check=True)
    shutil.copy(ROOT / "deploy" / "space" / "README.md", folder / "README.md")
    with (folder / "Dockerfile").open("a", encoding="utf-8") as dockerfile:
        dockerfile.write("# Spaces are shown in a frame.\nENV FRAME_ANCESTORS=https://huggingface.co\n")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    write_space(Path(sys.argv[1]))
