"""Records the numbered events of an answer and replays them to every reader that connects or reconnects.

A `Session` is found by owner and id. Its turns are recorded one after the other, and indexes continue across turns. A
`Source` makes the events of a turn; the package does not interpret them. `Turn.run` records to the end, with or
without readers. A `Recording` is a window on the newest events (at least 2,048 or as many as the request may produce,
at most 8 MiB); older ones come from the `Store`, and missing ones are a `ReplayGap`, never a hole. Each `Reader` has
its own cursor, so no reader blocks another. `Sessions.sweep` serves all sessions: heartbeats for idle readers,
cancelling of turns without readers, eviction, checks of the store. No session has a timer or a thread.

Commit, then show: readers see an event after the store has committed it. While a store is `degraded`, all events
become visible at once (`Recording.make_all_visible`), and a cursor beyond the last durable event is rejected
(`Recording.require_durable`). Reasons: `docs/decisions/0007-commit-then-show.md`; how stores write:
`tis/streaming/stores/`.

Long sessions: when a turn begins, turns that ended longer ago than the session's time to live are deleted from memory
and, in small batches, from the store; the latest 64 stay. A cursor into a deleted turn is a `ReplayGap`
(`Session.turn_after`).

Eviction: without room for a new session, the server takes one that no client can resume, else `EvictionQueue` picks
one of the owner that has most: anonymous ones first, then the least recently used.

A store bounded in bytes (`Store.is_full`): `Sessions` evicts the oldest finished session of the owner who holds
most. If all run, new sessions are in memory only (`Session.is_volatile`). Reasons:
`docs/decisions/0007-commit-then-show.md`.

Attachments: the images and videos of a turn (`Source.attachments`), by content hash. A session stores at most
`MAX_SESSION_MEDIA_MB`: those of the oldest turns go first, and a turn above the limit stores none, so after a crash
it ends with `GenerationInterrupted`.

A killed process: readers lose the connection, and the file has what they saw. The next process locks the file and
reads the sessions (`Sessions.open`). For a turn without an end, the `ResumeSource` makes a `Source` from the stored
request, the resume states and a way to read the attachments. `Turn.run` appends as before, and indexes continue. A
graceful stop (`Sessions.end_all`) suspends durable turns, as a kill would: their readers end without `[DONE]`. Other
turns end with the error `Draining`.

Several processes on one store (`SharedStore`): a request asks for a session by `Sessions.refresh` before anything else.
One that another process holds is followed (`FollowedSessions`): one task reads its events, however many readers it has
here. A session whose process died is taken and resumed as after a restart; one that was lost to another process is
followed from then on.
"""
