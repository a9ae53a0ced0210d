"""Suppliers (shops) and the users who work for them.

An owner invites (`members`), the user accepts (`invitations`). A supplier that nobody can sign in to any more is
deleted with its personal data (`deletion`).
"""
