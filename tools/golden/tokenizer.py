"""Golden files of the tokenizer tests, from the `tokenizers`, `sentencepiece` and `tiktoken` packages.

    pip install tokenizers==0.23.3 sentencepiece==0.2.3 tiktoken==0.14.0
    python3 tools/golden/tokenizer.py --data SHARED_DATA --out tests/tokenizer/golden

Writes: mixed.txt (the text), mixed.json (the count and hash of each given tokenizer's ids on it),
components.json (small tokenizers that together use every supported component, with ids and texts),
gemma.json (one that is made as Gemma's, likewise),
splits.json (what well-known pre-tokenizers cut texts into), sp_*.model and sentencepiece.json,
ranks.json (a small vocabulary of byte strings, and the ranks to which tiktoken encodes texts).
"""

from __future__ import annotations

import argparse
import base64
import json
import random
import struct
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import sentencepiece
import tiktoken
import tokenizers
from tokenizer_text import mixed_text
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

SEED = 7
LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
CJK = "[一-龥ࠀ-一가-퟿]+"
# DeepSeek-LLM's cased letters; escapes where a normalizing editor would change a character.
LETTERS = (
    "\\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿ\u0386\u0388-\u038a\u038c\u038e-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-\u1f15"
    "\u1f18-\u1f1d\u1f20-\u1f45\u1f48-\u1f4d\u1f50-\u1f57\u1f59\u1f5b\u1f5d\u1f5f-\u1f7d\u1f80-\u1fb4\u1fb6-\u1fbc\u1fbe"
    "\u1fc2-\u1fc4\u1fc6-\u1fcc\u1fd0-\u1fd3\u1fd6-\u1fdb\u1fe0-\u1fec\u1ff2-\u1ff4\u1ff6-\u1ffcℂℇℊ-ℓℕℙ-ℝℤ\u2126ℨ\u212a-ℭℯ-ℴℹ"
    "ℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃]+"
)
DEEPSEEK3 = (
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+"
    "| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"
)
TEKKEN = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
    r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
CONTRACTION = "(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
O200K = TEKKEN.replace("M}]+|", "M}]+" + CONTRACTION + "|").replace("M}]*|", "M}]*" + CONTRACTION + "|").replace(r"\p{N}|", r"\p{N}{1,3}|")
KIMI = r"[\p{Han}]+|" + O200K.replace(r"\p{M}]", r"\p{M}&&[^\p{Han}]]").replace(r"[\r\n/]*", r"[\r\n]*")


def fnv1a(data: bytes) -> str:
    value = 0xCBF29CE484222325
    for byte in data:
        value = ((value ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return f"{value:016x}"


def samples(count: int, size: int, seed: int) -> list[str]:
    fixed = ["", " ", "\n", "a", "Hello world", "  two  spaces  ", "don't CAN'T", "x<s>y </s> z", "日本語 text é", "\u200b\ufeff"]
    return fixed + [mixed_text(size, seed + i, unassigned=False) for i in range(count)]


def split_by(pattern: str, behavior: str = "isolated", invert: bool = False) -> pre_tokenizers.PreTokenizer:
    return pre_tokenizers.Split(Regex(pattern), behavior, invert)


def known_pre_tokenizers() -> dict[str, pre_tokenizers.PreTokenizer]:
    sequence = pre_tokenizers.Sequence
    return {
        "gpt2": split_by(GPT2),
        "llama3": split_by(LLAMA3),
        "qwen2": split_by(LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")),
        "deepseek_v3": sequence([split_by("\\p{N}{1,3}"), split_by("[一-龥぀-ゟ゠-ヿ]+"), split_by(DEEPSEEK3)]),
        "deepseek_llm": sequence([split_by("[\r\n]"), split_by(LETTERS), split_by("\\s?[!-/:-~！-／：-～‘-‟　-。]+"),
                                  split_by("\\s+$"), split_by(CJK), pre_tokenizers.Digits(individual_digits=True)]),
        "deepseek_coder": sequence([split_by("[\r\n]"), split_by("\\s?\\p{L}+"), split_by("\\s?\\p{P}+"), split_by(CJK),
                                    pre_tokenizers.Digits(individual_digits=True)]),
        "tekken": split_by(TEKKEN),
        "o200k": split_by(O200K),
        "kimi": split_by(KIMI),
        "two_digits_by_pcre2": split_by(TEKKEN.replace(r"\p{N}|", r"\p{N}{1,2}|")),
        "words_removed": split_by(r"\s+", "removed"),
        "inverted": split_by(r"\p{L}+", "removed", invert=True),
        "contiguous": split_by(r"[a-z]", "contiguous"),
        "merged_with_previous": split_by(r" ", "merged_with_previous"),
        "merged_with_next": split_by(r"[ .]", "merged_with_next"),
        "empty_matches": split_by(r"x*", "isolated"),
        "digits": pre_tokenizers.Digits(individual_digits=False),
        "punctuation": pre_tokenizers.Punctuation("contiguous"),
        "whitespace": pre_tokenizers.Whitespace(),
        "whitespace_split": pre_tokenizers.WhitespaceSplit(),
        "delimiter": pre_tokenizers.CharDelimiterSplit("e"),
    }


def component_json(component: Any) -> dict[str, Any]:
    return json.loads(component.__getstate__())


def write_splits(out: Path) -> None:
    texts = samples(4, 300, SEED)
    entries = [
        {"name": name, "pre_tokenizer": component_json(pre),
         "cases": [{"text": text, "pieces": [piece for piece, _ in pre.pre_tokenize_str(text)]} for text in texts]}
        for name, pre in known_pre_tokenizers().items()
    ]
    write_json(out / "splits.json", entries)


def train(tokenizer: Tokenizer, trainer: Any, text: str) -> Tokenizer:
    tokenizer.train_from_iterator(text.splitlines(keepends=True), trainer)
    return tokenizer


def byte_level(text: str) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([split_by(LLAMA3), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=420, show_progress=False, special_tokens=["<s>", "</s>"],
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    train(tokenizer, trainer, text)
    tokenizer.add_tokens([AddedToken("world", single_word=True), AddedToken("spaces", lstrip=True, normalized=False),
                          AddedToken("é", normalized=True), AddedToken("Hello", rstrip=True)])
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 1)])
    return tokenizer


def prefixed_byte_level(text: str) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE(ignore_merges=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=True)])
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=380, show_progress=False, special_tokens=["<unk>"],
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    return train(tokenizer, trainer, text)


