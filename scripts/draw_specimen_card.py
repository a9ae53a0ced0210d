"""Draws docs/samples/ktp-specimen.jpg: an invented identity card for the examples in docs.

.venv/bin/python scripts/draw_specimen_card.py [--out docs/samples/ktp-specimen.jpg] [--seed 3]
.venv/bin/python scripts/draw_specimen_card.py --photo --seed 3 --out web/card/samples/specimen.webp
"""

import argparse
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPOSITORY))

from PIL import Image  # noqa: E402

from tests.ktp.card_drawing import draw_card  # noqa: E402
from tests.ktp.card_photos import photograph  # noqa: E402
from tests.ktp.cards import make_card  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser(description="Draw a specimen of an identity card.")
    parser.add_argument("--out", type=Path, default=REPOSITORY / "docs" / "samples" / "ktp-specimen.jpg")
    parser.add_argument("--seed", type=int, default=3, help="of the invented holder")
    parser.add_argument("--photo", action="store_true", help="photographed on a table")
    options = parser.parse_args()
    if options.photo:
        picture = Image.fromarray(photograph(options.seed, "photo"))
    else:
        picture = draw_card(make_card(options.seed), 1000)
    picture.save(options.out, quality=75 if options.photo else 85)
    print(f"{options.out.name}: {options.out.stat().st_size} bytes")


if __name__ == "__main__":
    main()
