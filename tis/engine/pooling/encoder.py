"""The hidden states of rows of tokens, each as if the model had computed it alone."""

import logging
from collections.abc import Sequence
from typing import Any

import torch

from tis.engine.faults import is_out_of_memory
from tis.engine.kernels.native import NativeKernels
from tis.engine.pooling.packed_attention import NAME, PackedRows
from tis.engine.pooling.placed_pictures import with_pictures
from tis.engine.pooling.token_row import TokenRow
from tis.observability.logs import describe_with_messages

log = logging.getLogger("tis.engine")

_TOLERANCE = 2e-4  # of float32 numbers whose largest is about 1, through all layers
_TRIAL_LENGTHS = (7, 3, 3)
_MAX_TRIAL_LENGTH = 700  # longer windows are not tried


class Encoder:
    """Packs rows end to end if that has given the same numbers in a trial; else pads them."""

    def __init__(self, model: Any, pad_id: int, kernels: NativeKernels | None = None) -> None:
        """`model`: without a head, on the CPU if there are `kernels`."""
        self.model = model
        self._kernels = kernels
        self.device = model.device
        self._pad_id = pad_id
        self._first_position = 0
        self._config = model.config.get_text_config()
        self._attention = getattr(self._config, "_attn_implementation", "sdpa")
        self.is_packed = self._try_packed()

    def hidden_states(self, rows: Sequence[TokenRow]) -> list[Any]:
        """One tensor [tokens, size] for each row."""
        order = sorted(range(len(rows)), key=lambda place: len(rows[place]))
        ordered = [rows[place] for place in order]
        states: list[Any] = [None] * len(rows)
        for place, state in zip(order, (self._packed if self.is_packed else self._padded)(ordered), strict=True):
            states[place] = state
        return states

    def _packed(self, rows: Sequence[TokenRow]) -> list[Any]:
        lengths = [len(row) for row in rows]
        packed_rows = PackedRows.of(lengths, self._kernels)
        if any(row.media for row in rows):
            output = self.model.get_decoder()(packed_rows=packed_rows, **with_pictures(self.model, rows))
            return list(output.last_hidden_state[0].split(lengths))
        positions = torch.cat([torch.arange(length) + self._first_position for length in lengths])
        output = self.model(
            input_ids=self._tensor([[token for row in rows for token in row.ids]]),
            position_ids=positions[None].to(self.device),
            packed_rows=packed_rows,
            **self._type_ids([[token for row in rows for token in row.type_ids or ()]]),
        )
        return list(output.last_hidden_state[0].split(lengths))

    def _padded(self, rows: Sequence[TokenRow]) -> list[Any]:
        """Rows of like length share a pass, so that no more than half of it is padding."""
        states: list[Any] = []
        while len(states) < len(rows):
            first = len(rows[len(states)])
            batch = [row for row in rows[len(states) :] if len(row) <= max(2 * first, 16)]
            longest = len(batch[-1])
            output = self.model(
                input_ids=self._tensor([[*row.ids, *[self._pad_id] * (longest - len(row))] for row in batch]),
                attention_mask=self._tensor([[1] * len(row) + [0] * (longest - len(row)) for row in batch]),
                **self._type_ids(
                    [[*row.type_ids, *[0] * (longest - len(row))] for row in batch if row.type_ids is not None]
                ),
            )
            states += [state[: len(row)] for state, row in zip(output.last_hidden_state, batch, strict=True)]
        return states

    def _tensor(self, rows: list[list[int]]) -> Any:
        return torch.tensor(rows, dtype=torch.long, device=self.device)

    def _type_ids(self, rows: list[list[int]]) -> dict[str, Any]:
        return {"token_type_ids": self._tensor(rows)} if rows and rows[0] else {}

    def _try_packed(self) -> bool:
        """Compares packed rows with lone ones, also of a length that windows cut, for each way to count positions."""
        if not getattr(self.model, "_supports_attention_backend", False):
            return self._pads("its attention cannot be replaced")
        rows = self._trial_rows()
        with torch.inference_mode():
            lone = [self.model(input_ids=self._tensor([list(row.ids)])).last_hidden_state[0] for row in rows]
        reason = "the numbers are others"
        for first in sorted({0, int(getattr(self._config, "pad_token_id", None) or 0) + 1}):
            self._first_position = first
            try:
                self._attend_by(NAME)
                with torch.inference_mode():
                    packed = self._packed(rows)
            except Exception as fault:  # reported below; the model is computed padded then
                if is_out_of_memory(fault):
                    raise
                reason = describe_with_messages(fault)
                continue
            if all(_are_close(one, other) for one, other in zip(packed, lone, strict=True)):
                return True
        return self._pads(reason)

    def _pads(self, reason: str) -> bool:
        log.info("texts are padded to the longest of their batch, as they cannot be packed: %s", reason)
        self._attend_by(self._attention)
        return False

    def _attend_by(self, name: str) -> None:
        """A vision tower keeps its own."""
        has_parts = "text_config" in self.model.config.sub_configs
        self.model.set_attn_implementation({"text_config": name} if has_parts else name)

    def _trial_rows(self) -> list[TokenRow]:
        config = self._config
        windows = [value for name in ("sliding_window", "local_attention") if (value := getattr(config, name, None))]
        lengths = [*_TRIAL_LENGTHS]
        lengths += [length for window in windows if (length := int(window) + 5) <= _MAX_TRIAL_LENGTH]
        limit = int(getattr(config, "max_position_embeddings", None) or _MAX_TRIAL_LENGTH) - 8
        numbers = torch.Generator().manual_seed(0)
        taken = {self._pad_id}
        return [
            TokenRow([one for one in _random_ids(config.vocab_size, length + 1, numbers) if one not in taken][:length])
            for length in lengths
            if length <= limit
        ]


def _random_ids(vocabulary_size: int, number: int, numbers: Any) -> list[int]:
    return [int(one) for one in torch.randint(vocabulary_size, (number,), generator=numbers)]


def _are_close(one: Any, other: Any) -> bool:
    scale = max(1.0, float(other.abs().max()))
    rounding = 1 if one.dtype is torch.float32 else 256
    return bool((one.float() - other.float()).abs().max() <= _TOLERANCE * rounding * scale)
