"""What buyers say."""

from fastapi import APIRouter

router = APIRouter(tags=["reviews"])
