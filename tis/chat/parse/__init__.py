"""Parses the text of an answer into reasoning, content and tool calls, while the model generates it."""
