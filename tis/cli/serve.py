"""`tis serve`: makes the app from the settings, runs it with uvicorn, and shows progress and banner."""

import argparse
import logging
import os
import signal
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from dotenv import dotenv_values

from tis.app import create_app
from tis.arguments.limits import transport_limits_of
from tis.cli.banner import Banner, url_of
from tis.cli.ctrl_c import raise_keyboard_interrupt
from tis.cli.flags import parsed_flags
from tis.cli.restart import kill_for_a_show
from tis.cli.terminal import Terminal, detect_terminal
from tis.cli.tls import CertificateError, Certificates
from tis.database.errors import DatabaseUrlError
from tis.engine.models.catalogue import CatalogueError
from tis.http.transport.descriptors import backlog_within, descriptor_limit, raise_descriptor_limit
from tis.http.transport.limits import LOOPBACK
from tis.observability.collector import use_own_process
from tis.observability.load_log import LoadLog
from tis.observability.logs import configure_logs
from tis.setting_types import SettingsError
from tis.settings import Settings

if TYPE_CHECKING:
    from fastapi import FastAPI

log = logging.getLogger("tis.cli")

DESCRIPTION = """Serve a model behind the OpenAI API.

Each flag is a setting. A flag wins over the environment, the environment over the .env file in this folder.
Relative paths mean this folder."""


def run(parsed: argparse.Namespace, kill: Callable[[], None] | None = None) -> None:
    """`tis serve`: loads the model at once, unless EAGER_LOAD_MODEL or --no-eager says otherwise."""
    try:
        settings = Settings.from_env(flags=parsed_flags(parsed))
    except SettingsError as error:
        sys.exit(f"Cannot start: {error}")
    if not settings.set_explicitly("eager_load_model"):
        settings = settings.model_copy(update={"eager_load_model": True})
    serve(settings, kill)


def run_as_child(parsed: argparse.Namespace) -> None:
    """The same, under a parent that starts the server again."""
    run(parsed, kill_for_a_show)


def run_lazily() -> None:
    """`python main.py`: loads the model at the first request, unless EAGER_LOAD_MODEL is set."""
    try:
        settings = Settings.from_env()
    except SettingsError as error:
        sys.exit(f"Cannot start: {error}")
    serve(settings)


def app_of_environment() -> "FastAPI":
    """`uvicorn main:app`."""
    prepare_process()
    try:
        app = create_app(Settings.from_env())
    except (SettingsError, CatalogueError, DatabaseUrlError) as error:
        sys.exit(f"Cannot start: {error}")
    log.warning(
        "this start sets no limits of headers, their arrival and connections (MAX_HEADER_KB and so on): "
        "use `tis serve` or `python main.py`, or put a proxy with such limits in front"
    )
    return app


def prepare_process() -> None:
    # OpenMP reads these when torch is imported. Threads that spin while they wait take the cores from the event loop
    # and from each other; threads that sleep at once need a third longer for steps of few tokens (decision 0006).
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
        os.environ.setdefault("GOMP_SPINCOUNT", "2000")
    use_own_process()
    _pass_on_telemetry_variables()
    # FastAPI ignores this one for the time of a call, which another thread that imports something may undo.
    warnings.filterwarnings("ignore", message="The 'alias' attribute with value")


def _pass_on_telemetry_variables() -> None:
    """OpenTelemetry's SDK reads the environment alone: what .env has for it goes there."""
    with suppress(OSError, UnicodeDecodeError):  # Settings say what is wrong with the file
        for name, value in dotenv_values(".env").items():
            if name.startswith("OTEL_") and value:
                os.environ.setdefault(name, value)


