"""Parses the text of an answer into reasoning, content and tool calls, while the model generates it.

`AnswerParser` (`parser.py`) reads every format but Harmony's, whose messages have headers (`HarmonyParser`).
`ToolCallsParser` (`tool_calls.py`) reads the calls between two markers: `JsonCallParser` those of Hermes and Llama,
`NamedCallParser` those of Mistral and DeepSeek, which begin with the name, `XmlCallParser` and `GlmCallParser` tags.
A call of Llama without a marker begins the answer (`ParserConfig.may_be_bare`).
"""
