"""Golden files of the GGUF tests, from llama.cpp's own `gguf` package.

    pip install gguf==0.19.0 numpy==2.4.6
    python3 tools/golden/gguf_blocks.py --out tests/tensor/golden

Writes gguf_blocks.txt (per line a tensor type, the bytes of some blocks and the F32 numbers that
they stand for, both as hexadecimal digits) and writer.gguf (a file with every kind of metadata and
three tensors). Everything is seeded.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import gguf
import numpy as np
from gguf import GGMLQuantizationType as Type
from gguf import quants

SEED = 11
TYPES = [
    Type.F32, Type.F16, Type.BF16, Type.Q8_0, Type.Q4_0, Type.Q4_1, Type.Q5_0, Type.Q5_1, Type.Q2_K,
    Type.Q3_K, Type.Q4_K, Type.Q5_K, Type.Q6_K, Type.IQ4_NL, Type.IQ4_XS,
]
# The package quantizes only some types. The blocks of the others are random bytes, in which these
# places hold F16 scales, which must be finite.
SCALES = {
    Type.Q2_K: [80, 82], Type.Q3_K: [108], Type.Q4_K: [0, 2], Type.Q5_K: [0, 2], Type.Q6_K: [208],
    Type.IQ4_NL: [0], Type.IQ4_XS: [0],
}


def random_blocks(kind: Type, count: int, random: np.random.Generator) -> np.ndarray:
    size = gguf.GGML_QUANT_SIZES[kind][1]
    blocks = random.integers(0, 256, (count, size), dtype=np.uint8)
    for at in SCALES[kind]:
        scales = random.uniform(-0.01, 0.01, (count, 1)).astype(np.float16)
        blocks[:, at : at + 2] = scales.view(np.uint8)
    return blocks


def mxfp4_line() -> str:
    """Blocks with all codes. Twice the largest exponent but one would overflow F32."""
    exponents = np.array([0, 1, 2, 119, 127, 252], dtype=np.uint8)
    codes = (np.arange(32) * 7 + np.arange(32) // 16).astype(np.uint8) % 16
    blocks = np.empty((len(exponents), 17), dtype=np.uint8)
    blocks[:, 0] = exponents
    blocks[:, 1:] = codes[:16] | codes[16:] << 4
    numbers = quants.dequantize(blocks, Type.MXFP4).astype("<f4")
    return f"{Type.MXFP4.name} {blocks.tobytes().hex()} {numbers.tobytes().hex()}"


def block_line(kind: Type, random: np.random.Generator) -> str:
    elements = gguf.GGML_QUANT_SIZES[kind][0]
    if kind in SCALES:
        packed = random_blocks(kind, 2, random)
    else:
        count = max(elements * 2, 8)
        packed = quants.quantize(random.normal(0, 0.05, (1, count)).astype(np.float32), kind)
    numbers = quants.dequantize(packed, kind).astype("<f4")
    return f"{kind.name} {packed.tobytes().hex()} {numbers.tobytes().hex()}"


def write_file(path: Path, random: np.random.Generator) -> None:
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_uint8("kinds.uint8", 200)
    writer.add_int8("kinds.int8", -100)
    writer.add_uint16("kinds.uint16", 60000)
    writer.add_int16("kinds.int16", -30000)
    writer.add_uint32("kinds.uint32", 4000000000)
    writer.add_int32("kinds.int32", -2000000000)
    writer.add_uint64("kinds.uint64", 1 << 40)
    writer.add_int64("kinds.int64", -(1 << 40))
    writer.add_float32("kinds.float32", 1e-5)
    writer.add_float64("kinds.float64", 0.1)
    writer.add_bool("kinds.bool", True)
    writer.add_string("kinds.string", "a text")
    writer.add_array("kinds.texts", ["one", "", "three"])
    writer.add_array("kinds.integers", [1, -2, 3])
    writer.add_array("kinds.floats", [0.5, -1.5])
    writer.add_tensor("vector", np.arange(5, dtype=np.float32))
    writer.add_tensor("matrix", np.arange(6, dtype=np.float16).reshape(2, 3))
    quantized = quants.quantize(random.normal(0, 1, (2, 64)).astype(np.float32), Type.Q8_0)
    writer.add_tensor("quantized", quantized, raw_dtype=Type.Q8_0)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, required=True)
    out: Path = parser.parse_args().out
    random = np.random.default_rng(SEED)
    lines = [*(block_line(kind, random) for kind in TYPES), mxfp4_line()]
    (out / "gguf_blocks.txt").write_text("\n".join(lines) + "\n")
    write_file(out / "writer.gguf", random)


if __name__ == "__main__":
    main()
