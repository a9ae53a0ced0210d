"""Native operations for a CPU."""
