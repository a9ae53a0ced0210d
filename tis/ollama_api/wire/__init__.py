"""What requests of Ollama's clients mean to `/v1`, and the lines that they get."""
