"""Draws the states of an order in docs/orders.md from the table of moves; a test compares."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tis.marketplace.orders.states import ENDS, MOVES, Move  # noqa: E402

PAGE = ROOT / "docs" / "orders.md"
_DRAWING = re.compile(r"(?<=<!-- states -->\n).*(?=<!-- end of states -->)", re.DOTALL)


def drawing() -> str:
    arrows = [f"  {move.source} --> {move.target}: {_label(move)}" for move in MOVES]
    ends = [f"  {state} --> [*]" for state in sorted(ENDS)]
    return "\n".join(["```mermaid", "stateDiagram-v2", "  [*] --> draft: buyer", *arrows, *ends, "```", ""])


def written_drawing() -> str:
    found = _DRAWING.search(PAGE.read_text(encoding="utf-8"))
    return found[0] if found else ""


def _label(move: Move) -> str:
    label = " or ".join(sorted(move.movers))
    return f"{label} ({move.only})" if move.only else label


if __name__ == "__main__":
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(_DRAWING.sub(lambda _: drawing(), page), encoding="utf-8")
