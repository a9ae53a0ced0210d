"""How OpenMP's threads wait is set before torch is imported, and the operator has the last word."""

import os

import pytest

from tis.cli import serve


@pytest.mark.parametrize(
    ("given", "policy", "spins"),
    [
        ({}, "PASSIVE", "2000"),
        ({"GOMP_SPINCOUNT": "7"}, "PASSIVE", "7"),
        ({"OMP_WAIT_POLICY": "ACTIVE"}, "ACTIVE", None),
    ],
)
def test_threads_spin_for_a_moment_and_then_sleep(
    monkeypatch: pytest.MonkeyPatch, given: dict[str, str], policy: str, spins: str | None
) -> None:
    monkeypatch.setattr(os, "environ", given)
    monkeypatch.setattr(serve, "use_own_process", lambda: None)
    serve.prepare_process()
    assert (os.environ["OMP_WAIT_POLICY"], os.environ.get("GOMP_SPINCOUNT")) == (policy, spins)
