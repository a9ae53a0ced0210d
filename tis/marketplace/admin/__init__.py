"""What admins look at and do: what waits, the audit log, previews of words, requests about data; and retention."""
