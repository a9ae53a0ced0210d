"""A simulation of many servers that share Redis: `scripts/simulate_cluster.py` runs it, `docs/scale.md` uses it."""
