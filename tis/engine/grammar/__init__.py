"""Structured output: a `Grammar` is checked, compiled off the event loop, enforced token by token, and validated.

`compile_grammar` first looks for a grammar that is compiled or rejected already (`GrammarCompiler.find`). A new one
is compiled in a sandbox (`CompileSandbox`), then in the server, in a thread of its own. Few requests may wait for
that thread, owners in turn; the others get a 429. Each completion gets a copy of the matcher.

A `TokenConstraint` decides which tokens may come next in one completion: its grammar, and the reasoning before it.
Its state follows from the tokens alone, so a resumed answer replays them. `apply_masks` makes all other tokens
impossible.

Reasons, limits and alternatives: `docs/decisions/0009-grammar.md`. Why objects get no properties that their schema
does not list: `docs/decisions/0009-grammar.md`.
"""
