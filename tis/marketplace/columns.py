"""Column types and expressions that behave the same on every database."""

from datetime import UTC, date, datetime
from typing import Any

from sqlalchemy import JSON, BigInteger, Date, DateTime, Dialect, Double, Integer, String, literal, literal_column
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.orm import InstrumentedAttribute
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.expression import ColumnElement
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import TypeDecorator

# SQLite autoincrements only columns of the type INTEGER.
BigId = BigInteger().with_variant(Integer(), "sqlite")
Json = JSON().with_variant(JSONB(), "postgresql")


class UTCDateTime(TypeDecorator[datetime]):
    """TIMESTAMPTZ on PostgreSQL; elsewhere ISO text, which sorts by time."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> Any:
        return dialect.type_descriptor(DateTime(timezone=True) if dialect.name == "postgresql" else String(27))

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> Any:
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("a datetime needs a time zone")
        moment = value.astimezone(UTC)
        return moment if dialect.name == "postgresql" else moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        moment: datetime = datetime.fromisoformat(value) if isinstance(value, str) else value
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)  # as earlier versions wrote some


class PublicPlace(ColumnElement[float]):
    """A coordinate of a supplier, rounded to about 100 m if the supplier shows its place, else to about 1 km.

    Search filters, sorts and measures by this place only: exact distances from three points would reveal the address.
    """

    inherit_cache = False
    type = Double()

    def __init__(self, column: str) -> None:
        self.column = column


_DIGITS = "CASE WHEN shows_place THEN 3 ELSE 2 END"


@compiles(PublicPlace)
def _rounded(place: PublicPlace, compiler: object, **options: object) -> str:
    return f"round({place.column}, {_DIGITS}) + 0.0"  # + 0.0 makes -0.0 a 0


@compiles(PublicPlace, "postgresql")
def _rounded_on_postgresql(place: PublicPlace, compiler: object, **options: object) -> str:
    return f"round({place.column}::numeric, {_DIGITS})::double precision"


class LocalDay(FunctionElement[date]):
    """The day of a `UTCDateTime` column in a zone without summer time, `hours` ahead of UTC."""

    inherit_cache = True
    type = Date()

    def __init__(self, column: ColumnElement[Any] | InstrumentedAttribute[Any], hours: int) -> None:
        super().__init__(column, literal_column(str(int(hours))))


@compiles(LocalDay, "sqlite")
def _day_on_sqlite(day: LocalDay, compiler: SQLCompiler, **options: Any) -> str:
    column, hours = (compiler.process(part, **options) for part in day.clauses)
    return f"date(substr({column}, 1, 19), '+{hours} hours')"  # it rounds parts of a second, up to the next day


@compiles(LocalDay, "postgresql")
def _day_on_postgresql(day: LocalDay, compiler: SQLCompiler, **options: Any) -> str:
    column, hours = (compiler.process(part, **options) for part in day.clauses)
    return f"(({column} AT TIME ZONE 'UTC') + interval '{hours} hours')::date"


@compiles(LocalDay, "mysql")
@compiles(LocalDay, "mariadb")
def _day_on_mariadb(day: LocalDay, compiler: SQLCompiler, **options: Any) -> str:
    column, hours = (compiler.process(part, **options) for part in day.clauses)
    return f"date(date_add(cast(substr({column}, 1, 19) AS datetime), interval {hours} hour))"


def now() -> datetime:
    return datetime.now(UTC)


def moment_value(moment: datetime) -> ColumnElement[datetime]:
    """For an argument of a function of SQL: a bare datetime there is written in another form than that of columns."""
    return literal(moment, UTCDateTime())
