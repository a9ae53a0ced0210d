"""Reads Indonesian identity cards (KTP): a picture of a card in, checked fields with confidence and boxes out.

`routes` and `schemas` are HTTP, `uploads` reads forms without files, `CardReader` chooses what reads a picture and
waits for it. `OcrCardReader` finds lines (`RapidTextReader`), gives them to fields (`parse_card`) and compares the
fields (`check_card`).
`EngineVision` asks a served model, `vision_card` makes fields of its answer, `fuse` makes one card of both readings.

cv2, onnxruntime and numpy are imported with the first picture. Nothing of a card is logged, stored or counted:
`docs/decisions/0061-identity-cards.md`. What reads cards, and who wins where two readers differ:
`docs/decisions/0061-identity-cards.md`.
"""
