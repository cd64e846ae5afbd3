"""Conversations that the chat templates of the tests are rendered with."""

from __future__ import annotations

from collections.abc import Iterator

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": 'Gets the "weather" <now> & later – für eine Stadt',
            "parameters": {
                "type": "object",
                "properties": {
                    "city": {"type": "string", "description": "The city"},
                    "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
                    "days": {"type": "integer", "default": 3},
                },
                "required": ["city"],
            },
        },
    }
]
SYSTEM = {"role": "system", "content": "You are a pirate. 🏴"}
USER = {"role": "user", "content": "Hi there <b>&\"'"}
ASSISTANT = {"role": "assistant", "content": "<think>\nhm\n</think>\n\nAhoy!"}
SECOND = {"role": "user", "content": "  日本語 ünïcode 😀  \n"}


def call(name: str, arguments: object) -> dict:
    return {
        "id": "call00001",
        "type": "function",
        "function": {"name": name, "arguments": arguments},
    }


CALL = {
    "role": "assistant",
    "content": None,
    "tool_calls": [call("get_weather", {"city": "Zürich", "days": 2, "more": [1.5, None, True]})],
}
RESULT = {
    "role": "tool",
    "tool_call_id": "call00001",
    "name": "get_weather",
    "content": '{"t": 21}',
}
REASONED = {"role": "assistant", "content": "21 degrees.", "reasoning_content": "They ask again."}
CONVERSATIONS = {
    "user": [USER],
    "turns": [SYSTEM, USER, ASSISTANT, SECOND],
    "tool": [SYSTEM, USER, CALL, RESULT, REASONED, SECOND],
    "two users": [USER, SECOND],
    "parts": [{"role": "user", "content": [{"type": "text", "text": "look"}, {"type": "image"}]}],
}


def cases() -> Iterator[tuple[str, dict]]:
    common = {"bos_token": "<s>", "eos_token": "</s>", "now": 1730000000}
    for name, messages in CONVERSATIONS.items():
        case = {"messages": messages, **common}
        yield name, {**case, "add_generation_prompt": True}
        if name in ("turns", "tool"):
            yield f"{name}, tools", {**case, "tools": TOOLS, "extra": {"enable_thinking": False}}
