"""Randomness that depends on nothing but (seed, choice, position).

A continued answer draws the same numbers as an uninterrupted one, and a request the same in any company.
"""

import hashlib
import secrets
import struct

_SEED_MASK = 2**64 - 1


def uniform(seed: int, choice: int, position: int) -> float:
    """A number in [0, 1)."""
    key = struct.pack("<QII", seed & _SEED_MASK, choice, position)
    digest = hashlib.blake2b(key, digest_size=8).digest()
    return (int.from_bytes(digest, "little") >> 11) * 2.0**-53


def new_seed() -> int:
    return secrets.randbits(63)
