"""Stock that is held for somebody until they buy it, give it back, or take too long."""

from fastapi import APIRouter

router = APIRouter(tags=["stock"])
