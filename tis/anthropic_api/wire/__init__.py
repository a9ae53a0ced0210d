"""Requests of the Messages API as chat requests, and runs as its events."""
