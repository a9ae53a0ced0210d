"""Puts the rounds of a comparison into a Markdown table: medians, and ratios round by round."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Speed:
    tokens_per_second: float
    first_token_seconds: float | None


# By the server's name and its number of clients; one speed a round, the rounds of all servers in the same order.
Speeds = Mapping[str, Mapping[int, Sequence[Speed]]]


def speed_table(speeds: Speeds, clients: Sequence[int], ours: str) -> str:
    """A row of medians for each server, then a row of ratios, ours / theirs, for each of the others."""
    lines = ["| tok/s (first token, s) | " + " | ".join(_heading(number) for number in clients) + " |"]
    lines.append("|---|" + "---|" * len(clients))
    lines += [_row(name, [_medians(by_clients[number]) for number in clients]) for name, by_clients in speeds.items()]
    for name in speeds:
        if ours in speeds and name != ours:
            ratios = [_ratio(speeds[ours][number], speeds[name][number]) for number in clients]
            lines.append(_row(f"{ours} / {name}", ratios))
    return "\n".join(lines)


def _heading(clients: int) -> str:
    return f"{clients} client{'' if clients == 1 else 's'}"


def _row(name: str, cells: Sequence[str]) -> str:
    return f"| {name} | " + " | ".join(cells) + " |"


def _medians(rounds: Sequence[Speed]) -> str:
    first_tokens = [one.first_token_seconds for one in rounds if one.first_token_seconds is not None]
    first_token = f"{statistics.median(first_tokens):.2f}" if first_tokens else "-"
    return f"{statistics.median(one.tokens_per_second for one in rounds):.1f} ({first_token})"


def _ratio(ours: Sequence[Speed], theirs: Sequence[Speed]) -> str:
    """Of the same round each, as a machine is not as fast in one round as in the next."""
    pairs = zip(ours, theirs, strict=True)
    ratios = [a.tokens_per_second / b.tokens_per_second for a, b in pairs if b.tokens_per_second]
    if not ratios:
        return "-"
    middle = f"{statistics.median(ratios):.2f}"
    return middle if len(ratios) == 1 else f"{middle} ({min(ratios):.2f} to {max(ratios):.2f})"