def bytes_vocab() -> list[str]:
    return [f"<0x{byte:02X}>" for byte in range(256)]


def sentencepiece_bpe(text: str, metaspace: bool) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>", fuse_unk=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    if metaspace:
        tokenizer.normalizer = None
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    trainer = trainers.BpeTrainer(vocab_size=560, show_progress=False, limit_alphabet=120, special_tokens=["<unk>", "<s>", "</s>", *bytes_vocab()])
    # Lines keep the trainer from merging over line ends; the trained rules are what matters.
    train(tokenizer, trainer, text)
    tokenizer = Tokenizer.from_str(without_added(tokenizer, keep=3))
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    return tokenizer


def gemma(text: str) -> Tokenizer:
    """As Gemma's: spaces are replaced and none is prepended, the split never matches, and runs of line ends are
    tokens that are not special."""
    tokenizer = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>", fuse_unk=True))
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    special = ["<pad>", "<eos>", "<bos>", "<unk>"]
    trainer = trainers.BpeTrainer(vocab_size=580, show_progress=False, limit_alphabet=120,
                                  special_tokens=[*special, "<start_of_turn>", "<end_of_turn>", *bytes_vocab()])
    train(tokenizer, trainer, text)
    tokenizer = Tokenizer.from_str(without_added(tokenizer, keep=6))
    tokenizer.add_tokens([AddedToken("\n" * count, normalized=False) for count in (2, 3)])
    tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    tokenizer.post_processor = processors.TemplateProcessing(single="<bos>:0 $A:0", special_tokens=[("<bos>", 2)])
    return tokenizer


def without_added(tokenizer: Tokenizer, keep: int) -> str:
    state = json.loads(tokenizer.to_str())
    state["added_tokens"] = state["added_tokens"][:keep]
    return json.dumps(state)


def frequent_part(text: str) -> str:
    """The text's 100 most frequent characters: trainers want a token for each."""
    frequent = {char for char, _ in Counter(text).most_common(100)}
    return "".join(char for char in text if char in frequent)


def small_unigram(text: str, byte_fallback: bool) -> Tokenizer:
    trained = Tokenizer(models.Unigram())
    trained.pre_tokenizer = pre_tokenizers.Metaspace()
    text = frequent_part(text)
    train(trained, trainers.UnigramTrainer(vocab_size=300, show_progress=False, unk_token="<unk>", special_tokens=["<unk>", "<s>"]), text)
    vocab = json.loads(trained.to_str())["model"]["vocab"]
    if byte_fallback:
        vocab = vocab + [[token, -20.0] for token in bytes_vocab()]
    tokenizer = Tokenizer(models.Unigram([(token, score) for token, score in vocab], unk_id=0, byte_fallback=byte_fallback))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " "), normalizers.Strip(left=False, right=True)])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    tokenizer.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace()]) if byte_fallback else decoders.Metaspace()
    return tokenizer


