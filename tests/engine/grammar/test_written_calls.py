"""Reading back the calls of a finished answer: text that only looks like a call is none."""

from tis.engine.grammar.written_calls import written_calls

STRING = {"type": "object", "properties": {"code": {"type": "string"}}}
SCHEMAS = {"write": STRING, "look": STRING}


def test_a_name_that_reasoning_mentions_is_no_call() -> None:
    text = (
        "<|channel|>analysis<|message|>I could send to=functions.look now<|end|>"
        '<|start|>assistant<|channel|>commentary to=functions.write <|constrain|>json<|message|>{"code": "x"}'
    )
    assert list(written_calls("harmony", text, SCHEMAS)) == [("write", {"code": "x"})]
    final = (
        '<|channel|>analysis<|message|>to=functions.look?<|end|><|start|>assistant<|channel|>final<|message|>{"a": 1}'
    )
    assert list(written_calls("harmony", final, SCHEMAS)) == []


def test_letters_of_a_marker_within_an_argument_are_text() -> None:
    text = "write\n<arg_key>code</arg_key>\n<arg_value>say <tool_call> twice</arg_value>\n</tool_call>"
    assert list(written_calls("glm", text, SCHEMAS)) == [("write", {"code": "say <tool_call> twice"})]
    spelled = "<tool_call>write\n<arg_key>code</arg_key>\n<arg_value>x</arg_value>\n</tool_call>"
    assert list(written_calls("glm", spelled * 2, SCHEMAS)) == [("write", {"code": "x"})] * 2


def test_the_end_of_a_function_within_an_argument_is_text() -> None:
    call = "<function=write>\n<parameter=code>\na </function> b\n</parameter>\n</function>\n</tool_call>"
    assert list(written_calls("hermes", call, SCHEMAS, is_xml=True)) == [("write", {"code": "a </function> b"})]
    both = f"<tool_call>\n{call}\n<tool_call>\n{call}"
    assert len(list(written_calls("hermes", both, SCHEMAS, is_xml=True))) == 2
