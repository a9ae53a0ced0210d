"""GET /v1/machine: what `tis doctor` finds, of a server that runs."""

import asyncio
import sys
from dataclasses import asdict
from typing import Any

from fastapi import APIRouter

from tis import __version__
from tis.engine.cores import available_cores
from tis.engine.machine import findings_of_accelerators, findings_of_machine, memory_bytes
from tis.http.dependencies import DOCUMENTED_KEY

router = APIRouter(dependencies=[DOCUMENTED_KEY])

_SLOW = {
    "about": "processor",
    "verdict": "slow",
    "text": "no AVX-512: large prompts take about twice as long as with it",
    "code": "no_avx512",
    "values": {},
}
_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "OK",
        "content": {
            "application/json": {
                "example": {"object": "machine", "version": __version__, "cores": 2.0, "threads": 2}
                | {"memory_available_bytes": 8_589_934_592, "memory_bytes": 17_179_869_184, "findings": [_SLOW]}
            }
        },
    }
}


@router.get("/machine", responses=_RESPONSES)
async def machine() -> dict[str, Any]:
    """Say what this machine has, what the server uses of it, and what is slow and why, as `tis doctor` does.

    Without paths. `threads` are those of torch, null before the first model that needs it; kernels and GPUs are looked
    at then, too.
    """
    return await asyncio.to_thread(_described)


def _described() -> dict[str, Any]:
    torch = sys.modules.get("torch")
    threads = torch.get_num_threads() if torch else None
    found = [*findings_of_machine(threads=threads, with_torch=torch is not None)]
    if torch:
        found += findings_of_accelerators()
    available, limit = memory_bytes()
    return {
        "object": "machine",
        "version": __version__,
        "cores": available_cores(),
        "threads": threads,
        "memory_available_bytes": available,
        "memory_bytes": limit,
        "findings": [asdict(one) for one in found],
    }
