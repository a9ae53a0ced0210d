"""SQL databases: engines, transactions, migrations, and which errors become a 503.

It knows no table. `Database` connects at the first transaction, and every transaction begins and ends there; why
there is one per request: `docs/decisions/0014-transactions.md`.

`is_unavailable` tells a database that is gone, by SQLite's error code, by PostgreSQL's SQLSTATE or by a lost
connection. Such an error is a `DatabaseUnavailable` with `Retry-After`; any other is a fault in our SQL, that is a
logged 500. `make_engine` sets how long anything may wait: connections, locks, statements, and reads on SQLite, which
a progress handler interrupts at their deadline. A connection to a SQLite file that was replaced since is noticed when
it leaves the pool.
"""
