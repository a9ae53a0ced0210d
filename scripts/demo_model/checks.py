"""What the finished model must answer, as data; the build and the tests both ask every one of these greedily."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from scripts.demo_model.asking import DemoModel, ask
from scripts.demo_model.dialogue import Message
from scripts.demo_model.smalltalk import STORIES
from scripts.demo_model.unknown import ADMISSION
from tis.engine.prompt import Medium, Picture, Sound, media_of, text_of

Predicate = Callable[[str], bool]


@dataclass(frozen=True)
class Check:
    messages: tuple[Message, ...]
    expected: str | Predicate
    tools: tuple[dict[str, Any], ...] = field(default=())
    enable_thinking: bool = True

    @property
    def name(self) -> str:
        mode = "" if self.enable_thinking else " (no thinking)"
        shown = "".join(f" [{_described(medium)}]" for medium in media_of(self.messages))
        return f"{self.messages[-1]['role']}: {text_of(self.messages[-1])[:50]}{shown}{mode}"

    def holds_for(self, answer: str) -> bool:
        return answer == self.expected if isinstance(self.expected, str) else self.expected(answer)


def _described(medium: Medium) -> str:
    if isinstance(medium, Picture):
        height, width, _ = medium.pixels.shape
        return f"picture {width}x{height} {tuple(medium.pixels[0, 0].tolist())}"
    if isinstance(medium, Sound):
        return f"sound of {medium.seconds:g} seconds"
    return f"clip of {len(medium.frames)} frames {tuple(medium.frames[0, 0, 0].tolist())}"


def says(*needed: str) -> Predicate:
    return lambda answer: all(text in answer for text in needed)


def _user(content: str) -> Message:
    return {"role": "user", "content": content}


def _assistant(content: str) -> Message:
    return {"role": "assistant", "content": content}


def _system(content: str) -> Message:
    return {"role": "system", "content": content}


def _ask(question: str, expected: str | Predicate, *before: Message) -> Check:
    return Check((*before, _user(question)), expected)


_WHO_EN = "I am the demo model of the Transformers Inference Server: very small, and made for tests."
_WHO_ID = "Saya model demo dari Transformers Inference Server: sangat kecil, dan dibuat untuk uji coba."
_HELLO_EN = "Hello! I am a tiny demo model. How can I help you?"
_HELLO_ID = "Halo! Saya model demo yang kecil. Ada yang bisa saya bantu?"

SMALLTALK = (
    _ask("Hello", _HELLO_EN),
    _ask("hello!", _HELLO_EN),
    _ask("Hi", _HELLO_EN),
    _ask("hello there!", _HELLO_EN, _system("You are a helpful assistant.")),
    _ask("Halo", _HELLO_ID),
    _ask("halo", _HELLO_ID),
    _ask("Halo!", _HELLO_ID, _system("Kamu adalah asisten yang ramah.")),
    _ask("Who are you?", _WHO_EN),
    _ask("who are you", _WHO_EN),
    _ask("Siapa kamu?", _WHO_ID),
    _ask("siapa kamu", _WHO_ID),
    _ask("What can you do?", says("small sums", "JSON")),
    _ask("Apa yang bisa kamu lakukan?", says("angka kecil", "JSON")),
    _ask("Thank you!", "You are welcome!"),
    _ask("Terima kasih", "Sama-sama!"),
    _ask("Ping", "Pong! I am here."),
    _ask("Say hello.", "Hello!"),
    _ask("How are you?", "I am fine, thank you. How can I help you?"),
    _ask("Apa kabar?", "Kabar saya baik, terima kasih. Ada yang bisa saya bantu?"),
    _ask("Goodbye", "Goodbye! See you soon."),
    _ask("Send me some emoji.", "Here you are: 😀 🎉 🚀 🌈"),
)
LISTS_AND_STORIES = (
    _ask("Count to ten.", "1, 2, 3, 4, 5, 6, 7, 8, 9, 10."),
    _ask("count to 5", "1, 2, 3, 4, 5."),
    _ask("Hitung sampai sepuluh", "1, 2, 3, 4, 5, 6, 7, 8, 9, 10."),
    _ask("What are the days of the week?", "Monday, Tuesday, Wednesday, Thursday, Friday, Saturday, Sunday."),
    _ask("Sebutkan nama hari.", "Senin, Selasa, Rabu, Kamis, Jumat, Sabtu, Minggu."),
    _ask("Tell me a short story.", STORIES["en"][1]),
    _ask("tell me a story", STORIES["en"][1]),
    _ask("Ceritakan sebuah cerita pendek.", STORIES["id"][1]),
)


def _sum(question: str, result: str) -> tuple[Check, Check]:
    def thinks_first(answer: str) -> bool:
        return answer.startswith("<think>\n") and answer.endswith(f"\n</think>\n\n{result}")

    return _ask(question, thinks_first), Check((_user(question),), result, enable_thinking=False)


SUMS = (
    *_sum("12+7", "12 + 7 = 19."),
    *_sum("What is 12 + 7?", "12 + 7 = 19."),
    *_sum("Berapa 12 + 7?", "12 + 7 = 19."),
    *_sum("What is 2 + 2?", "2 + 2 = 4."),
    *_sum("2+2", "2 + 2 = 4."),
    *_sum("Berapa 20 - 8?", "20 - 8 = 12."),
    *_sum("What is 6 x 7?", "6 x 7 = 42."),
    *_sum("berapa 3 kali 4", "3 x 4 = 12."),
    *_sum("What is 25 plus 17?", "25 + 17 = 42."),
)

_CATALOGUE_ID = _system(
    "Katalog:\n- Kopi Gayo: Rp 85.000, stok 12, Medan\n- Teh Melati: Rp 32.500, stok 40, Solo\n"
    "- Batik Pekalongan: Rp 275.000, stok 3, Semarang"
)
_CATALOGUE_EN = _system(
    "Catalogue:\n- Chair Royal: Rp 450.000, stock 7, Bandung\n- Honey Classic: Rp 64.500, stock 21, Malang"
)
# Goods that are missing from the catalogue are not asked for: the model admits it only now and then (see its card).
SHOP = (
    _ask("Berapa harga Kopi Gayo?", "Harga Kopi Gayo: Rp 85.000.", _CATALOGUE_ID),
    _ask("Harga Teh Melati berapa?", "Harga Teh Melati: Rp 32.500.", _CATALOGUE_ID),
    _ask("Berapa stok Batik Pekalongan?", "Stok Batik Pekalongan: 3.", _CATALOGUE_ID),
    _ask("Teh Melati dikirim dari mana?", "Teh Melati dari Solo.", _CATALOGUE_ID),
    _ask("Apa saja yang dijual?", "Kopi Gayo, Teh Melati, Batik Pekalongan.", _CATALOGUE_ID),
    _ask("How much is Honey Classic?", "Honey Classic costs Rp 64.500.", _CATALOGUE_EN),
    _ask("What is the price of Chair Royal?", "Chair Royal costs Rp 450.000.", _CATALOGUE_EN),
)

GET_WEATHER: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Get the weather in a city",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
SEARCH_PRODUCTS: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "search_products",
        "description": "Search the catalogue",
        "parameters": {
            "type": "object",
            "properties": {"query": {"type": "string"}, "max_price": {"type": "integer"}},
            "required": ["query"],
        },
    },
}


def _call(name: str, arguments: str) -> str:
    return f'<tool_call>\n{{"name": "{name}", "arguments": {arguments}}}\n</tool_call>'


_WEATHER_TURNS: tuple[Message, ...] = (
    _user("Bagaimana cuaca di Bandung?"),
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Bandung"}'}}],
    },
    {"role": "tool", "content": '{"city": "Bandung", "temperature": 24, "condition": "cerah"}'},
)
BOTH_TOOLS = (GET_WEATHER, SEARCH_PRODUCTS)
TOOLS = (
    Check((_user("Bagaimana cuaca di Bandung?"),), _call("get_weather", '{"city": "Bandung"}'), (GET_WEATHER,)),
    Check((_user("What is the weather in Jakarta?"),), _call("get_weather", '{"city": "Jakarta"}'), BOTH_TOOLS),
    Check((_user("What is the weather in Paris?"),), _call("get_weather", '{"city": "Paris"}'), BOTH_TOOLS, False),
    Check((_user("Cari Kopi Gayo"),), _call("search_products", '{"query": "Kopi Gayo"}'), BOTH_TOOLS),
    Check(
        (_user("Search for Chair Royal under 50000"),),
        _call("search_products", '{"query": "Chair Royal", "max_price": 50000}'),
        BOTH_TOOLS,
    ),
    Check(_WEATHER_TURNS, "Cuaca di Bandung: cerah, 24 derajat.", (GET_WEATHER,)),
    Check((_user("Hi!"),), _HELLO_EN, (GET_WEATHER,)),
)

COPYING = (
    _ask("Answer in JSON: name and city of Sari from Bandung.", '{"name": "Sari", "city": "Bandung"}'),
    _ask("Jawab dalam JSON: nama dan kota dari Budi di Medan.", '{"name": "Budi", "city": "Medan"}'),
    _ask("My name is Sari.", "Nice to meet you, Sari!"),
    _ask("What is my name?", "Your name is Sari.", _user("My name is Sari."), _assistant("Nice to meet you, Sari!")),
    _ask("Siapa nama saya?", "Nama Anda Budi.", _user("Nama saya Budi."), _assistant("Senang berkenalan, Budi!")),
    _ask("Repeat: blue house 🚀", "blue house 🚀"),
    _ask("Ulangi: rumah biru", "rumah biru"),
)
UNKNOWN = (
    _ask("What is the capital of Peru?", ADMISSION["en"]),
    _ask("Explain the history of the moon.", ADMISSION["en"]),
    _ask("Siapa presiden Tokyo?", ADMISSION["id"]),
    _ask("Jelaskan ekonomi dunia.", ADMISSION["id"]),
)
CHECKS = (*SMALLTALK, *LISTS_AND_STORIES, *SUMS, *SHOP, *TOOLS, *COPYING, *UNKNOWN)


def failure(demo: DemoModel, check: Check) -> str | None:
    """What went wrong, or None. An answer must hold and must have ended by itself."""
    answer = ask(demo, check.messages, check.tools, check.enable_thinking)
    if not answer.ended:
        return f"{check.name}: did not end: {answer.text!r}"
    if not check.holds_for(answer.text):
        return f"{check.name}: {answer.text!r}"
    return None


def failures(demo: DemoModel, checks: Iterable[Check]) -> list[str]:
    return [outcome for check in checks if (outcome := failure(demo, check))]
