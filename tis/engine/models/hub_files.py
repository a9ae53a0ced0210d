"""Where the files of a model lie: in a folder, or in the cache of downloads from the Hugging Face hub."""

import re
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from tis.engine.errors import LoadFailed
from tis.engine.models.gguf_file import is_gguf
from tis.engine.models.load_progress import Report, progress_bar_reporting_to

# Everything in a repository except weights in formats that can run code.
WANTED_FILES = ["*.json", "*.jinja", "*.txt", "*.model", "*.safetensors", "*.tiktoken", "*.npy"]
_FILE_OF_REPOSITORY = re.compile(r"(\w[\w.-]*/[\w.-]+):([^:\\]+\.gguf)", re.ASCII)
_ETAG_SECONDS = 10


@dataclass(frozen=True, slots=True)
class HubSource:
    """How the hub is asked for a repository."""

    token: str | None = None
    revision: str | None = None  # branch, tag or commit; None: its main branch
    may_download: bool = True  # False: only what is on this machine
    with_code: bool = False  # Python files, too

    @property
    def wanted_files(self) -> list[str]:
        return [*WANTED_FILES, *(["*.py"] if self.with_code else [])]


def refuse_missing_folder(repo: str) -> None:
    if is_gguf(repo) and not file_in_repository(repo):
        if not Path(repo).is_file():
            raise LoadFailed(
                f"There is no file {repo!r}. One of the hub is written owner/repository:{Path(repo).name}."
            )
    elif not Path(repo).is_dir() and (repo.startswith((".", "/", "~")) or repo.count("/") > 1):
        raise LoadFailed(f"There is no folder {repo!r}. MODEL_REPO_ID is a folder or a hub id like Qwen/Qwen3-VL-2B.")


def find_folder(repo: str, source: HubSource, report: Report) -> Path:
    """The folder itself, or where the hub's files lie once they are downloaded. Of a GGUF model, the file."""
    refuse_missing_folder(repo)
    if is_gguf(repo):
        return _gguf_file(repo, source, report)
    if not Path(repo).is_dir():
        return _download(repo, source, report)
    _refuse_special_files(Path(repo))
    return Path(repo)


def _refuse_special_files(folder: Path) -> None:
    """To open a FIFO waits for whoever writes into it, for ever."""
    for path in chain.from_iterable(folder.glob(f"{part}{name}") for part in ("", "*/") for name in WANTED_FILES):
        if not (path.is_file() or path.is_dir()) and path.exists():
            raise LoadFailed(
                f"{path.relative_to(folder)} in {folder.name} is a FIFO, a socket or a device, and no file."
            )


def find_local_folder(repo: str, revision: str | None = None) -> Path | None:
    """Where some files lie on this machine, maybe not all of them. Of a GGUF model, the file."""
    if Path(repo).is_dir() or (is_gguf(repo) and Path(repo).is_file()):
        return Path(repo)
    from huggingface_hub import try_to_load_from_cache

    repository, name = file_in_repository(repo) or (repo, "config.json")
    try:
        found = try_to_load_from_cache(repository, name, revision=revision)
    except (ValueError, OSError):  # no hub id; an unreadable cache
        return None
    if not isinstance(found, str):
        return None
    return Path(found) if is_gguf(repo) else Path(found).parent


def is_complete(repo: str, source: HubSource) -> bool:
    """Whether all wanted files are on this machine. Asks nobody."""
    if is_gguf(repo):
        return find_local_folder(repo, source.revision) is not None
    if Path(repo).is_dir():
        return True
    from huggingface_hub import snapshot_download

    try:
        snapshot_download(repo, revision=source.revision, allow_patterns=source.wanted_files, local_files_only=True)
    except (ValueError, OSError):  # no hub id; some files are missing
        return False
    return True


def local_bytes_of(folder: Path) -> int:
    if folder.is_file():
        return folder.stat().st_size
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def file_in_repository(repo: str) -> tuple[str, str] | None:
    """Of `owner/repository:folder/model.gguf` the repository and the file. None: it is a path of this machine."""
    named = _FILE_OF_REPOSITORY.fullmatch(repo)
    return (named[1], named[2]) if named and not Path(repo).exists() else None


def _gguf_file(repo: str, source: HubSource, report: Report) -> Path:
    named = file_in_repository(repo)
    if named is None:
        return Path(repo)
    repository, name = named
    path = _download(repository, source, report, [name]) / name
    if not path.is_file():
        raise LoadFailed(f"{repository!r} has no file {name!r}.")
    return path


def remove_unfinished_files() -> None:
    """Of the downloads of this process, which ends now: a later download does not go on with them."""
    for link in Path("/proc/self/fd").glob("*"):  # of Linux; elsewhere they stay
        with suppress(OSError):
            path = link.readlink()
            if path.suffix == ".incomplete":
                path.unlink()


def _download(repo: str, source: HubSource, report: Report, names: list[str] | None = None) -> Path:
    """`names`: these files alone."""
    from huggingface_hub import constants, snapshot_download
    from huggingface_hub.errors import (
        GatedRepoError,
        HFValidationError,
        LocalEntryNotFoundError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    wanted: dict[str, Any] = {
        "revision": source.revision,
        "token": source.token,
        "allow_patterns": names or source.wanted_files,
        "tqdm_class": progress_bar_reporting_to(report),
        "etag_timeout": _ETAG_SECONDS,
        "local_files_only": not source.may_download,
    }
    report("asking the hub" if source.may_download else "looking for its files", None)
    try:
        return Path(snapshot_download(repo, **wanted))
    except RevisionNotFoundError as error:
        raise LoadFailed(f"{repo!r} has no revision {source.revision!r}.") from error
    except (GatedRepoError, RepositoryNotFoundError) as error:
        raise LoadFailed(f"The hub has no {repo!r}, or it is gated and HF_TOKEN may not read it.") from error
    except HFValidationError as error:
        raise LoadFailed(f"{repo!r} is neither a folder here nor a valid hub id.") from error
    except (LocalEntryNotFoundError, OSError) as error:
        if not source.may_download or constants.HF_HUB_OFFLINE:
            why = "AUTO_DOWNLOAD_MODELS=0" if not source.may_download else "HF_HUB_OFFLINE is set"
            raise LoadFailed(f"{repo!r} is not on this machine, and {why}: run `tis download {repo}` first.") from error
        raise LoadFailed(
            f"{repo!r} is not on this machine and the Hugging Face hub cannot be reached. Check the network and "
            "HF_ENDPOINT, or set MODEL_REPO_ID to a local folder (models/demo comes with this repository)."
        ) from error
