"""`/v1/audio`: transcriptions and translations of files of any length, and speech of texts, as recorded streams.

A file is decoded and cut at pauses by `media.sound`; each window is heard by the engine, several at once. What is heard
of a window is one record of a `TranscriptionRun`; `TranscriptWriter` makes events of records. Another process skips the
windows that have a record and hears the others. An answer that is not streamed is folded from the same events.

The sentences of a text are spoken by the engine and encoded here (`spoken_file`). The bytes are the answer, or the
events of a `SpeechRun`. Another process makes the same bytes again and goes on behind those that readers have.
"""
