"""Which models are served, and how they are loaded and unloaded.

A model is unloaded, loading, ready, unloading, failed or dead (`ModelStatus`). Its `ModelSlot` loads it at the first
request, or at the start of the server, in three steps: `Fetch` downloads its files and weighs them, `ModelMemory` makes
room for it and lets the model that has been idle longest go first, `Load` reads it.

`ModelUse` knows who uses a model: requests that are being prepared, and the tickets of those that are not over. What
waits and runs, the worker knows. `ModelSlot.unload` closes the worker only if it is idle, in one step with the queue,
so no request is lost; a request that comes later waits for the unload and loads the model again.
"""
