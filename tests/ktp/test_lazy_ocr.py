"""The OCR engine before its first picture."""

import sys

import pytest

from tis.ktp.lazy_ocr import LazyOcr


def test_its_packages_are_looked_for_once_and_not_by_each_probe(monkeypatch: pytest.MonkeyPatch) -> None:
    ocr = LazyOcr()
    for package in ("rapidocr", "onnxruntime", "cv2"):
        monkeypatch.delitem(sys.modules, package, raising=False)
    monkeypatch.setattr(sys, "meta_path", [])
    assert ocr.is_installed and ocr.failure is None
