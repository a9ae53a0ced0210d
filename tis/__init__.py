"""Transformers Inference Server: models of your own behind the OpenAI API."""

__version__ = "1.0.0"
