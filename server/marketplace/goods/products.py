"""Products: make, change, delete, restore, compare."""

from fastapi import APIRouter

router = APIRouter(tags=["products"])
