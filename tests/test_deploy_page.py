"""docs/deploy.md: its sizes follow from what was measured, and its commands from the files that it names."""

import re

import pytest

from tests.serving import REPOSITORY

PAGE = (REPOSITORY / "docs" / "deploy.md").read_text(encoding="utf-8")
RESULTS = (REPOSITORY / "benchmarks" / "RESULTS.md").read_text(encoding="utf-8")
MEASURED_PARAMETERS = 0.45  # 10^9, of the model in RESULTS.md
CACHED_TOKENS = 16_384
INT4_BYTES = 0.62  # of a parameter: 4.5 bits, 8 in the embedding and the head
LAYERS = {"Qwen3-0.6B": 28, "Qwen3-VL-2B-Thinking": 28, "Qwen3-4B-Instruct-2507": 36, "Qwen3-8B": 36}
KEY_VALUE_WIDTH = 8 * 128  # heads and their size, of each of these models
ROWS = re.findall(r"^\| `Qwen/([\w.-]+)` \| (.+) \|$", PAGE, re.MULTILINE)


def milliseconds(num_rows: str) -> list[float]:
    """Of a decode step with kernels: AMX, AVX-512, AVX2."""
    found = re.search(rf"^\| decode, {num_rows} of 240 keys \|(.+)\|$", RESULTS, re.MULTILINE)
    assert found
    return [float(cell.partition("/")[2]) for cell in found[1].split("|")]


def test_the_table_has_the_models_whose_shapes_are_known() -> None:
    assert [name for name, _ in ROWS] == list(LAYERS)


@pytest.mark.parametrize(("name", "cells"), ROWS)
def test_sizes_and_speeds_follow_from_what_was_measured(name: str, cells: str) -> None:
    parameters, weights, cache, plan, *speeds = (cell.strip() for cell in cells.split(" | "))
    size = float(parameters)
    cache_size = 2 * 2 * LAYERS[name] * KEY_VALUE_WIDTH * CACHED_TOKENS / 1e9
    assert weights == f"{2 * size:.1f} / {4 * size:.1f} / {size:.1f} / {INT4_BYTES * size:.1f}"
    assert cache == f"{cache_size:.1f}" and plan == f"{2 * size + cache_size + 1.5:.0f}"
    steps = zip(speeds, milliseconds("1 row"), milliseconds("16 rows"), strict=True)
    for speed, one, sixteen in steps:
        longer = size / MEASURED_PARAMETERS
        assert speed == f"{1000 / (one * longer):.1f} / {16_000 / (sixteen * longer):.0f}"


def test_int8_is_as_fast_as_it_was_measured() -> None:
    measured = re.findall(
        r"^\| (?:AMX|AVX-512|AVX2) \|[^|]*?(\d\.\d\d) x", RESULTS.partition("## 8-bit weights")[2], re.MULTILINE
    )
    assert measured[:3] == re.findall(r"(\d\.\d\d) \((?:AMX|AVX-512|AVX2)\)", PAGE)


def test_folders_and_files_of_deployments_are_there() -> None:
    named = set(re.findall(r"\bdeploy/[\w./-]+", PAGE))
    assert named and not [name for name in named if not (REPOSITORY / name.rstrip(".")).exists()]
