"""Categories and the words people use for them."""

from fastapi import APIRouter

router = APIRouter(tags=["categories"])
