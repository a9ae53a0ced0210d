"""Suppliers (shops) and the users who work for them.

An owner invites and the user accepts (`members`). A supplier that nobody can sign in to any more is
deleted with its personal data (`deletion`).
"""
