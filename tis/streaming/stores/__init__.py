"""Stores of sessions. `store.py` is the contract; one test suite runs against every store.

`MemoryStore` commits at once and stores neither attachments nor anything beyond the window of a recording.

`SqliteStore` has one writer thread (`SqliteWriter`), which commits the `WriteQueue` in batches and acknowledges each
batch on the event loop. A failing store never blocks an answer: `StoreHealth` turns `degraded` until the writer has
caught up, by a snapshot of memory that is written over the file (`tis/streaming/stores/sqlite_rows.py`); nothing in
the file is deleted. The writer finds a single failing write by halving its batch. The session of that write is
restored from memory, or it continues in memory (`Session.move_to`); other sessions are unaffected.

`StoreRoom` knows how full the file is, as the writer measures it, and about how much of it each owner has.
`IntegrityCheck` reads the whole file in the background, at the start and when a reader has met damage. A session that
the file rejects is marked as cut there (`SessionRecord.is_cut`); what was committed of it stays.

Attachments are written in one transaction with their turn, each once per session, in parts of a megabyte.
`TurnRecord.attachments` has them while the turn runs, in case the file must be rewritten. On a full disk, turns are
stored without attachments.

`RedisStore` is a `SharedStore`: several processes use it, and one of them holds a session. `RedisWriter` writes the
`ChangeQueue` in pipelines of scripts (`tis/streaming/stores/redis_scripts.py`), each under the claim of its process;
`RedisReplica` renews the lease of the process and takes the sessions of those that died. Reasons:
`docs/decisions/0124-sessions-in-redis.md`.
"""
