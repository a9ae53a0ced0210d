"""Reads Indonesian identity cards (KTP): a picture of a card in, checked fields with confidence and boxes out."""
