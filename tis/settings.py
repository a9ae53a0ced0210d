"""Every setting of the server, read once from the environment and an optional .env file.

Each package owns its class; here they are put together. `.env.example` and docs/settings.md list the same settings; a
test compares the three.
"""

import os
from collections.abc import Mapping
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Literal, Self

from dotenv import dotenv_values
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from tis.admission.settings import AdmissionSettings
from tis.audio_api.settings import AudioSettings
from tis.engine.settings import GenerationSettings, ModelSettings
from tis.http.settings import AccessSettings, CallLimitSettings
from tis.ktp.settings import KtpSettings
from tis.marketplace.settings import (
    AccountSettings,
    AssistantSettings,
    MarketplaceSettings,
    NoticeSettings,
    PaymentSettings,
    RateSettings,
)
from tis.mcp_client.settings import McpSettings
from tis.mcp_server.settings import McpServerSettings
from tis.media.settings import MediaSettings
from tis.openai_api.settings import ResponseSettings
from tis.pages.settings import PageSettings
from tis.setting_types import SettingsError, variable_name
from tis.streaming.settings import StreamSettings

# Names that operators may bring along from elsewhere. Ours win where both are set.
OTHER_NAMES = {
    "ALLOW_REMOTE_IMAGES": "allow_remote_media",
    "REMOTE_IMAGE_TIMEOUT": "media_timeout_seconds",
    "MAX_REMOTE_IMAGE_BYTES": "max_media_mb",
    "MAX_AUDIO_BYTES": "max_audio_mb",
}


class ServerSettings(BaseModel):
    """Server"""

    port: int = Field(3000, ge=1, le=65535, description="TCP port, 1 to 65535")
    host: str = Field("127.0.0.1", description="address to listen on; 0.0.0.0 for every interface")
    ssl_certfile: str | None = Field(
        None, min_length=1, description="certificate chain (PEM) for https; read again when it changes"
    )
    ssl_keyfile: str | None = Field(None, min_length=1, description="key of SSL_CERTFILE (PEM)")
    log_level: Literal["debug", "info", "warning", "error"] = Field("info", description="least severe line logged")
    log_format: Literal["text", "json"] = Field("text", description="text for people, or a JSON object per line")
    traces: bool = Field(
        False,
        description="send OpenTelemetry traces, by OTLP to OTEL_EXPORTER_OTLP_ENDPOINT (docs/instruments.md)",
    )
    drain_seconds: float = Field(30, ge=0, le=3600, description="how long running answers may continue after SIGTERM")


# In the order of .env.example and of `tis serve --help`; the docstring is the heading.
AREAS: tuple[type[BaseModel], ...] = (
    ServerSettings,
    ModelSettings,
    GenerationSettings,
    MediaSettings,
    AudioSettings,
    StreamSettings,
    ResponseSettings,
    McpSettings,
    McpServerSettings,
    KtpSettings,
    MarketplaceSettings,
    AccountSettings,
    PaymentSettings,
    NoticeSettings,
    AssistantSettings,
    RateSettings,
    AccessSettings,
    CallLimitSettings,
    AdmissionSettings,
    PageSettings,
)


