"""Which models the settings serve."""

from pathlib import Path

from tis.engine.errors import LoadFailed
from tis.engine.models.catalogue import (
    CatalogueEntry,
    CatalogueError,
    bundled_catalogue,
    find_entry,
    read_catalogue,
    select_served,
    with_adapters,
    with_draft_model,
)
from tis.engine.models.handler import why_not_importable
from tis.engine.models.hub_files import HubSource, is_complete, refuse_missing_folder
from tis.settings import Settings


def catalogue_of(settings: Settings) -> list[CatalogueEntry]:
    path = Path(settings.model_config_path)
    if not settings.set_explicitly("model_config_path") and not path.exists():
        path = bundled_catalogue()
    return read_catalogue(path)


def served_models_of(settings: Settings) -> list[CatalogueEntry]:
    """MODELS alone, or MODEL_REPO_ID and then MODELS where both are set. Raises CatalogueError."""
    catalogue = catalogue_of(settings)
    main, others = settings.model_repo_id, list(settings.models)
    if others and not settings.set_explicitly("model_repo_id"):
        main = others.pop(0)
        if find_entry(catalogue, main) is None:
            raise CatalogueError(f"MODELS names {main!r}, which is not in the catalogue.")
    served = select_served(catalogue, main, others, settings.served_model_name)
    served = with_adapters(with_draft_model(served, settings.draft_model), _adapters_of(settings))
    for entry in served:
        if entry.handler and (why_not := why_not_importable(entry.handler)):
            raise CatalogueError(f"The handler of {entry.id}: {why_not}.")
        if entry.draft_model:
            try:
                refuse_missing_folder(entry.draft_model)
            except LoadFailed:
                raise CatalogueError(f"The draft model of {entry.id}: no folder {entry.draft_model!r}.") from None
        if entry.memory_mb > settings.model_memory_mb > 0:
            raise CatalogueError(
                f"{entry.id} may take {entry.memory_mb} MiB (memory_mb), and MODEL_MEMORY_MB is "
                f"{settings.model_memory_mb}."
            )
    if not settings.auto_download_models:
        _require_files(served)
    return served


def _adapters_of(settings: Settings) -> dict[str, str]:
    named = dict(one.partition("=")[::2] for one in settings.adapters)
    if not all(name and place for name, place in named.items()):
        raise CatalogueError("ADAPTERS are written NAME=FOLDER, separated by commas.")
    return named


def _require_files(served: list[CatalogueEntry]) -> None:
    for entry in served:
        if not entry.has_files:
            continue
        try:
            refuse_missing_folder(entry.repo)
        except LoadFailed as error:
            raise CatalogueError(f"{entry.id}: {error.message}") from None
        if not is_complete(entry.repo, HubSource(revision=entry.revision)):
            raise CatalogueError(
                f"{entry.id} is not on this machine, and AUTO_DOWNLOAD_MODELS=0: run `tis download {entry.id}` first."
            )
        if entry.draft_model and not is_complete(entry.draft_model, HubSource()):
            raise CatalogueError(
                f"The draft model {entry.draft_model} is not on this machine, and AUTO_DOWNLOAD_MODELS=0: run "
                f"`tis download {entry.id}` first."
            )
