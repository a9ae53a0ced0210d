"""The server as `main.py` runs it, with a model that hears tones: `python -m tests.audio_api.tones_server`."""

import uvicorn

from tests.audio_api.tones import TonesEngine
from tis.app import create_app
from tis.arguments.limits import transport_limits_of
from tis.http.transport.protocol import guarded_protocol
from tis.settings import Settings

if __name__ == "__main__":
    settings = Settings.from_env(env_file=None)
    uvicorn.run(
        create_app(settings, make_engine=TonesEngine),
        host=settings.host,
        port=settings.port,
        http=guarded_protocol(transport_limits_of(settings)),
        log_level="warning",
        access_log=False,
    )
