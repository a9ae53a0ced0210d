"""Accounts of users and suppliers: passwords, tokens, signing in.

`authenticate` makes the `Principal` in the transaction of the request. A token names an account (`user:7`,
`supplier:3`) and a login, but no rights: the database says whether the account is active, which suppliers it works
for, and whether the login was ended. A bad token is refused in every mode.

`MARKETPLACE_AUTH=required`, the default: a caller without a token reads what is public, without personal data of
others. `open`, for one's own computer: the documented curl lines work without a token and everything is shown, but
only an admin gives roles. An open server starts only on a loopback `HOST`, and `require_this_computer` refuses
requests from elsewhere and web pages of strangers. Reasons: `docs/decisions/0015-who-may-do-what.md`.

A login begins a chain of refresh tokens, each valid once (`rotate`). A token that is used twice ends the chain; that
transaction is committed although the response is an error. A token of a chain that is not in this database is
invalid. Chains that are over are deleted hourly by the sweeper. Passwords are hashed
before the transaction, as argon2 takes its time and SQLite has one writer. Without `JWT_SECRET_KEY`, `signing_secret`
keeps a key beside the SQLite file; other databases need the setting, as several servers may share them.

A mailbox is proven by a one-time link (`links`): `recovery` resets passwords, and confirms and changes e-mails. Routes
send the mails after their transaction, through `MailQueue`: `docs/decisions/0032-accounts.md`.
"""
