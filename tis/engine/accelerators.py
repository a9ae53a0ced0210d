"""The GPUs that torch can compute on."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Accelerator:
    name: str
    free_bytes: int
    total_bytes: int


def accelerators() -> list[Accelerator]:
    import torch

    if not torch.cuda.is_available():
        return []
    found = []
    for number in range(torch.cuda.device_count()):
        free, total = torch.cuda.mem_get_info(number)
        found.append(Accelerator(f"cuda:{number} {torch.cuda.get_device_name(number)}", free, total))
    return found
