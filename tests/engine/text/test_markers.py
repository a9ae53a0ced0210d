"""Markers are detected from template and vocabulary, and emitted as characters of their own."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tis.engine.completion import Completion
from tis.engine.models.echo import CharacterTokenizer
from tis.engine.prepared_request import PreparedRequest
from tis.engine.sampling.params import SamplingParams
from tis.engine.text.markers import (
    MARKERS,
    REASONING_MARKERS,
    ModelMarkers,
    ToolFormat,
    detect_markers,
    join_markers,
    split_markers,
)

THINK = {"<think>": 1, "</think>": 2}


@pytest.mark.parametrize(
    ("template", "tool_format"),
    [
        ("... {{ '<tool_call>' }} ...", "hermes"),
        ("... '<|python_tag|>' ...", "llama"),
        ("... [TOOL_CALLS] ...", "mistral"),
        ("{{ messages }}", "json"),
        ("", "json"),
    ],
)
def test_the_tool_format_is_detected_from_the_template(template: str, tool_format: ToolFormat) -> None:
    markers = detect_markers(template, {})
    assert (markers.tool_format, markers.reasoning) == (tool_format, None)
    assert markers.with_format("llama").tool_format == "llama" and markers.with_format(None) == markers


def test_reasoning_markers_are_detected_from_template_or_vocabulary() -> None:
    assert detect_markers("content.split('</think>')", {}).reasoning == ("<think>", "</think>")
    assert detect_markers("", THINK).reasoning == ("<think>", "</think>")
    assert detect_markers("[THINK] and [/THINK]", {}).reasoning == ("[THINK]", "[/THINK]")


def test_visible_markers_are_those_of_the_model() -> None:
    markers = detect_markers(
        "<tool_call>", {**THINK, "<tool_call>": 3, "</tool_call>": 4, "[TOOL_CALLS]": 5, "other": 6}
    )
    assert markers.visible(with_tool_calls=False) == THINK
    assert markers.visible(with_tool_calls=True) == {**THINK, "<tool_call>": 3, "</tool_call>": 4}


@pytest.mark.parametrize(
    ("prompt_ids", "opens"),
    [([9, 1, 8], True), ([9, 1], True), ([1, 2, 9], False), ([9, 8], False), ([], False), ([1, 7, 9], False)],
)
def test_a_prompt_may_end_within_reasoning(prompt_ids: list[int], opens: bool) -> None:
    markers = ModelMarkers(REASONING_MARKERS[0], token_ids=THINK)
    assert markers.starts_in_reasoning(prompt_ids, {7}, lambda ids: "") is opens
    assert not ModelMarkers().starts_in_reasoning(prompt_ids, {7}, lambda ids: "")


def test_a_marker_that_is_not_a_token_is_found_in_the_text() -> None:
    markers = ModelMarkers(REASONING_MARKERS[0])
    assert markers.starts_in_reasoning([1], (), lambda ids: "assistant: <think>\n")
    assert not markers.starts_in_reasoning([1], (), lambda ids: "assistant: <think> no")


def text_of(completion: Completion, text: str) -> str:
    pieces = [completion.accept(ord(character)) for character in text if not completion.is_finished]
    return "".join(piece.text for piece in pieces if piece)


def prepared(**sampling: object) -> PreparedRequest:
    params = SamplingParams(**sampling)  # type: ignore[arg-type]
    return PreparedRequest("m", "r", CharacterTokenizer(), [1], params, seed=1, visible_markers={"<think>": ord("T")})


def test_a_marker_token_is_named_beside_the_text_which_has_only_the_one_that_is_spelled_out() -> None:
    completion = Completion(0, prepared())
    pieces = [piece for character in "aTb<think>" if (piece := completion.accept(ord(character)))]
    assert "".join(piece.text for piece in pieces) == "ab<think>"
    assert [(piece.text, piece.markers) for piece in pieces if piece.markers] == [("", ((0, "<think>"),))]


@given(st.text(max_size=8), st.lists(st.tuples(st.integers(0, 8), st.sampled_from(MARKERS)), max_size=4))
def test_markers_are_joined_to_a_text_and_split_from_it(text: str, given_markers: list[tuple[int, str]]) -> None:
    placed = tuple(sorted(((min(at, len(text)), marker) for at, marker in given_markers), key=lambda one: one[0]))
    joined = join_markers(text, placed)
    assert len(joined) == len(text) + len(placed) and split_markers(joined) == (text, placed)


@pytest.mark.parametrize("stop", ["b<think>c", "<think>"])
def test_a_stop_string_matches_a_marker_token_and_its_spelling(stop: str) -> None:
    assert text_of(Completion(0, prepared(stop=(stop,))), "abTcd") in ("a", "ab")
    assert text_of(Completion(0, prepared(stop=(stop,))), "ab<think>cd") in ("a", "ab")
