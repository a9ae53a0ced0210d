"""`/v1/audio`: transcriptions and translations of files of any length, as recorded streams; speech is a 501.

A file is decoded and cut at pauses by `media.sound`; each window is heard by the engine, several at once. What is heard
of a window is one record of a `TranscriptionRun`; `TranscriptWriter` makes events of records. Another process skips the
windows that have a record and hears the others. An answer that is not streamed is folded from the same events.
"""
