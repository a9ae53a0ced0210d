"""Turns a sentence of a buyer into a `StructuredQuery` by rules alone."""
