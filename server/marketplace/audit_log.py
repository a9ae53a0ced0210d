"""The audit log, for admins."""

from fastapi import APIRouter

router = APIRouter(tags=["admin"])
