"""The mixed text that tokenizers are compared on, from a seed: English, code, Chinese, Arabic,
emoji, combining marks, white space of all kinds, special tokens' spellings, random bytes as text.

    python3 tools/golden/tokenizer_text.py --bytes 1000000 --seed 1 --out mixed.txt
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable
from pathlib import Path

WORDS = (
    "the of and to in is it you that he was for on are with as his they be at one have this from or had by "
    "hot but some what there we can out other were all your when up use word how said an each she which do "
    "their time if will way about many then them would write like so these her long make thing see him two "
    "has look more day could go come did my sound no most number who over know water than call first people "
    "I'm you're it's we'll they've he'd don't CAN'T It'S tokenizer extraordinary internationalization "
    "unbelievable Schadenfreude naïve café résumé Ünïcödé łódź straße ΑΒΓ αβγ Привет мир"
).split()
CODE = (
    "def f(x: int) -> int:\n    return x ** 2 + 1\n\n",
    "for (size_t i = 0; i < n; ++i) {\n\tsum += a[i] * b[i];\n}\n",
    '#include <vector>\nint main() { std::vector<int> v{1,2,3}; return v[0]; }\r\n',
    'SELECT id, name FROM users WHERE age >= 18 AND name LIKE "%ab_c%";\n',
    '{"key": [1, 2.5e-10, null, true], "nested": {"a": "\\u00e9"}}\n',
    "<div class='a b'>\n  <p>text &amp; more</p>\n</div>\n",
    "if __name__ == '__main__':\n        print(f\"{x!r:>10}\")  # comment\n",
    "let r = &mut self.inner?; // rust => |x| x.map(|y| y + 1)\n",
    "https://example.org/a/b?c=d&e=%20f#g user@example.org 192.168.0.1 /usr/lib/x86_64-linux-gnu\n",
)
EMOJI = "😀😂🥰👍🏽👩‍👩‍👧‍👦🇩🇪🏳️‍🌈🚀✨❤️🔥💯🤷🏾‍♂️☃️♠️"
ARABIC = "السلام عليكم ورحمة الله وبركاته كيف حالك اليوم إنّ اللّغة العربيّة جميلة ١٢٣٤٥"
OTHER = "नमस्ते दुनिया สวัสดีชาวโลก שלום עולם こんにちは世界 カタカナ ㄅㄆㄇ 안녕하세요 ພາສາລາວ ქართული አማርኛ"
MARKS = ["\u00e9", "e\u0301", "\u0041\u030a", "\u1e9b\u0323", "q\u0307\u0323", "\u0344", "\u212b", "\uac01", "\u1100\u1161\u11a8",
         "\u0915\u093c", "\u0f71\u0f72", "ﬁ", "ſ", "'ſ", "\u212a", "ß", "İ", "ı", "Ⅷ", "²", "½", "٣", "௧", "ᛮ"]
SPACES = [" ", "  ", "    ", "\t", "\n", "\n\n", "\r\n", " \n ", "\u00a0", "\u3000", "\u2003", "\u200b", "\u0085", "\x0b",
          "\u2028", "        ", "\n\n\n   ", "\t\t", " \t "]
SPECIAL = ["<|endoftext|>", "<s>", "</s>", " </s>", "<unk>", "<|im_start|>", "<|im_end|>", "<|begin_of_text|>",
           "<|eot_id|>", "<|start_header_id|>user<|end_header_id|>\n\n", "[INST]", "<0x0A>", "▁", "▁▁", "<|im_", "<tool_call>"]


def english(rng: random.Random) -> str:
    words = [rng.choice(WORDS) for _ in range(rng.randint(3, 40))]
    words = [w.upper() if rng.random() < 0.03 else w.capitalize() if rng.random() < 0.1 else w for w in words]
    return " ".join(words) + rng.choice([". ", "? ", "! ", ", ", "... ", ".\n", "\n\n", '" ', ") (", "; "])


def chinese(rng: random.Random) -> str:
    chars = [chr(rng.randint(0x4E00, 0x9FA5)) for _ in range(rng.randint(2, 30))]
    return "".join(chars) + rng.choice("，。！？；：、\n ")


def slices(source: str) -> Callable[[random.Random], str]:
    def take(rng: random.Random) -> str:
        start = rng.randrange(len(source))
        return source[start:start + rng.randint(1, 30)]
    return take


def number(rng: random.Random) -> str:
    text = str(rng.randrange(10 ** rng.randint(1, 14)))
    return text + rng.choice(["", " ", ".", ",", "%", "€ ", ".5 ", "e-3 ", "-", "/"])


def random_bytes(rng: random.Random) -> str:
    return rng.randbytes(rng.randint(1, 40)).decode("utf-8", errors="replace")


def random_latin(rng: random.Random) -> str:
    return rng.randbytes(rng.randint(1, 40)).decode("latin-1")


def random_chars(rng: random.Random) -> str:
    def one() -> str:
        code = rng.randrange(0x110000) if rng.random() < 0.3 else rng.randrange(0x3000)
        return "" if 0xD800 <= code < 0xE000 else chr(code)
    return "".join(one() for _ in range(rng.randint(1, 20)))


def run(rng: random.Random) -> str:
    return rng.choice(["a", "-", "=", "1", " ", "\n", "的", "é", "ab", "!?", "😀"]) * rng.randint(2, 80)


def mixed_text(num_bytes: int, seed: int, unassigned: bool = True) -> str:
    """At least num_bytes of UTF-8. Without `unassigned`, no random code points: what a Unicode
    version may change stays out."""
    rng = random.Random(seed)
    makers: list[tuple[int, Callable[[random.Random], str]]] = [
        (30, english),
        (12, lambda r: r.choice(CODE)),
        (8, chinese),
        (6, slices(ARABIC)),
        (5, slices(OTHER)),
        (5, slices(EMOJI)),
        (6, number),
        (6, lambda r: r.choice(SPACES)),
        (3, lambda r: r.choice(SPECIAL)),
        (3, lambda r: r.choice(MARKS)),
        (3, random_bytes),
        (3, random_latin),
        (2 if unassigned else 0, random_chars),
        (1, run),
    ]
    functions = [function for _, function in makers]
    weights = [weight for weight, _ in makers]
    parts: list[str] = []
    size = 0
    while size < num_bytes:
        part = rng.choices(functions, weights)[0](rng)
        parts.append(part)
        size += len(part.encode())
    return "".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bytes", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--assigned-only", action="store_true", help="no random code points")
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    text = mixed_text(args.bytes, args.seed, unassigned=not args.assigned_only)
    args.out.write_bytes(text.encode())


if __name__ == "__main__":
    main()
