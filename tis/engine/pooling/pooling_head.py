"""Makes one vector, or one score, of the hidden states of a row."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import torch
from transformers.modeling_outputs import BaseModelOutputWithPooling

from tis.engine.errors import LoadFailed
from tis.engine.models.description import read_object
from tis.engine.models.entry_fields import PoolingMode
from tis.engine.pooling.sentence_files import SentenceFiles
from tis.engine.pooling.token_row import TokenRow


class PoolingHead(Protocol):
    def __call__(self, states: Sequence[Any], rows: Sequence[TokenRow]) -> Any:
        """A tensor [rows, size]; of scores, the size is 1."""
        ...


class VectorHead:
    """Pools the tokens of a row, and applies dense layers and normalisation in the order of the repository."""

    def __init__(self, files: SentenceFiles, device: Any, dtype: Any) -> None:
        self._files = files
        self._layers = [_read_dense(path, device, dtype) if path else _normalise for path in files.layers]

    def __call__(self, states: Sequence[Any], rows: Sequence[TokenRow]) -> Any:
        pooled = torch.stack([self._pool(state, row) for state, row in zip(states, rows, strict=True)])
        for layer in self._layers:
            pooled = layer(pooled)
        return pooled

    def _pool(self, state: Any, row: TokenRow) -> Any:
        """As sentence-transformers: a prompt that is not pooled still counts in the weights of places."""
        skipped = 0 if self._files.pools_prompt else min(row.num_prompt_tokens, len(state) - 1)
        return torch.cat([_POOL[mode](state, skipped) for mode in self._files.pooling], -1)


class ClassifierHead:
    """The head of a model that classifies pairs: it gets our hidden states in place of those of its own body."""

    def __init__(self, model: Any, pad_id: int) -> None:
        self._model = model
        self._pad_id = pad_id
        self._body = _GivenStates(getattr(getattr(model, model.base_model_prefix), "pooler", None))
        setattr(model, model.base_model_prefix, self._body)
        self._score = _activation(model.config)

    def __call__(self, states: Sequence[Any], rows: Sequence[TokenRow]) -> Any:
        """Rows of like length share a call: they are padded to the longest of them."""
        order = sorted(range(len(rows)), key=lambda place: len(rows[place]))
        scores: list[Any] = [None] * len(rows)
        while order:
            alike = [place for place in order if len(rows[place]) <= max(16, 2 * len(rows[order[0]]))]
            order = order[len(alike) :]
            of_group = self._scores([states[place] for place in alike], [rows[place] for place in alike])
            for place, score in zip(alike, of_group, strict=True):
                scores[place] = score
        return torch.stack(scores)

    def _scores(self, states: Sequence[Any], rows: Sequence[TokenRow]) -> Any:
        longest = max(map(len, states))
        device = states[0].device
        self._body.states = torch.stack(
            [torch.nn.functional.pad(state, (0, 0, 0, longest - len(state))) for state in states]
        )
        try:
            logits = self._model(
                input_ids=torch.tensor(
                    [[*row.ids, *[self._pad_id] * (longest - len(row))] for row in rows], device=device
                ),
                attention_mask=torch.tensor(
                    [[1] * len(row) + [0] * (longest - len(row)) for row in rows], device=device
                ),
            ).logits
        finally:
            self._body.states = None
        return self._score(logits)[:, -1:]


class YesNoHead:
    """How much likelier a causal model finds "yes" than "no" behind a row."""

    def __init__(self, head: Any, yes: int, no: int | None) -> None:
        wanted = [yes] if no is None else [yes, no]
        self._weight = head.weight[wanted].detach().clone()
        self._bias = None if head.bias is None else head.bias[wanted].detach().clone()

    def __call__(self, states: Sequence[Any], rows: Sequence[TokenRow]) -> Any:
        last = torch.stack([state[-1] for state in states])
        logits = torch.nn.functional.linear(last, self._weight, self._bias).float()
        margin = logits[:, :1] - logits[:, 1:2] if len(self._weight) > 1 else logits
        return torch.sigmoid(margin)


class _GivenStates(torch.nn.Module):  # type: ignore[misc]
    """Stands where the body of a model was."""

    def __init__(self, pooler: Any | None) -> None:
        super().__init__()
        self.pooler = pooler
        self.states: Any | None = None

    def forward(self, *args: Any, **options: Any) -> BaseModelOutputWithPooling:
        pooled = self.pooler(self.states) if self.pooler is not None else None
        return BaseModelOutputWithPooling(last_hidden_state=self.states, pooler_output=pooled)


def _mean(state: Any, skipped: int) -> Any:
    return state[skipped:].mean(0, dtype=torch.float32).to(state.dtype)


def _weighted_mean(state: Any, skipped: int) -> Any:
    weights = torch.arange(1 + skipped, 1 + len(state), device=state.device, dtype=torch.float32)[:, None]
    return ((state[skipped:] * weights).sum(0) / weights.sum()).to(state.dtype)


_POOL: Mapping[PoolingMode, Callable[[Any, int], Any]] = {
    "cls": lambda state, skipped: state[skipped],
    "max": lambda state, skipped: state[skipped:].max(0).values,
    "mean": _mean,
    "mean_sqrt_len_tokens": lambda state, skipped: _mean(state, skipped) * (len(state) - skipped) ** 0.5,
    "weightedmean": _weighted_mean,
    "lasttoken": lambda state, skipped: state[-1],
}


def _normalise(vectors: Any) -> Any:
    return torch.nn.functional.normalize(vectors, dim=-1)


def _read_dense(folder: Path, device: Any, dtype: Any) -> Callable[[Any], Any]:
    from safetensors.torch import load_file

    config = read_object(folder / "config.json")
    if config.get("use_residual") or config.get("module_input_name", "sentence_embedding") != "sentence_embedding":
        raise LoadFailed(f"The dense layer {folder.name} has a residual, or reads no sentence, which is not known.")
    try:
        tensors = load_file(str(folder / "model.safetensors"))
        weight = tensors["linear.weight"].to(device, dtype)
        bias = tensors["linear.bias"].to(device, dtype) if "linear.bias" in tensors else None
    except (OSError, KeyError) as error:
        raise LoadFailed(f"The dense layer {folder.name} has no weights as safetensors.") from error
    activate = _torch_module(str(config.get("activation_function") or "torch.nn.modules.activation.Tanh"))
    return lambda vectors: activate(torch.nn.functional.linear(vectors, weight, bias))


def _activation(config: Any) -> Callable[[Any], Any]:
    """Of a cross-encoder, as sentence-transformers chooses it."""
    ours = getattr(config, "sentence_transformers", None)
    named = ours.get("activation_fn") if isinstance(ours, dict) else None
    named = named or getattr(config, "sbert_ce_default_activation_function", None)
    if named:
        return _torch_module(str(named))
    chosen: Callable[[Any], Any] = torch.nn.Sigmoid() if config.num_labels == 1 else torch.nn.Identity()
    return chosen


def _torch_module(name: str) -> Callable[[Any], Any]:
    """`torch.nn.modules.activation.Tanh` and its like: classes of torch.nn run no code of the repository."""
    found = getattr(torch.nn, name.rpartition(".")[2], None)
    if not name.startswith("torch.nn.") or not (isinstance(found, type) and issubclass(found, torch.nn.Module)):
        raise LoadFailed(f"The activation {name!r} is not one of torch.nn.")
    module: Callable[[Any], Any] = found()
    return module
