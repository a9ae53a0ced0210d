"""The tools of `tis chat`: a clock and a calculator, which run in this terminal."""

import ast
import json
import operator
from collections.abc import Callable
from datetime import datetime
from typing import Any

_MAX_EXPRESSION = 200
_MAX_RESULT = 10**18
_OPERATORS: dict[type[ast.AST], Callable[..., float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}


def _tool(name: str, description: str, properties: dict[str, Any]) -> dict[str, Any]:
    parameters = {"type": "object", "properties": properties, "required": list(properties)}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


TOOLS = [
    _tool("current_time", "The date and time where the user is.", {}),
    _tool(
        "calculate",
        "The value of an arithmetic expression with + - * / // % and brackets.",
        {"expression": {"type": "string", "description": "such as (3 + 4) * 2"}},
    ),
]


def run_tool(name: str, arguments: str) -> str:
    """Never raises: what is wrong is said to the model."""
    if name == "current_time":
        return datetime.now().astimezone().isoformat(timespec="seconds")
    if name != "calculate":
        return f"There is no tool {name[:100]}."
    try:
        expression = str(json.loads(arguments)["expression"])
        return f"{calculate(expression):.15g}"
    except (ValueError, KeyError, TypeError, SyntaxError, ZeroDivisionError, OverflowError, RecursionError) as error:
        return f"Cannot calculate this: {error}"


def calculate(expression: str) -> float:
    """Raises ValueError for anything but numbers and the operators above."""
    if len(expression) > _MAX_EXPRESSION:
        raise ValueError("too long")
    return _value(ast.parse(expression.strip(), mode="eval").body)


def _value(node: ast.AST) -> float:
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool):
        value: float = node.value
    elif isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        value = _OPERATORS[type(node.op)](_value(node.left), _value(node.right))
    elif isinstance(node, ast.UnaryOp) and type(node.op) in _OPERATORS:
        value = _OPERATORS[type(node.op)](_value(node.operand))
    else:
        raise ValueError("only numbers, + - * / // % and brackets")
    if abs(value) > _MAX_RESULT:
        raise ValueError("too large")
    return value
