"""Cards of the second style, and how well the real engine reads a few of both styles."""

from tests.ktp.second_style.second_people import make_second_card

CARDS = [make_second_card(seed) for seed in range(200)]
