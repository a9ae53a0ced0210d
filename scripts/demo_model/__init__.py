"""The parts of the demo model's build; `scripts/build_demo_model.py` tells the story in order."""
