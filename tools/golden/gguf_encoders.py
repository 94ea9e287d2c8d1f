"""Golden file of the encoders of GGUF blocks, from llama.cpp's reference quantizers.

    pip install llama-cpp-python==0.3.36 numpy==2.4.6
    python3 tools/golden/gguf_encoders.py --out tests/tensor/golden

Writes gguf_encoders.txt. A line "numbers NAME HEX" has F32 numbers of one distribution, and a line
"TYPE NAME HEX" the blocks into which ggml quantizes them, without an importance matrix. Everything
is seeded.
"""

from __future__ import annotations

import argparse
import ctypes
from pathlib import Path

import numpy as np

SEED = 12
COUNT = 512  # two blocks of 256
# The name of the type, that of ggml's function, and the elements and bytes of a block.
TYPES = [
    ("Q8_0", "q8_0", 32, 34), ("Q4_0", "q4_0", 32, 18), ("Q5_0", "q5_0", 32, 22),
    ("Q5_1", "q5_1", 32, 24), ("Q4_K", "q4_K", 256, 144), ("Q5_K", "q5_K", 256, 176),
    ("Q6_K", "q6_K", 256, 210),
]


def distributions() -> dict[str, np.ndarray]:
    random = np.random.default_rng(SEED)
    outliers = random.normal(0, 0.01, COUNT)
    outliers[::97] *= 30
    numbers = {
        "normal": random.normal(0, 0.02, COUNT),
        "heavy_tailed": random.standard_t(4, COUNT) * 0.02,
        "uniform": random.uniform(-1, 1, COUNT),
        "shifted": random.normal(0.3, 0.1, COUNT),
        "outliers": outliers,
        "zeros": np.zeros(COUNT),
    }
    return {name: values.astype("<f4") for name, values in numbers.items()}


def library(path: Path | None) -> ctypes.CDLL:
    if path is None:
        import llama_cpp

        path = Path(llama_cpp.__file__).parent / "lib" / "libggml-base.so"
    return ctypes.CDLL(str(path))


def quantize(ggml: ctypes.CDLL, function: str, numbers: np.ndarray, num_bytes: int) -> bytes:
    blocks = np.zeros(num_bytes, np.uint8)
    pointer = ctypes.c_void_p
    getattr(ggml, f"quantize_row_{function}_ref")(
        numbers.ctypes.data_as(pointer), blocks.ctypes.data_as(pointer),
        ctypes.c_int64(numbers.size))
    return blocks.tobytes()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--library", type=Path, help="libggml-base.so; default: llama-cpp-python's")
    arguments = parser.parse_args()
    ggml = library(arguments.library)
    lines = []
    for name, numbers in distributions().items():
        lines.append(f"numbers {name} {numbers.tobytes().hex()}")
        for type_name, function, elements, size in TYPES:
            blocks = quantize(ggml, function, numbers, COUNT // elements * size)
            lines.append(f"{type_name} {name} {blocks.hex()}")
    (arguments.out / "gguf_encoders.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
