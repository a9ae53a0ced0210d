"""Example answers of /version, /props and /slots for /docs."""

from tis.openai_api.wire.completion_examples import NO_MODEL
from tis.openai_api.wire.examples import Responses, ok_example

VERSION_RESPONSES: Responses = {200: ok_example({"version": "1.0.0"})}
PROPS_RESPONSES: Responses = {
    200: ok_example(
        {
            "default_generation_settings": {
                "n_ctx": 32768,
                "params": {"temperature": 0.7, "top_k": 0, "top_p": 1.0, "min_p": 0.0, "repeat_penalty": 1.0},
            },
            "total_slots": 32,
            "model_alias": "demo",
            "model_path": "demo",
            "chat_template": "{% for message in messages %}...{% endfor %}",
            "modalities": {"vision": False, "video": False, "audio": False},
            "build_info": "transformers-inference-server 1.0.0",
        }
    ),
    404: NO_MODEL,
}
SLOTS_RESPONSES: Responses = {
    200: ok_example([{"id": 0, "n_ctx": 32768, "speculative": False, "is_processing": False}]),
    404: NO_MODEL,
}