def plain_bpe(text: str) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKD(), normalizers.StripAccents(), normalizers.Lowercase(), normalizers.Strip()])
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Punctuation()])
    train(tokenizer, trainers.BpeTrainer(vocab_size=200, show_progress=False, limit_alphabet=60, special_tokens=["[UNK]", "[CLS]", "[SEP]"]), text)
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 2), ("[CLS]", 1))
    return tokenizer


def odd_decoder(text: str) -> Tokenizer:
    tokenizer = sentencepiece_bpe(text, metaspace=False)
    tokenizer.normalizer = normalizers.NFD()
    tokenizer.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Fuse(), decoders.Replace("▁a", "[b]"), decoders.Strip("e", 2, 1)])
    return tokenizer


def random_ids(tokenizer: Tokenizer, count: int, rng: random.Random) -> list[list[int]]:
    highest = max(tokenizer.get_vocab().values())
    return [[rng.randint(0, highest) for _ in range(rng.randint(1, 60))] for _ in range(count)]


def cases_of(tokenizer: Tokenizer, texts: Iterable[str]) -> list[dict[str, Any]]:
    return [{"text": text, "ids": tokenizer.encode(text, add_special_tokens=False).ids,
             "ids_with_special": tokenizer.encode(text).ids} for text in texts]


def decodes_of(tokenizer: Tokenizer, sequences: list[list[int]]) -> list[dict[str, Any]]:
    return [{"ids": ids, "text": tokenizer.decode(ids, skip_special_tokens=False),
             "text_without_special": tokenizer.decode(ids, skip_special_tokens=True)}
            for ids in sequences if len(ids) > 4]  # the package's Strip panics on short texts


def write_gemma(out: Path) -> None:
    text = mixed_text(60_000, SEED + 100, unassigned=False)
    write_tokenizers(out / "gemma.json", {"gemma": gemma(text)},
                     ["<start_of_turn>user\nHello  world\n\n\n\nx<end_of_turn>\n", "\n\n a", " a\n", "a  b"])


def write_components(out: Path) -> None:
    text = mixed_text(60_000, SEED + 100, unassigned=False)
    built = {
        "byte_level": byte_level(text),
        "prefixed_byte_level": prefixed_byte_level(text),
        "sentencepiece_bpe": sentencepiece_bpe(text, metaspace=False),
        "metaspace_bpe": sentencepiece_bpe(text, metaspace=True),
        "unigram": small_unigram(text, byte_fallback=False),
        "unigram_bytes": small_unigram(text, byte_fallback=True),
        "plain_bpe": plain_bpe(text),
        "odd_decoder": odd_decoder(text),
    }
    write_tokenizers(out / "components.json", built, [])


def write_tokenizers(path: Path, built: dict[str, Tokenizer], more_texts: list[str]) -> None:
    rng = random.Random(SEED)
    entries = []
    for name, tokenizer in built.items():
        texts = samples(5, 300, SEED + 200) + more_texts
        sequences = random_ids(tokenizer, 6, rng) + [tokenizer.encode(text).ids for text in texts]
        entries.append({"name": name, "tokenizer": json.loads(tokenizer.to_str()), "cases": cases_of(tokenizer, texts),
                        "decodes": decodes_of(tokenizer, sequences)})
    write_json(path, entries)


def write_mixed(data: Path, out: Path) -> None:
    text = mixed_text(90_000, SEED, unassigned=True)
    (out / "mixed.txt").write_bytes(text.encode())
    entries = []
    for directory in sorted((data / "tokenizers").iterdir()):
        tokenizer = Tokenizer.from_file(str(directory / "tokenizer.json"))
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        decoded = tokenizer.decode(ids, skip_special_tokens=False)
        entries.append({"name": directory.name, "num_ids": len(ids), "ids_fnv1a": fnv1a(struct.pack(f"<{len(ids)}i", *ids)),
                        "decoded_fnv1a": fnv1a(decoded.encode())})
    write_json(out / "mixed.json", entries)


def train_sentencepiece(out: Path, name: str, text: Path, **options: Any) -> dict[str, Any]:
    rules = out / "rules.tsv"
    rules.write_text("41\t61\nFF21\t61\nFB01\t66 69\n41 30A\tE5\nA0\t20\n3000\t20\n200B\t\n")
    sentencepiece.SentencePieceTrainer.train(
        input=str(text), model_prefix=str(out / name), vocab_size=500, minloglevel=2, hard_vocab_limit=False,
        normalization_rule_tsv=str(rules), num_threads=1, max_sentence_length=10_000, **options)
    (out / f"{name}.vocab").unlink()
    rules.unlink()
    processor = sentencepiece.SentencePieceProcessor(model_file=str(out / f"{name}.model"))
    texts = [t for t in samples(8, 300, SEED + 300) if not any(s in t for s in ("<s>", "</s>", "<unk>"))]
    texts += [" lead", "AＡﬁ\u200bA\u030a\u00a0\u3000x", "a[SEP]b [SEP] c", "tail  "]
    return {"model": f"{name}.model", "cases": [{"text": t, "ids": processor.encode(t)} for t in texts]}


