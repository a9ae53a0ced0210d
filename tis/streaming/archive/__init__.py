"""What lasts beside the streams: stored responses and conversations in an SQL database that several servers share.

`ArchivingStore` is a store of sessions: streams in the store that it is made of, what lasts in `SqlArchive`. A response
is put there, as one row with its packed events, before clients see its last event (`tis/streaming/kept_ends.py`). From
then on the archive alone says whether it is there: a deleted one leaves a mark, so that no server that was away writes
it back. Changes of a conversation name the version that they replace. A response in the background has its row from its
begin on, with what begins it anew and a lease (`tis/streaming/kept_begins.py`, `begun_rows`). Why:
`docs/decisions/0128-responses-that-last.md`, `0135-queued-responses-in-the-database.md`.

Migrations only add, and rows have a version, so that servers of two versions may share the tables.
"""
