"""The noise of a token: a function of the key of its position and of its id alone. It may never change, or answers of
earlier versions would go on differently (`docs/decisions/0002-the-noise-belongs-to-the-position.md`)."""

from typing import Any

import torch

# In logits, below the likeliest: tokens that are up to 22,000 times less likely have noise of their own.
NEAR = 10.0
# The constants of splitmix64, as signed numbers.
_GOLDEN, _FIRST, _SECOND = (number - 2**64 for number in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))


def gumbel(key: Any, ids: Any) -> Any:
    """Returns the noise of each token under its key."""
    return gumbel_of(uniform(key, ids))


def gumbel_of(uniform_numbers: Any) -> Any:
    """It grows with the number."""
    return -torch.log(-torch.log(uniform_numbers))


def uniform(key: Any, ids: Any) -> Any:
    """A number for each token, from the mixer of splitmix64; neither 0 nor 1, also when rounded."""
    mixed = key + ids * _GOLDEN
    for shift, factor in ((30, _FIRST), (27, _SECOND)):
        mixed = (mixed ^ _shifted(mixed, shift)) * factor
    mixed = mixed ^ _shifted(mixed, 31)
    return (_shifted(mixed, 12).double() + 0.5) * 2.0**-52


def _shifted(numbers: Any, places: int) -> Any:
    """Shifts right, as if the numbers were unsigned."""
    return (numbers >> places) & (2 ** (64 - places) - 1)
