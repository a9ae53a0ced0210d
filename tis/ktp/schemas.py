"""The answers of `/ktp-ocr/`, for /docs and for clients that are generated from it."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Confidence = Annotated[float, Field(ge=0, le=1)]
Box = list[list[float]]


class CardAddress(BaseModel):
    name: str | None = Field(description="street and number")
    rt_rw: str | None
    kel_desa: str | None
    kecamatan: str | None


class BasicCard(BaseModel):
    """What `detail=basic` returns. Values are as printed; null = not read."""

    nik: str | None
    nama: str | None
    tempat_lahir: str | None
    tgl_lahir: str | None = Field(description="DD-MM-YYYY")
    jenis_kelamin: str | None
    alamat: CardAddress
    agama: str | None
    status_perkawinan: str | None
    pekerjaan: str | None
    kewarganegaraan: str | None
    berlaku_hingga: str | None = Field(description="SEUMUR HIDUP, or DD-MM-YYYY on older cards")


class CardWarning(BaseModel):
    code: str = Field(description="nik_date_mismatch, nik_region_unknown, hidden, disagreement, ...")
    field: str | None
    message: str


class CardRepair(BaseModel):
    model_config = ConfigDict(populate_by_name=True)

    field: str
    old: str | None = Field(alias="from", description="as it was read")
    new: str = Field(alias="to")
    reason: str


class NikRegion(BaseModel):
    province: str | None
    regency: str | None
    district: str | None
    retired: bool


class NikAgreement(BaseModel):
    """Whether the NIK agrees with the rest of the card; null = nothing to compare with."""

    date: bool | None
    sex: bool | None
    regency: bool | None = Field(description="false = issued in another regency; its holder moved")
    known_code: bool


class NikInfo(BaseModel):
    """What the digits of the NIK say."""

    region: NikRegion
    birth_date: str | None = Field(description="YYYY-MM-DD")
    sex: str
    checks: NikAgreement


class CardQuality(BaseModel):
    blur: bool
    dark: bool
    bright: bool
    glare: bool
    photocopy: bool
    tilt_deg: float
    card_px: int = Field(description="width of the card on the picture")


class CardPlace(BaseModel):
    quad: Box | None = Field(description="corners in pixels of the picture, upper left first, clockwise")
    found_by: Literal["contour", "labels", "picture"]


class CardEngine(BaseModel):
    path: Literal["ocr", "vlm", "fused"]
    model: str | None = Field(description="the model that took part")
    ms: dict[str, int]


class ReaderValue(BaseModel):
    value: str | None
    confidence: Confidence


class CheckedFields(BasicCard):
    """What `POST /ktp-ocr/check` returns."""

    gol_darah: str | None
    provinsi: str | None
    kabupaten_kota: str | None
    warnings: list[CardWarning]
    repairs: list[CardRepair] = Field(description="what the checks changed")
    nik_info: NikInfo | None
    normalized: dict[str, str] = Field(description="official spelling of a value that cards print differently")


class CardAnswer(CheckedFields):
    """What `POST /ktp-ocr/` returns."""

    confidence: dict[str, Confidence] = Field(description="by field; those of the address as `alamat.rt_rw`")
    boxes: dict[str, Box | None] = Field(
        description="by field: four points in pixels of the picture (upright, as EXIF says), as the text runs"
    )
    quality: CardQuality | None
    card: CardPlace
    engine: CardEngine


class FullCardAnswer(CardAnswer):
    """What `detail=full` returns."""

    labels: list[str] = Field(description="rows whose label OCR read")
    readings: dict[str, dict[str, ReaderValue]] = Field(description="of each reader (`ocr`, `vlm`), before fusion")


GivenValue = Annotated[str, Field(max_length=200)] | None


class GivenAddress(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: GivenValue = None
    rt_rw: GivenValue = None
    kel_desa: GivenValue = None
    kecamatan: GivenValue = None


class GivenCard(BaseModel):
    """Fields to check. What is missing, null or empty was not read."""

    model_config = ConfigDict(extra="forbid")

    nik: GivenValue = None
    nama: GivenValue = None
    tempat_lahir: GivenValue = None
    tgl_lahir: GivenValue = None
    jenis_kelamin: GivenValue = None
    alamat: GivenAddress | None = None
    agama: GivenValue = None
    status_perkawinan: GivenValue = None
    pekerjaan: GivenValue = None
    kewarganegaraan: GivenValue = None
    berlaku_hingga: GivenValue = None
    gol_darah: GivenValue = None
    provinsi: GivenValue = None
    kabupaten_kota: GivenValue = None

    def values(self) -> dict[str, str | None]:
        """By the names that the reader uses: `alamat.rt_rw`."""
        given = self.model_dump()
        address = given.pop("alamat") or {}
        return {**given, **{f"alamat.{name}": value for name, value in address.items()}}


class CardFault(BaseModel):
    code: str
    message: str
    field: str | None = None


class BatchItem(BaseModel):
    index: int
    ok: bool
    data: CardAnswer | None = None
    error: CardFault | None = None


class BatchAnswer(BaseModel):
    results: list[BatchItem] = Field(description="in the order of the pictures")


BASIC_EXAMPLE: dict[str, Any] = {
    "nik": "3201011708859001",
    "nama": "BUDI SANTOSO",
    "tempat_lahir": "BOGOR",
    "tgl_lahir": "17-08-1985",
    "jenis_kelamin": "LAKI-LAKI",
    "alamat": {
        "name": "JL. MELATI NO. 12",
        "rt_rw": "007/008",
        "kel_desa": "SUKAMAJU",
        "kecamatan": "CIBINONG",
    },
    "agama": "KATHOLIK",
    "status_perkawinan": "KAWIN",
    "pekerjaan": "KARYAWAN SWASTA",
    "kewarganegaraan": "WNI",
    "berlaku_hingga": "SEUMUR HIDUP",
}
CARD_EXAMPLE: dict[str, Any] = {
    **BASIC_EXAMPLE,
    "gol_darah": "O",
    "provinsi": "PROVINSI JAWA BARAT",
    "kabupaten_kota": "KABUPATEN BOGOR",
    "confidence": {"nik": 0.9987, "nama": 0.9951, "alamat.rt_rw": 0.9902},
    "boxes": {"nik": [[327.0, 168.0], [880.0, 168.0], [880.0, 214.0], [327.0, 214.0]]},
    "warnings": [],
    "repairs": [],
    "nik_info": {
        "region": {
            "province": "JAWA BARAT",
            "regency": "KABUPATEN BOGOR",
            "district": "CIBINONG",
            "retired": False,
        },
        "birth_date": "1985-08-17",
        "sex": "LAKI-LAKI",
        "checks": {"date": True, "sex": True, "regency": True, "known_code": True},
    },
    "quality": {
        "blur": False,
        "dark": False,
        "bright": False,
        "glare": False,
        "photocopy": False,
        "tilt_deg": 0.4,
        "card_px": 1380,
    },
    "card": {"quad": None, "found_by": "picture"},
    "normalized": {"agama": "KATOLIK"},
    "engine": {"path": "ocr", "model": None, "ms": {"decode": 21, "ocr": 1460}},
}
NOT_FOUND_EXAMPLE: dict[str, Any] = {
    "code": "ktp_not_found",
    "message": "No KTP was found on the picture. Send a sharp picture of the front, with the whole card on it.",
    "field": "image",
    "seen": {"labels": 0, "quality": CARD_EXAMPLE["quality"]},
}
STREAM_EXAMPLE = 'event: stage\ndata: {"stage": "found"}\n\nevent: result\ndata: {"nik": "3201011708859001"}\n\n'
CHECK_EXAMPLE: dict[str, Any] = {
    **BASIC_EXAMPLE,
    "tgl_lahir": "18-08-1985",
    "gol_darah": "O",
    "provinsi": "PROVINSI JAWA BARAT",
    "kabupaten_kota": "KABUPATEN BOGOR",
    "warnings": [
        {
            "code": "nik_date_mismatch",
            "field": "nik",
            "message": "The NIK has another birth date than the card prints.",
        }
    ],
    "repairs": [],
    "nik_info": {**CARD_EXAMPLE["nik_info"], "checks": {**CARD_EXAMPLE["nik_info"]["checks"], "date": False}},
    "normalized": {"agama": "KATOLIK"},
}
GIVEN_EXAMPLE: dict[str, Any] = {
    name: CHECK_EXAMPLE[name] for name in ("nik", "tgl_lahir", "jenis_kelamin", "agama", "alamat", "kabupaten_kota")
}
BATCH_EXAMPLE: dict[str, Any] = {
    "results": [
        {"index": 0, "ok": True, "data": CARD_EXAMPLE},
        {"index": 1, "ok": False, "error": NOT_FOUND_EXAMPLE},
    ]
}


def _fault(description: str, code: str, message: str, field: str | None = "image") -> dict[str, Any]:
    example = {"detail": {"code": code, "message": message, "field": field}}
    return {"description": description, "content": {"application/json": {"example": example}}}


_FAULTS: dict[int | str, dict[str, Any]] = {
    400: _fault("Not a picture, or a broken one", "not_an_image", "The format of this image is not supported."),
    413: _fault("Too many bytes or pixels", "too_large", "The picture is too large: the limit is 32 MiB."),
    422: {
        "description": "The field is missing (`missing_field`), or there is no card on the picture (`ktp_not_found`)",
        "content": {"application/json": {"example": {"detail": NOT_FOUND_EXAMPLE}}},
    },
    429: _fault("Busy", "rate_limit_exceeded", "The server is busy: too many cards wait to be read.", None),
    503: _fault("Nothing here can read cards now", "ocr_unavailable", "The OCR engine is not installed.", None),
    504: _fault("It took too long", "timeout", "The card was not read within 60 s (KTP_TIMEOUT_SECONDS).", None),
}


def _form(name: str, picture: dict[str, Any]) -> dict[str, Any]:
    schema = {"type": "object", "required": [name], "properties": {name: picture}}
    return {"requestBody": {"required": True, "content": {"multipart/form-data": {"schema": schema}}}}


_PICTURE = {"type": "string", "format": "binary", "description": "JPEG, PNG, WebP, GIF, BMP or TIFF (first page)"}
CARD_FORM = _form("image", _PICTURE)
BATCH_FORM = _form("images[]", {"type": "array", "items": _PICTURE})
CARD_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {
        "model": CardAnswer,
        "description": "The card",
        "content": {"application/json": {"example": CARD_EXAMPLE}, "text/event-stream": {"example": STREAM_EXAMPLE}},
    },
    **_FAULTS,
}
BATCH_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {
        "model": BatchAnswer,
        "description": "Each card, or why it was not read",
        "content": {"application/json": {"example": BATCH_EXAMPLE}},
    },
    **{status: fault for status, fault in _FAULTS.items() if status in (422, 429)},
}
CHECK_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {
        "model": CheckedFields,
        "description": "The fields as a card prints them, and what the checks say",
        "content": {"application/json": {"example": CHECK_EXAMPLE}},
    },
    422: _fault(
        "A field that cards do not have, or no text",
        "invalid_parameter",
        "nama: Input should be a valid string",
        "nama",
    ),
}
