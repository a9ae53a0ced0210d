"""Signing in: register, login, refresh, and who am I."""

from fastapi import APIRouter

router = APIRouter(tags=["accounts"])
