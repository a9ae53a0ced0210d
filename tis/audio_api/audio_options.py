"""What the routes of sound need of the settings and the app."""

from dataclasses import dataclass

from tis.audio_api.running_files import RunningFiles


@dataclass(frozen=True)
class AudioOptions:
    max_file_bytes: int
    windows_at_once: int
    max_speech_seconds: float
    slow_reader_seconds: float
    running_files: RunningFiles
