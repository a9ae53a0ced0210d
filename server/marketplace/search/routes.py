"""Lists of products, and searching them."""

from fastapi import APIRouter

router = APIRouter(tags=["products"])
