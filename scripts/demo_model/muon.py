"""Muon: momentum whose step is made orthogonal, so that every direction of a weight matrix learns equally fast.

After Keller Jordan, "Muon: an optimizer for hidden layers". Written out here because `torch.optim.Muon` iterates in
bfloat16, which on a CPU takes several times as long as the model's own forward and backward pass.
"""

from collections import defaultdict
from collections.abc import Iterable

import torch
from torch import Tensor

# The quintic whose iteration pushes all singular values towards one; five rounds are enough.
_A, _B, _C = 3.4445, -4.7750, 2.0315
_ROUNDS = 5


def orthogonalised(matrices: Tensor) -> Tensor:
    """For a stack of equally shaped matrices."""
    tall = matrices.shape[-2] > matrices.shape[-1]
    x = matrices.mT if tall else matrices
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(_ROUNDS):
        gram = x @ x.mT
        x = _A * x + (_B * gram + _C * gram @ gram) @ x
    return x.mT if tall else x


class Muon:
    def __init__(self, matrices: Iterable[Tensor], momentum: float = 0.95, decay: float = 0.01) -> None:
        self.momentum, self.decay = momentum, decay
        self._by_shape: dict[torch.Size, list[Tensor]] = defaultdict(list)
        for matrix in matrices:
            self._by_shape[matrix.shape].append(matrix)
        self._averages = {shape: same[0].new_zeros(len(same), *shape) for shape, same in self._by_shape.items()}

    def step(self, rate: float) -> None:
        with torch.no_grad():
            self._step(rate)

    def _step(self, rate: float) -> None:
        for shape, matrices in self._by_shape.items():
            gradients = torch.stack([matrix.grad for matrix in matrices if matrix.grad is not None])
            average = self._averages[shape].lerp_(gradients, 1 - self.momentum)
            updates = orthogonalised(gradients.lerp(average, self.momentum))
            scale = max(1.0, shape[0] / shape[1]) ** 0.5
            for matrix, update in zip(matrices, updates, strict=True):
                matrix.mul_(1 - rate * self.decay).sub_(update, alpha=rate * scale)
