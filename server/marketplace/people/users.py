"""Users: register, look at, take along, be forgotten."""

from fastapi import APIRouter

router = APIRouter(tags=["users"])
