"""A supplier's products as CSV, in and out."""

from fastapi import APIRouter

router = APIRouter(tags=["products"])
