"""Keys and secrets that the settings name, in files and variables."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tis.engine.models.catalogue import CatalogueEntry, CatalogueError
from tis.http.key_file import KeyFile, KeyFileError
from tis.http.read_tokens import GivenSecrets, OwnSecret, TokenSecrets
from tis.setting_types import SettingsError
from tis.settings import Settings

if TYPE_CHECKING:
    from tis.http.shared_parts import SharedParts


def key_file_of(settings: Settings) -> KeyFile | None:
    """Raises SettingsError: a server whose keys cannot be read does not start."""
    if settings.api_keys_file is None:
        return None
    try:
        return KeyFile(Path(settings.api_keys_file))
    except KeyFileError as error:
        raise SettingsError(f"API_KEYS_FILE: {error} `tis keys add NAME` makes one.") from None


def upstream_keys_of(models: Sequence[CatalogueEntry]) -> dict[str, str]:
    """By the id of the model. Raises CatalogueError, which never has a key in it."""
    return {entry.id: key for entry in models if (key := _upstream_key(entry))}


def _upstream_key(entry: CatalogueEntry) -> str:
    if entry.upstream_key_env:
        key, where = os.environ.get(entry.upstream_key_env, ""), f"the variable {entry.upstream_key_env}"
    elif entry.upstream_key_file:
        where = f"the file {entry.upstream_key_file}"
        try:
            key = Path(entry.upstream_key_file).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            raise CatalogueError(f"{where} with the key for the upstream of {entry.id} cannot be read.") from None
    else:
        return ""
    key = key.strip()
    if not (key and key.isascii() and key.isprintable() and " " not in key):
        raise CatalogueError(f"{where} has no key for the upstream of {entry.id}.")
    return key


def token_secrets_of(settings: Settings, shared: "SharedParts | None") -> TokenSecrets:
    if settings.read_token_secret:
        return GivenSecrets([one.get_secret_value() for one in settings.read_token_secret])
    if shared and settings.store_kind == "redis":
        return shared.token_secret
    return OwnSecret(Path(settings.sessions_db_path) if settings.store_kind == "sqlite" else None)