def serve(settings: Settings, kill: Callable[[], None] | None = None) -> None:
    """`kill` is what the button of a demo does."""
    import uvicorn

    from tis.http.transport.protocol import guarded_protocol

    raise_descriptor_limit()
    prepare_process()
    terminal = detect_terminal()
    configure_logs(settings.log_level, terminal, settings.log_format)
    startup = Startup(settings, terminal)
    try:
        app = create_app(settings, watch=startup, kill=kill)
        certificates = Certificates.of(settings)
    except (SettingsError, CatalogueError, DatabaseUrlError, CertificateError) as error:
        sys.exit(f"Cannot start: {error}")
    config = uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        http=guarded_protocol(transport_limits_of(settings)),
        ws="none",
        backlog=backlog_within(descriptor_limit()),
        # None: what FORWARDED_ALLOW_IPS says, else this computer.
        forwarded_allow_ips=[*LOOPBACK, *settings.trusted_proxies] if settings.trusted_proxies else None,
        log_config=None,  # uvicorn logs through our handler
        log_level="debug" if settings.log_level == "debug" else "warning",
        access_log=False,  # RequestLogMiddleware writes the line, with the request id and without the query
        ssl_certfile=settings.ssl_certfile,
        ssl_keyfile=settings.ssl_keyfile,
        timeout_graceful_shutdown=5,  # seconds for the last bytes; tis/shutdown.py has drained the answers before
    )

    class AnnouncingServer(uvicorn.Server):
        async def startup(self, *arguments: Any, **options: Any) -> None:
            if certificates and config.ssl:
                certificates.follow(config.ssl)
            await super().startup(*arguments, **options)
            if self.started:
                startup.on_listening(self, app)

    # uvicorn raises the signal again after its shutdown; ending at SIGTERM is a success.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(0))
    raise_keyboard_interrupt()
    try:
        AnnouncingServer(config).run()
    except KeyboardInterrupt:
        pass
    finally:
        if terminal:
            terminal.hide_bar()
    if startup.failure:
        sys.exit(startup.failure)


class Startup:
    """Shows the progress of loads, then the banner. Stops the server if an eager load fails."""

    def __init__(self, settings: Settings, terminal: Terminal | None) -> None:
        self._settings = settings
        self._terminal = terminal
        self._log = LoadLog()
        self._server: Any = None
        self._app: FastAPI | None = None
        self._banner_shown = False
        self._postponed: set[str] = set()
        self.failure = ""

    def on_listening(self, server: Any, app: "FastAPI") -> None:
        self._server, self._app = server, app
        self._end_on_failure()
        self._show_banner_when_ready()
        if not (self._banner_shown or self.failure):
            self._say(f"Listening on {url_of(self._settings)} while models are loaded")

    def progress(self, model_id: str, stage: str, share: float | None) -> None:
        if self._terminal:
            self._terminal.show_bar(f"{model_id}: {stage}", share)
        else:
            self._log.progress(model_id, stage, share)

    def loaded(self, model_id: str, seconds: float) -> None:
        if self._terminal:
            self._terminal.hide_bar()
        self._log.loaded(model_id, seconds)
        self._show_banner_when_ready()

    def postponed(self, model_id: str, reason: str) -> None:
        if self._terminal:
            self._terminal.hide_bar()
        self._log.postponed(model_id, reason)
        self._postponed.add(model_id)
        self._show_banner_when_ready()

    def failed(self, model_id: str, reason: str, pause_seconds: float) -> None:
        if self._terminal:
            self._terminal.hide_bar()
        if self._settings.eager_load_model and not self._banner_shown:
            why = reason.removeprefix("LoadFailed: ")
            self.failure = self.failure or f"Cannot start: {model_id} could not be loaded: {why}"
            self._end_on_failure()
        else:
            self._log.failed(model_id, reason, pause_seconds)

    def _say(self, line: str) -> None:
        if self._terminal:
            self._terminal.print(line)
        else:
            log.info("%s", line)

    def _end_on_failure(self) -> None:
        if self.failure and self._server:
            self._server.should_exit = True

    def _show_banner_when_ready(self) -> None:
        if not self._app:
            return
        models = self._app.state.engine.statuses
        waiting = [model.id for model in models if model.state != "ready" and model.id not in self._postponed]
        is_waiting = self._settings.eager_load_model and bool(waiting)
        if self._banner_shown or is_waiting or self.failure:
            return
        self._banner_shown = True
        banner = Banner(self._settings, models)
        if self._terminal:
            self._terminal.print("\n".join(banner.lines()))
            return
        for line in banner.lines():
            log.info("%s", line.strip())
        if banner.warning:
            log.warning("%s", banner.warning)
