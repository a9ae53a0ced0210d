"""Sandboxes: killable processes for work on untrusted input, which may crash, hang or exhaust memory.

The server starts a process (`SandboxProgram`, `SandboxProcess`), sends it a message, reads its answer and kills it at
its deadline. The process limits itself (`tis/sandbox/child.py`). The package does not know the work:
`tis/media/video/` decodes videos in sandboxes, and `tis/engine/grammar/` compiles grammars in them, so it lies a
layer below both. Which system limits what: `docs/decisions/0021-media-and-sandboxes.md`.
"""