def write_sentencepiece(out: Path) -> None:
    text = out / "train.txt"
    text.write_text(frequent_part(mixed_text(60_000, SEED + 400, unassigned=False)).replace("\0", ""))
    common = {"user_defined_symbols": ["[SEP]"]}
    entries = [
        train_sentencepiece(out, "sp_bpe", text, model_type="bpe", byte_fallback=True, remove_extra_whitespaces=False, character_coverage=0.98),
        train_sentencepiece(out, "sp_bpe_unk", text, model_type="bpe", character_coverage=0.98, **common),
        train_sentencepiece(out, "sp_unigram", text, model_type="unigram", byte_fallback=True, character_coverage=0.98, **common),
        train_sentencepiece(out, "sp_unigram_unk", text, model_type="unigram", add_dummy_prefix=False, character_coverage=0.98),
    ]
    text.unlink()
    write_json(out / "sentencepiece.json", entries)


CASED_TEXTS = [
    "don't DON'T DON'\u017f I'LL we'Re x's's's'", "HelloWorld HELLOworld iPhone NASAs \u01c5ungla a\u02b0B \u00aaA A\u00aa",
    "\u4e2d\u6587ABC\u4e2d\u3005\u3007x \u4e2d \u2e80\u2e81!\u2f00 1\u30072 \u304b\u306a\u30ab\u30ca\u4e2d\ud55c\uae00 \U00020000\U0002a6d6a",
    "\u0301ABC e\u0301E\u0301 \u0301 !\u0301x \u4e00\u0301\u4e00", "1234567 \u0663\u0664\u0665\u0666 \u00bd\u2167 3.14 1,000,000",
    "a/b//c /\n/x ;/\r\n\n/ //\n", " " * 300 + "x" + "\n" * 40 + "\t \t\u3000\u00a0x  ", "ab" * 150 + "A" * 200 + "\u4e2d" * 150,
    "caf\u00e9 \u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35 \u0645\u0631\u062d\u0628\u0627 \u05e9\u05dc\u05d5\u05dd \U0001f34e\U0001f468\u200d\U0001f469 \ufeff\x00\x7f", " qzxjkv qzxjkvq",
]


def write_ranks(out: Path) -> None:
    """The ids of a tekken.json or a tiktoken.model are these ranks, or the ranks plus a constant."""
    trained = Tokenizer(models.BPE())
    trained.pre_tokenizer = pre_tokenizers.Sequence([split_by(O200K), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    trainer = trainers.BpeTrainer(vocab_size=700, show_progress=False, initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    train(trained, trainer, mixed_text(60_000, SEED + 500, unassigned=False) + "".join(CASED_TEXTS))
    spelled = sorted(trained.get_vocab().items(), key=lambda item: item[1])
    decoder = {spelling_of(byte): byte for byte in range(256)}
    tokens = [bytes([byte]) for byte in range(256)] + [bytes(decoder[c] for c in text) for text, _ in spelled if len(text) > 1]
    tokens.append(b" qzxjkv")  # no merge makes it
    ranks = {token: rank for rank, token in enumerate(tokens)}
    entries: dict[str, Any] = {"tokens": [base64.b64encode(token).decode() for token in tokens]}
    for name, pattern in (("tekken", TEKKEN), ("kimi", KIMI)):
        peer = tiktoken.Encoding(name, pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
        texts = samples(5, 300, SEED + 600) + CASED_TEXTS
        entries[name] = [{"text": text, "ranks": peer.encode_ordinary(text)} for text in texts]
    (out / "ranks.json").write_text(json.dumps(entries, ensure_ascii=False, separators=(",", ":")) + "\n")


def spelling_of(byte: int) -> str:
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    return chr(byte) if byte in printable else chr(0x100 + [b for b in range(256) if b not in printable].index(byte))


def write_json(path: Path, entries: list[dict[str, Any]]) -> None:
    path.write_text("[\n" + ",\n".join(json.dumps(entry, ensure_ascii=False, separators=(",", ":")) for entry in entries) + "\n]\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder that has tokenizers/")
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    print(f"tokenizers {tokenizers.__version__}, sentencepiece {sentencepiece.__version__}, tiktoken {tiktoken.__version__}, seed {SEED}")
    write_mixed(args.data, args.out)
    write_splits(args.out)
    write_components(args.out)
    write_gemma(args.out)
    write_sentencepiece(args.out)
    write_ranks(args.out)


if __name__ == "__main__":
    main()
