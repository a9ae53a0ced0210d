"""LangChain's own standard suite for chat models, over chat completions and over responses."""

from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_openai import ChatOpenAI
from langchain_tests.integration_tests import ChatModelIntegrationTests

# A model this small does not know when to end a string; the tokens with a quotation mark are made likelier.
ENDS_STRINGS = {"1": 8, "289": 8, "579": 8}


class TestChat(ChatModelIntegrationTests):
    @pytest.fixture(autouse=True)
    def _server(self, base_url: str, api_key: str) -> None:
        type(self).server = {"base_url": base_url, "api_key": api_key}

    server: dict[str, str] = {}

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