class Settings(
    PageSettings,
    AdmissionSettings,
    CallLimitSettings,
    AccessSettings,
    RateSettings,
    AssistantSettings,
    NoticeSettings,
    AccountSettings,
    PaymentSettings,
    MarketplaceSettings,
    KtpSettings,
    McpServerSettings,
    McpSettings,
    ResponseSettings,
    StreamSettings,
    AudioSettings,
    MediaSettings,
    GenerationSettings,
    ModelSettings,
    ServerSettings,
):
    # pydantic orders fields from the last base to the first.
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    @model_validator(mode="after")
    def _one_quantisation(self) -> Self:
        if self.load_in_4bit and self.load_in_8bit:
            raise ValueError("LOAD_IN_4BIT and LOAD_IN_8BIT exclude each other: set one of them to 0")
        return self

    @model_validator(mode="after")
    def _certificate_with_key(self) -> Self:
        if (self.ssl_certfile is None) != (self.ssl_keyfile is None):
            raise ValueError("SSL_CERTFILE and SSL_KEYFILE belong together: set both, or none")
        return self

    @model_validator(mode="after")
    def _one_secret_for_all_servers(self) -> Self:
        if self.jwt_secret_key is None and not self.database_url.get_secret_value().startswith("sqlite"):
            raise ValueError(
                "JWT_SECRET_KEY must be set where DATABASE_URL is not SQLite: all servers on a database sign alike"
            )
        return self

    @model_validator(mode="after")
    def _redis_has_an_address(self) -> Self:
        if self.session_store == "redis" and self.redis_url is None:
            raise ValueError("REDIS_URL must be set where SESSION_STORE is redis: redis://HOST:6379/0")
        url = self.redis_url.get_secret_value() if self.redis_url else ""
        if url and not url.startswith(("redis://", "rediss://", "redis+sentinel://")):
            raise ValueError("REDIS_URL must begin with redis://, rediss:// or redis+sentinel://")
        return self

    @model_validator(mode="after")
    def _responses_last_in_a_database_that_can(self) -> Self:
        url = self.responses_url.get_secret_value() if self.responses_url else "postgresql"
        if not url.startswith(("postgresql", "sqlite")):
            raise ValueError("RESPONSES_URL must begin with postgresql:// or sqlite:///")
        return self

    @model_validator(mode="after")
    def _open_to_this_computer_only(self) -> Self:
        if self.marketplace_auth == "open" and not self.is_local:
            raise ValueError(
                f"MARKETPLACE_AUTH=open shows everything to whoever reaches the server, and HOST={self.host} lets "
                "others reach it: set MARKETPLACE_AUTH=required, or HOST=127.0.0.1"
            )
        return self

    @model_validator(mode="after")
    def _mails_go_one_way_and_their_links_lead_here(self) -> Self:
        if self.smtp_host and self.mail_folder:
            raise ValueError("SMTP_HOST and MAIL_FOLDER exclude each other: unset one of them")
        if self.smtp_host and self.public_url is None:
            raise ValueError("PUBLIC_URL must be set where SMTP_HOST is: links in mails begin with it")
        if self.smtp_host and "mail_from" not in self.model_fields_set:
            raise ValueError("MAIL_FROM must be set where SMTP_HOST is: the sender of mails")
        return self

    @property
    def is_local(self) -> bool:
        """Only this computer can connect to HOST."""
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return self.host.lower() == "localhost"

    @classmethod
    def from_env(
        cls,
        environ: Mapping[str, str] | None = None,
        env_file: str | Path | None = ".env",
        flags: Mapping[str, tuple[str, str]] | None = None,
    ) -> Self:
        """A flag wins over the environment, the environment over the .env file; an empty value means the default.

        `flags` has, by the name of a field, a flag as it was written and its value.
        """
        merged: dict[str, str | None] = _read_env_file(env_file) if env_file else {}
        merged.update(os.environ if environ is None else environ)
        written = {name: other for other, name in OTHER_NAMES.items() if merged.get(other)}
        written |= {name: variable for name, variable in cls.variables().items() if merged.get(variable)}
        given: dict[str, str | None] = {name: merged[variable] for name, variable in written.items()}
        for name, (flag, value) in (flags or {}).items():
            written[name], given[name] = flag, value
        try:
            return cls.model_validate({name: _in_our_unit(written[name], value) for name, value in given.items()})
        except ValidationError as error:
            raise SettingsError(_one_line(error, given, written)) from None

    @classmethod
    def variables(cls) -> dict[str, str]:
        """Field name → environment variable."""
        return {name: variable_name(name) for name in cls.model_fields}

    def set_explicitly(self, name: str) -> bool:
        return name in self.model_fields_set


def _read_env_file(path: str | Path) -> dict[str, str | None]:
    try:
        return dict(dotenv_values(path))
    except UnicodeDecodeError:
        raise SettingsError(f"{path} is not UTF-8: save it anew (PowerShell's `>` writes UTF-16).") from None
    except OSError as error:
        raise SettingsError(f"{path} cannot be read: {error.strerror}.") from None


def _in_our_unit(variable: str, value: Any) -> Any:
    if variable.endswith("_BYTES") and str(value).isdecimal():
        return int(value) / 2**20
    return value


def _one_line(error: ValidationError, given: Mapping[str, Any], written: Mapping[str, str]) -> str:
    first = error.errors()[0]
    message = str(first["msg"]).removeprefix("Value error, ")
    if not first["loc"]:
        return message
    name = str(first["loc"][0])
    field = Settings.model_fields[name]
    shown = "(hidden)" if "Secret" in str(field.annotation) else repr(given.get(name))
    return f"{written[name]}={shown}: {message}. {variable_name(name)} is: {field.description}."
