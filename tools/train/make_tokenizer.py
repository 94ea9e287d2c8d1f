"""Trains the byte-level BPE tokenizer on the project's own documents and writes its two files."""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterator
from pathlib import Path

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, processors, trainers

from documents import BOS, CHAT_TEMPLATE, EOS, PAD, SPECIAL_TOKENS, Mix, Source
from gsm8k import Gsm8k

# Words with their leading space, digits one by one, punctuation, line breaks: Qwen2's pattern.
_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_MIX = Mix(problem=0.35, chat=0.5, short_text=0.15, max_shots=1)
_GSM8K_SHARE = 0.25  # more than in training: its words are many


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, required=True, help="the model's folder")
    parser.add_argument("--vocab-size", type=int, default=4096)
    parser.add_argument("--num-documents", type=int, default=60_000)
    parser.add_argument("--max-length", type=int, default=4096)
    parser.add_argument("--gsm8k", type=Path, help="GSM8K's train.jsonl, to learn its words too")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(_PATTERN), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    ])
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=args.vocab_size, special_tokens=list(SPECIAL_TOKENS), min_frequency=20,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()), show_progress=False)
    tokenizer.train_from_iterator(_texts(args.seed, args.num_documents, args.gsm8k), trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{BOS} $A", pair=f"{BOS} $A $B", special_tokens=[(BOS, tokenizer.token_to_id(BOS))])

    args.output.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(args.output / "tokenizer.json"))
    _write_config(args.output / "tokenizer_config.json", args.max_length)
    print(f"vocabulary of {tokenizer.get_vocab_size()} tokens in {args.output}")


def _texts(seed: int, count: int, gsm8k: Path | None) -> Iterator[str]:
    rng = random.Random(f"tokenizer/{seed}")
    source = Source(_MIX, Gsm8k(gsm8k) if gsm8k else None, _GSM8K_SHARE)
    for _ in range(count):
        for segment in source.document(rng):
            yield segment.text


def _write_config(path: Path, max_length: int) -> None:
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": BOS,
        "eos_token": EOS,
        "pad_token": PAD,
        "model_max_length": max_length,
        "clean_up_tokenization_spaces": False,
        "chat_template": CHAT_TEMPLATE,
    }
    path.write_text(json.dumps(config, indent=2) + "\n")


if __name__ == "__main__":
    main()
