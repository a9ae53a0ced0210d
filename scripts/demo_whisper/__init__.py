"""Makes models/demo-whisper from forty spoken sentences: `build_demo_whisper.py`."""
