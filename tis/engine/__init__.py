"""The engine: prompts in, tokens out. It knows nothing of HTTP, OpenAI, sessions or SQL.

`LocalEngine` implements the Protocol `Engine`. It keeps a `ModelSlot` for each model of the catalogue. A slot loads
its model once, however many requests wait for it; waits longer after each failed load; and replaces a dead `Worker`.

1. `LocalEngine.prepare` waits until the model is loaded (`ModelSlot.ensure_loaded`). Then, in a thread, it renders
   the chat template, tokenises, fills in default parameters (`SamplingParams.layered`), and makes every check that
   may refuse the request. The result is a `PreparedRequest`.
2. `LocalEngine.submit` makes a `Request`, with a `Completion` per choice, and queues it at the worker.
3. The worker is one daemon thread per model. It admits requests, runs a step of its `Runner`, hands out the pieces,
   and repeats. `EchoRunner` needs no weights; `BatchRunner` computes many requests in one forward pass;
   `TurnRunner` computes the requests of any other model in turn, a token or a part of a prompt at a time.
   `choose_runner` decides, and the log has the reason that `why_not_batchable` returns.

A `Completion` turns the tokens of one choice into text (`Piece`). It uses no tensors. It owns the detokenizer, which
emits no half characters, the stop strings, of which it emits no beginning, and the position in the random stream.

Resume: the session store saves `PreparedRequest.resumable`, and with it the tokens that clients have
(`EmittedTokens`). `LocalEngine.resume` refuses another model of the same name (`revision_of`), replays the tokens
(`Completion.replay`) and queues the request before new ones. The runner treats it like a preempted request: it
computes the prompt and the replayed tokens again, and the next token is the one that would have come.

Cancel: `Request.cancel` sets an event that the model's thread checks before its next step. `Worker.drop_if_queued`
ends a request that is still in the queue.

No client waits for ever. A failed step is repeated by halves and fails the requests that are to blame. A worker that
dies fails all its requests, and `/ready` is 503 until it is replaced. A device that is lost and a step that hangs end
the process (`tis/engine/faults.py`). While the server drains, `LocalEngine` refuses new requests and running ones
continue.

Threads meet asyncio only in `tis/engine/threads.py`: the pieces of a step reach the event loop in one call, short
work runs in a small pool, and a load has a thread of its own.
"""
