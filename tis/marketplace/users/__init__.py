"""Users (buyers): profiles, grants, data export and deletion.

`erase_user` blanks the row and keeps it, so that reviews, reservations and ledgers stay whole without a name.
Suppliers that nobody else could sign in for are deleted with the user, unless they have a login of their own.
"""
