"""The API of Ollama, on the same runs as `/v1`: recorded, resumed after `kill -9`, cancelled, counted.

`routes` (HTTP) import `wire`: requests become a `ChatRequest`, `OllamaWriter` makes the lines of their answers.
`OllamaPathMiddleware` gives `/ollama/api` its second name, `/api`.
"""
