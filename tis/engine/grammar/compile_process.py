"""The child process of `CompileSandbox`: compiles each grammar it receives, and sends back the error, or nothing."""

import threading
from typing import TYPE_CHECKING

from tis.engine.grammar.limits import COMPILE_MEMORY_BYTES, parser_limits
from tis.sandbox.child import connect_to_server, exit_after, limit_files, limit_memory, say_ready

# The server kills this process earlier, unless the server itself was killed.
_MAX_SECONDS = 30
# Less than any thread of the server has: a grammar that nests too deep for the compiler's recursion ends this process.
_STACK_BYTES = 1 << 20

if TYPE_CHECKING:
    from multiprocessing.connection import Connection


def main() -> None:
    server = connect_to_server()
    limit_memory(COMPILE_MEMORY_BYTES)
    limit_files(0)
    threading.stack_size(_STACK_BYTES)
    worker = threading.Thread(target=_compile_all, args=(server,))
    worker.start()
    worker.join()


def _compile_all(server: "Connection") -> None:
    from llguidance import LLMatcher, LLTokenizer

    # The cost of compiling depends on the grammar, so a tokenizer of bytes is enough.
    tokenizer = LLTokenizer("byte")
    say_ready(server)
    while True:
        exit_after(None)
        try:
            text = server.recv_bytes()
        except EOFError:  # the server has closed the connection or died
            return
        exit_after(_MAX_SECONDS)
        matcher = LLMatcher(tokenizer, text.decode("utf-8", "surrogatepass"), log_level=0, limits=parser_limits())
        if not matcher.is_error():
            matcher.compute_bitmask()
            matcher.compute_ff_tokens()
        error = matcher.get_error() if matcher.is_error() else ""
        server.send_bytes(error.encode("utf-8", "replace"))


if __name__ == "__main__":
    main()
