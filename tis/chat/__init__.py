"""Runs: answers of the model, the calls of MCP servers between them, records, and how to resume them. No dialect.

A dialect makes a `RunSpec` of a request and hands over a `Writer`. `Run` is the `Source` of `streaming`: it submits the
prompt, writes records to its `RunLog`, and makes calls with `McpCaller`. `PartReader` parses pieces into parts, each
with its own tokens and log probabilities. The writer turns what happened into the events of its API, by five verbs:
begun, part, call, ended, failed. A plain chat is a run of one round. `Transcript` collects what the rounds came to,
`Rounds` makes the prompt of the next one.

Records are stored as the resume states of events. The common one is a piece: choice, text, tokens and cached tokens.
`resume_with` makes a `Run` of a stored `RunSpec` and replays the records through parser and writer. A specification of
another `VERSION`, or records that make another number of events, end the answer as `GenerationInterrupted`. The
beginning of a call is committed before the call is made, so no call is made twice: after a kill it fails
(`docs/decisions/0026-one-run-many-writers.md`).
"""
