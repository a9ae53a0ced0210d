"""Adds `logits_to_keep` to models whose `forward` always computes all logits (Qwen2-Audio)."""

import inspect
from typing import Any


def add_logits_to_keep(model: Any) -> None:
    """Leaves a model alone that has it."""
    forward = model.forward
    if "logits_to_keep" in inspect.signature(forward).parameters:
        return

    def keeping(*given: Any, logits_to_keep: Any = 0, **named: Any) -> Any:
        if isinstance(logits_to_keep, int) and not logits_to_keep:
            return forward(*given, **named)
        rows = slice(-logits_to_keep, None) if isinstance(logits_to_keep, int) else logits_to_keep
        handle = model.get_output_embeddings().register_forward_pre_hook(
            lambda head, hidden: (hidden[0][:, rows], *hidden[1:])
        )
        try:
            return forward(*given, **named)
        finally:
            handle.remove()

    model.forward = keeping
