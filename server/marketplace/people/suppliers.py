"""Suppliers: register, list, change, and who works for them."""

from fastapi import APIRouter

router = APIRouter(tags=["suppliers"])
