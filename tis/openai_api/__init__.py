"""The OpenAI API under `/v1`: `routes` import `wire`, which imports `store`. It knows nothing of torch.

A chat: `chat_completions` validates the body (`ChatRequest`), `begin_chat` makes a `ChatPrompt` and a dict of sampling
parameters, has the engine prepare them, and starts a `Run` with a `ChatWriter`. `event_stream` follows the recording
with a `Reader`; `fold` makes an answer that is not streamed of the same chunks. A client that comes back joins at this
point with a cursor, by POST or by GET (`follow_session`). All readers read the recording:
`docs/decisions/0001-everybody-reads-the-recording.md`. `Sessions.cancel` cancels the `Run`, which cancels the engine's
`Answer`.

A response: `as_chat` turns its request into the chat request that means the same, and `ResponseBeginning` makes a `Run`
with a `ResponseWriter`, which makes items of parts.

Images: `with_media` asks `Engine.media_kinds` whether the model takes them, lets `MediaLoader.load` fetch and decode
them, and puts `Picture` and `Video` objects where the parts were. Their bytes are attachments of the turn. After a
kill `media_again` decodes them once more; media that are missing, or no longer accepted, end the answer with
`GenerationInterrupted`.

Shutdown: `race_draining` gives a 503 to requests that still wait for a load or a fetch, instead of a reset
connection. Then `graceful_shutdown` drains with the sockets open, for `DRAIN_SECONDS`, under `python main.py` and
`uvicorn main:app` alike, as the signal reaches uvicorn only afterwards. The first ends with exit code 0, the second
with the signal's own.
"""
