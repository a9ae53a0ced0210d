"""A server of ours calls the catalogue of another, for a model that wants to."""

import json
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from tests.marketplace.search.conftest import BANDUNG
from tests.mcp_server.conftest import McpShop
from tests.openai_api.responses.mcp.mcp_requests import a_call, items_of
from tests.openai_api.responses.response_requests import create, text_of
from tests.openai_api.test_chat import CHAT, said
from tests.serving import served, settings_with


@pytest.fixture(scope="module")
def asking(mcp_shop: McpShop) -> Iterator[httpx2.Client]:
    """Its echo model writes the call that it is asked for, and then repeats what the tool said."""
    host = mcp_shop.url.removeprefix("http://")
    with (
        served(settings_with(mcp_allowed_hosts=host)) as running,
        httpx2.Client(base_url=running.url, timeout=30) as client,
    ):
        yield client


def catalogue_of(shop: McpShop, **more: Any) -> dict[str, Any]:
    return {
        "type": "mcp",
        "server_label": "catalogue",
        "server_url": shop.mcp_url,
        "require_approval": "never",
        **more,
    }


def test_a_response_searches_the_catalogue(asking: httpx2.Client, mcp_shop: McpShop) -> None:
    wanted = a_call("search_catalog", text="laptop gaming", max_price=12_000_000)
    response = create(asking, wanted, tools=[catalogue_of(mcp_shop)])
    [listed], [call] = items_of(response, "mcp_list_tools"), items_of(response, "mcp_call")
    assert [tool["name"] for tool in listed["tools"]] == ["search_catalog", "lookup_catalog", "compare_products"]
    assert call["status"] == "completed" and text_of(response) == call["output"]
    assert json.loads(call["output"])["products"][0]["name"] == "Laptop Gaming Rinjani"


def test_a_chat_looks_a_product_up_as_its_user(asking: httpx2.Client, mcp_shop: McpShop) -> None:
    token = mcp_shop.token(latitude=BANDUNG[0], longitude=BANDUNG[1])
    tool = catalogue_of(mcp_shop, headers={"Authorization": f"Bearer {token}"}, allowed_tools={"read_only": True})
    answer = asking.post(CHAT, json=said(a_call("lookup_catalog", ids=[mcp_shop.bromo]), tools=[tool]))
    message = answer.json()["choices"][0]["message"]
    [call] = message["mcp_calls"]
    assert call["status"] == "completed" and json.loads(message["content"])["products"][0]["distance_km"] < 1


def test_the_model_reads_what_was_wrong_with_its_arguments(asking: httpx2.Client, mcp_shop: McpShop) -> None:
    response = create(asking, a_call("compare_products", ids=["cheapest"]), tools=[catalogue_of(mcp_shop)])
    [call] = items_of(response, "mcp_call")
    assert call["status"] == "failed" and "ids.0" in text_of(response)


def test_a_stale_token_fails_the_response(asking: httpx2.Client, mcp_shop: McpShop) -> None:
    tool = catalogue_of(mcp_shop, headers={"Authorization": "Bearer stale"})
    answer = asking.post("/v1/responses", json={"model": "m", "input": "x", "tools": [tool]})
    assert answer.status_code == 424 and "no valid access token" in answer.json()["error"]["message"]
