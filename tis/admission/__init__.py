"""What requests may use at once, counted in one place. It knows no HTTP and not what requests are for.

A request takes a `Ticket` before its first byte is read, and returns it after its last token. `Admission` makes tickets
and counts them by stage. A ticket holds amounts of the resources that `AdmissionLimits` bounds; each has a `Budget`,
for the server and for each owner. What does not fit waits in a `FairQueue`, or is refused with `QueueFull`.

Waits cannot block each other for ever: a request takes `requests`, `body_bytes`, `media_bytes`, `decoded_bytes`, a
decoder and `sound_seconds` in this order, and all that it needs of one resource at once.
"""
