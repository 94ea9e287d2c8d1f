"""Copies a GGUF of llama_cpp_models.py, which has no vocabulary, with the one of a SentencePiece
model, so that llama.cpp's server can take text.

    python bench/peers/llama_cpp_vocab.py IN.gguf TOKENIZER.model OUT.gguf
"""

import argparse
import struct
from collections.abc import Iterator
from pathlib import Path

import gguf

NORMAL_PIECE = 1


def fields(data: bytes) -> Iterator[tuple[int, bytes | int]]:
    """The fields of a protocol buffer's message: number and value."""
    at = 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(data):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
            continue
        size = varint() if key & 7 == 2 else {1: 8, 5: 4}[key & 7]
        yield key >> 3, data[at:at + size]
        at += size


def pieces(path: Path) -> Iterator[tuple[bytes, float, int]]:
    """Text, score and type of each token, in the order of their ids."""
    for number, value in fields(path.read_bytes()):
        if number == 1 and isinstance(value, bytes):
            piece = dict(fields(value))
            yield piece[1], struct.unpack("<f", piece.get(2, bytes(4)))[0], piece.get(3, NORMAL_PIECE)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("source", type=Path)
    parser.add_argument("tokenizer", type=Path)
    parser.add_argument("output", type=Path)
    args = parser.parse_args()
    reader = gguf.GGUFReader(args.source)
    writer = gguf.GGUFWriter(args.output, "llama")
    for name, field in reader.fields.items():
        if name.startswith(("GGUF.", "general.architecture", "tokenizer.")):
            continue
        writer.add_key_value(name, field.contents(), field.types[0])
    texts, scores, types = zip(*pieces(args.tokenizer))
    writer.add_tokenizer_model("llama")
    writer.add_token_list(list(texts))
    writer.add_token_scores(list(scores))
    writer.add_token_types(list(types))
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    for tensor in reader.tensors:
        writer.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    main()
