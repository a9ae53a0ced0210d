"""docs/models.md says what the server's own code says of a tiny model of each family (`scripts/write_models.py`)."""

import os
import re
import runpy
from typing import Any

import pytest

from tests.engine.batching.families import FAMILIES
from tests.engine.batching.test_families import IN_TURNS, TRIED
from tests.engine.batching.tiny_vision import VISION_MODELS
from tests.engine.batching.vision_families import VISION_FAMILIES
from tests.serving import REPOSITORY
from tis.engine.kernels.native import native_kernels

pytestmark = pytest.mark.slow

PAGE = (REPOSITORY / "docs" / "models.md").read_text(encoding="utf-8")
SCRIPT: dict[str, Any] = runpy.run_path(str(REPOSITORY / "scripts" / "write_models.py"))
VISION_TRIED = (*VISION_MODELS, *VISION_FAMILIES) if os.environ.get("SOAK") else ("qwen3_vl", "llava_next", "ovis2")


def _rows(part: str) -> list[tuple[str, ...]]:
    found = re.search(rf"<!-- {part}: start -->\n(.*?)<!-- {part}: end -->", PAGE, re.DOTALL)
    assert found
    return [tuple(cell.strip() for cell in line[2:-2].split(" | ")) for line in found[1].splitlines()[2:]]


@pytest.mark.parametrize("name", TRIED)
def test_a_family_has_the_row_that_the_code_gives_it(name: str) -> None:
    tried = SCRIPT["try_family"](name)
    row, rows = (tried.model_type, *tried.cells), _rows("batches" if tried.in_batch else "turns")
    if tried.in_batch and native_kernels() is None:
        row, rows = row[:2], [one[:2] for one in rows]
    assert row in rows


@pytest.mark.parametrize("name", VISION_TRIED)
def test_images_of_a_family_have_the_row_that_the_code_gives_them(name: str) -> None:
    tried = SCRIPT["try_vision_family"](name)
    assert (tried.model_type, *tried.cells) in _rows("images")


def test_the_page_counts_the_families() -> None:
    assert f"tries {len(FAMILIES)} tiny" in PAGE
    assert f"{len(FAMILIES) - len(IN_TURNS)} in batches, {len(IN_TURNS)} in turns" in PAGE


def test_the_page_has_no_row_of_another_family() -> None:
    """The marks of Transformers' configs, without building a model."""
    known = {SCRIPT["type_of_family"](name) for name in FAMILIES}
    assert {row[0] for part in ("batches", "turns") for row in _rows(part)} == known
