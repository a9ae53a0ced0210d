"""The program of the sandbox: reads a file from stdin and writes a window of its sound to stdout whenever it is asked.

Each process decodes one file, has none of the server's environment, and limits its resources before it reads a byte.
"""

import sys
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from typing import Any, BinaryIO

from tis.media.audio.protocol import BYTES_PER_SAMPLE, NEXT, SoundLimits, SoundRefused, encode_answer
from tis.sandbox.child import (
    connect_to_server,
    exit_after,
    limit_cpu,
    limit_files,
    limit_memory,
    no_new_files,
    say_ready,
)


def main() -> None:
    server = connect_to_server()
    limits = SoundLimits.from_json(sys.argv[1])
    limit_memory(limits.memory_bytes)
    limit_cpu(limits.cpu_seconds)
    limit_files(limits.max_window_samples * BYTES_PER_SAMPLE + 2**20)
    from tis.media.audio import cutting, pyav

    say_ready(server)
    sound = _Sound(limits, pyav, cutting)
    with no_new_files():
        _serve(server, limits, sound)


def _serve(server: "Connection", limits: SoundLimits, sound: "_Sound") -> None:
    while True:
        exit_after(None)  # the windows before may be heard for long
        try:
            question = server.recv_bytes()
        except EOFError:
            return  # the server has ended
        exit_after(limits.wall_seconds + 5)  # the server kills this process earlier
        server.send_bytes(_answer(sound.next if question == NEXT else sound.open))


def _answer(work: Callable[[], bytes]) -> bytes:
    try:
        return work()
    except SoundRefused as error:
        return encode_answer(refused=error.reason)
    except MemoryError:
        return encode_answer(refused="memory")
    except Exception:  # boundary to the decoders: the client gets "damaged"
        return encode_answer(refused="damaged")


class _Sound:
    def __init__(self, limits: SoundLimits, pyav: Any, cutting: Any) -> None:
        self._limits = limits
        self._pyav, self._cutting = pyav, cutting
        self._file: BinaryIO = sys.stdin.buffer
        self._num_samples = self._num_skipped = 0
        self._windows: Iterator[Any] = iter(())

    def open(self) -> bytes:
        limits = self._limits
        seconds = self._pyav.measure(self._file)
        if seconds > limits.max_seconds:
            raise SoundRefused("seconds")
        chunks = self._counted(self._pyav.decoded_chunks(self._file, limits.sample_rate, limits.max_seconds))
        if limits.rules is None:
            self._windows = self._cutting.even_windows(chunks, limits.max_window_samples)
        else:
            self._windows = self._cutting.cut_windows(chunks, limits.sample_rate, limits.window_seconds, limits.rules)
        return encode_answer(seconds=seconds)

    def next(self) -> bytes:
        """Cuts once: each answer has a time limit, however much of the file has to be passed."""
        rate = self._limits.sample_rate
        try:
            window = next(self._windows)
        except StopIteration:
            if not self._num_samples:
                raise SoundRefused("damaged") from None
            return encode_answer(count=0, start=0, seconds=self._num_samples / rate)
        if window is None or self._num_skipped < self._limits.num_skipped:
            self._num_skipped += window is not None
            return encode_answer(count=0, start=0, seconds=0, more=True)
        output = sys.stdout.buffer
        output.seek(0)
        output.truncate()
        output.write(window.samples.data.cast("B"))
        output.flush()
        return encode_answer(count=window.samples.size, start=window.start / rate, seconds=0)

    def _counted(self, chunks: Iterator[Any]) -> Iterator[Any]:
        for chunk in chunks:
            self._num_samples += chunk.size
            yield chunk


if __name__ == "__main__":
    main()
