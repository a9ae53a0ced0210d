"""Turns what people write into a `StructuredQuery` and the words that are left, by rules alone."""
