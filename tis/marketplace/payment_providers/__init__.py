"""Midtrans and Xendit behind one Protocol, the keys of shops for them, and a reader of QR codes: no routes."""
