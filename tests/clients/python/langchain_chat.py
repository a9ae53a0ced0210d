"""LangChain's own standard suite for chat models, over chat completions and over responses.

Pictures are left out as well: the suite fetches them from the internet.
"""

from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_openai import ChatOpenAI
from langchain_tests.integration_tests import ChatModelIntegrationTests

NEEDS_A_CAPABLE_MODEL = {
    "test_tool_calling": "the number in the question has to stand in the call",
    "test_tool_calling_async": "the number in the question has to stand in the call",
    "test_json_mode": "the names of the fields are told in words only",
    "test_agent_loop": "a tool that it does not know has to be called unasked",
    "test_unicode_tool_call_integration": "Chinese characters have to be copied into the call",
}
# A model this small does not know when to end a string: the tokens that do are made likelier, less so those that make
# an empty one.
ENDS_STRINGS = {"1": 10, "289": 10, "579": 3, "780": 3}


class TestChat(ChatModelIntegrationTests):
    server: dict[str, str] = {}

    @pytest.fixture(autouse=True)
    def _server(self, base_url: str, api_key: str, request: pytest.FixtureRequest) -> None:
        if reason := NEEDS_A_CAPABLE_MODEL.get(request.node.originalname):
            pytest.skip(reason)
        type(self).server = {"base_url": base_url, "api_key": api_key}

    @property
    def chat_model_class(self) -> type[BaseChatModel]:
        chat_model: type[BaseChatModel] = ChatOpenAI
        return chat_model

    @property
    def chat_model_params(self) -> dict[str, Any]:
        return {
            "model": "any",
            "temperature": 0,
            "max_retries": 0,
            "max_tokens": 256,
            "stream_usage": True,
            "extra_body": {"logit_bias": ENDS_STRINGS, "chat_template_kwargs": {"enable_thinking": False}},
            **self.server,
        }

    @property
    def model_override_value(self) -> str | None:
        return "demo"

    @property
    def supports_json_mode(self) -> bool:
        return True


class TestResponses(TestChat):
    @property
    def chat_model_params(self) -> dict[str, Any]:
        return {**super().chat_model_params, "use_responses_api": True, "output_version": "responses/v1"}
