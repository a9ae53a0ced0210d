"""Measures models/demo on questions that no course has asked, for its card.

.venv/bin/python scripts/measure_demo_model.py [--model models/demo] [--questions 300] [--wrong] [--only-picks]
"""

import argparse
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPOSITORY))

from scripts.demo_model.folder import load  # noqa: E402
from scripts.demo_model.measures import MEASURES, score  # noqa: E402
from scripts.demo_model.pick_measures import PICK_MEASURES, score_picks  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the demo model.")
    parser.add_argument("--model", type=Path, default=REPOSITORY / "models" / "demo")
    parser.add_argument("--questions", type=int, default=300, help="of each kind")
    parser.add_argument("--wrong", action="store_true", help="print the wrong answers too")
    parser.add_argument("--only-picks", action="store_true", help="how it picks goods, and nothing else")
    options = parser.parse_args()
    demo = load(options.model)
    for name in () if options.only_picks else MEASURES:
        reached = score(demo, name, options.questions)
        print(f"{name}: {reached.right} of {reached.asked}", flush=True)
        if options.wrong:
            print(*(f"  wanted {wrong}" for wrong in reached.wrong), sep="\n")
    for goods, questions in PICK_MEASURES.items():
        for line in score_picks(demo, questions(options.questions)).lines():
            print(f"picking {goods}: {line}", flush=True)


if __name__ == "__main__":
    main()
