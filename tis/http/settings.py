"""Settings of access: keys, web pages, size of bodies."""

from typing import Annotated

from pydantic import BaseModel, BeforeValidator, Field, SecretStr

from tis.http.hosts import ALL_HOSTS, host_name
from tis.http.origins import LOCAL_HOSTS, LOCAL_ORIGINS
from tis.http.transport.limits import is_network
from tis.setting_types import CommaSeparated, split_commas

_MIN_SECRET_CHARS = 32


def _split_keys(value: object) -> object:
    keys = split_commas(value)
    if value and not keys:
        raise ValueError("there is no key in it; leave it empty for a server that is open to all")
    return keys


SecretList = Annotated[tuple[SecretStr, ...], BeforeValidator(_split_keys)]


def _split_secrets(value: object) -> object:
    secrets = split_commas(value)
    if isinstance(secrets, tuple) and any(len(one) < _MIN_SECRET_CHARS for one in secrets):
        raise ValueError(f"a secret has {_MIN_SECRET_CHARS} characters or more")
    return secrets


SigningSecrets = Annotated[tuple[SecretStr, ...], BeforeValidator(_split_secrets)]


def _split_hosts(value: object) -> object:
    hosts = split_commas(value)
    for host in hosts if isinstance(hosts, tuple) else ():
        if host != ALL_HOSTS and host_name(host) is None:
            raise ValueError(f"{host!r} is no host name; write it without https:// and path")
    return hosts


HostList = Annotated[tuple[str, ...], BeforeValidator(_split_hosts)]


def _split_networks(value: object) -> object:
    networks = split_commas(value)
    for network in networks if isinstance(networks, tuple) else ():
        if not is_network(network):
            raise ValueError(f"{network!r} is no address or network; write 10.0.0.7 or 10.0.0.0/24")
    return networks


NetworkList = Annotated[tuple[str, ...], BeforeValidator(_split_networks)]


class CallLimitSettings(BaseModel):
    """Limits of calls: for each API key, or for each client address without keys; 0 = no limit"""

    requests_per_minute: int = Field(0, ge=0, description="calls (POST) in a minute; more get a 429")
    tokens_per_minute: int = Field(0, ge=0, description="tokens of prompts and answers in a minute")
    tokens_per_day: int = Field(0, ge=0, description="tokens of prompts and answers in 24 hours")
    running_requests: int = Field(0, ge=0, description="calls that may be received or answered at once")


class AccessSettings(BaseModel):
    """Access"""

    api_keys: SecretList = Field(
        (), description="keys, separated by commas, for all but probes and the marketplace; empty = open"
    )
    api_keys_file: str | None = Field(
        None,
        min_length=1,
        description="YAML or JSON file with more keys, their names, models, limits and expiry (docs/keys.md); "
        "read again when it changes",
    )
    metrics_public: bool = Field(False, description="/metrics needs no key")
    read_token_secret: SigningSecrets = Field(
        (),
        description="what signs read tokens, at all servers alike; 32 characters or more; of several, separated "
        "by commas, the first signs and all are valid; unset: random, and shared where SESSION_STORE=redis",
    )
    admin_key: SecretStr | None = Field(
        None,
        min_length=1,
        description="key for loading and unloading models over HTTP; without it, programs on this computer may",
    )
    cors_origins: CommaSeparated = Field(
        (LOCAL_ORIGINS,),
        description="origins of web pages that may call: `local` = localhost on any port and desktop apps "
        "(app://, tauri://, vscode-webview://), `*` = all",
    )
    allowed_hosts: HostList = Field(
        LOCAL_HOSTS,
        description="names (Host header) under which a server on a loopback HOST answers, besides those of "
        "CORS_ORIGINS; `*` = all. /v1/* answers under any name if there are API keys",
    )
    max_body_mb: float = Field(64, gt=0, description="largest request body in MiB; more is a 413")
    max_header_kb: int = Field(32, ge=1, le=1024, description="request line and headers in KiB; more is a 431")
    max_headers: int = Field(100, ge=1, le=10_000, description="headers of a request; more is a 431")
    header_timeout_seconds: float = Field(
        20, gt=0, description="how long the headers of a request may take to arrive; then a 408"
    )
    keep_alive_seconds: float = Field(
        75,
        gt=0,
        description="how long a connection may be idle between two requests; longer than proxies keep theirs, which "
        "is often 60: else they send into one that closes",
    )
    body_timeout_seconds: float = Field(
        30,
        gt=0,
        description="how long a body may take to arrive, with one second more for every 8 KiB of it; then a 408",
    )
    max_connections_per_address: int = Field(
        256,
        ge=0,
        description="open connections from one address (of IPv6, a /64), but for this computer and TRUSTED_PROXIES; "
        "0 = any number",
    )
    trusted_proxies: NetworkList = Field(
        (),
        description="addresses or networks of proxies in front, separated by commas: their connections are not "
        "counted, and their X-Forwarded-For names the client",
    )
    max_text_mb: float = Field(
        4, gt=0, description="largest body below /v1 and /ollama in MiB without its images and videos; more is a 413"
    )
