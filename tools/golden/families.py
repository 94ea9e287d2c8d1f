"""Writes golden logits and greedy ids of tiny models of every family, without their weights.

    pip install torch==2.11.0 transformers==5.24.0 numpy
    python tools/golden/families.py --output tests/golden/families
    python tools/golden/families.py --output tests/golden/families --only olmo3 phi3_long

Each family has one file. tests/parity/families_test.cc generates the weights anew from the seed and
the names of the tensors (`numbers`, below, and golden_families.h), and compares. A file holds:

    configs       `published`: config.json in the fields of published checkpoints; `saved`: as this
                  version of transformers saves it. Both have the same result.
    max_model_len the context for which the engine has to load the model
    tensors       [name, shape, mean, deviation] of each tensor of the published checkpoint
    prompts       ids, the ids that follow greedily, and the logits of a few positions in float64

Everything is seeded. A seed is refused if a greedy step has a near-tie, if float32 does not suffice
to tell right from wrong, or if a weight of the text model does not show in the logits.
"""

import argparse
import contextlib
import json
import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from family_configs import FAMILIES, Family
from safetensors.numpy import save_file
from safetensors.torch import load_file
from torch.overrides import TorchFunctionMode
from transformers.integrations.mxfp4 import convert_moe_packed_tensors

Config = dict[str, Any]
PROMPT_LENGTHS = (40, 5)  # the first is longer than every window
NUM_STEPS = 32
# The tests allow 1e-4 of the largest logit.
TOLERANCE = 1e-4
POSITIONS = ((0, 17, 39, 70), (4, 35))  # of each sequence, whose logits are stored
MAX_SEEDS = 50


# ---- Weights


def hash_text(text: str) -> int:
    """FNV-1a with 64 bits."""
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return value


def random_bits(seed: int, name: str, count: int) -> np.ndarray:
    """Words of 64 bits by SplitMix64, a function of seed, name and index."""
    with np.errstate(over="ignore"):
        z = np.uint64(hash_text(f"{seed}:{name}"))
        z = z + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def mxfp4_bytes(seed: int, name: str, count: int) -> np.ndarray:
    """The blocks or the exponents of matrices in MXFP4. Products with them are so large that the
    limits of activations matter."""
    bits = random_bits(seed, name, count)
    if name.endswith("_scales"):
        return (np.uint64(122) + bits % np.uint64(4)).astype(np.uint8)
    return (bits % np.uint64(256)).astype(np.uint8)


def numbers(seed: int, name: str, count: int, mean: float, deviation: float) -> np.ndarray:
    """Approximately normal numbers, a function of seed, name and index, exact in BF16.

    The four 16-bit parts of SplitMix64's output are added, which gives an integer of mean 131,070
    and deviation 37,837. All steps are exact or rounded once by IEEE rules, so that other programs
    get the same bits.
    """
    z = random_bits(seed, name, count)
    parts = sum((z >> np.uint64(shift)) & np.uint64(0xFFFF) for shift in (0, 16, 32, 48))
    normal = (parts.astype(np.float64) - 131070.0) / 37837.0
    bits = (mean + deviation * normal).astype(np.float32).view(np.uint32)
    rounded = bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))
    return (rounded & np.uint32(0xFFFF0000)).view(np.float32)


def distribution_of(family: Family, name: str, shape: list[int]) -> tuple[float, float]:
    """Mean and deviation: so large that attention is peaked and every tensor shows."""
    factor = next((f for pattern, f in family.enlarged.items() if re.search(pattern, name)), 1.0)
    if re.search(r"(score_)?correction_bias|expert_bias|moe_statics", name):
        # Positive everywhere (the smallest number is 3.46 deviations below the mean), so that it
        # does not matter whether experts outside of a token's groups get 0 or minus infinity.
        return 0.5, 0.1
    if "norm" in name and name.endswith("weight"):
        return 1.0, 0.2
    if name.endswith("_scale") or name.endswith("layer_scalar") or name.endswith("router.scale"):
        return 1.0, 0.2
    if name.endswith("bias"):
        return 0.0, 0.3
    if "embed" in name or len(shape) == 1:
        return 0.0, 1.0
    # The last dimension is the input, also where experts share one tensor.
    return 0.0, round(factor * 1.5 / shape[-1] ** 0.5, 4)


def is_mxfp4(name: str) -> bool:
    return name.endswith(("_blocks", "_scales"))


@dataclass
class StoredTensor:
    name: str
    shape: list[int]
    mean: float
    deviation: float

    def make(self, seed: int) -> np.ndarray:
        count = int(np.prod(self.shape))
        if is_mxfp4(self.name):
            return mxfp4_bytes(seed, self.name, count).reshape(self.shape)
        return numbers(seed, self.name, count, self.mean, self.deviation).reshape(self.shape)


# ---- Models


class Float64(TorchFunctionMode):
    """Replaces float32, to which models round in places, by float64."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        def widened(value: Any) -> Any:
            return torch.float64 if value is torch.float32 else value

        if func is torch.Tensor.float:
            func = torch.Tensor.double
        return func(*map(widened, args),
                    **{key: widened(value) for key, value in (kwargs or {}).items()})


@contextlib.contextmanager
def computing_in(dtype: torch.dtype) -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        with Float64() if dtype == torch.float64 else contextlib.nullcontext(), torch.no_grad():
            yield
    finally:
        torch.set_default_dtype(before)


def write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=1) + "\n")


def class_of(config: Config) -> Any:
    return getattr(transformers, config["architectures"][0])


def plain_config(family: Family) -> Config:
    """The configuration with which transformers reads readable_numbers()."""
    config = family.config | family.differences
    return {name: value for name, value in config.items() if name != "quantization_config"}


def saved_form(family: Family, folder: Path) -> tuple[Config, dict[str, list[int]]]:
    """Configuration and shapes of the tensors as transformers saves a model of the family."""
    write_json(folder / "config.json", plain_config(family))
    config = transformers.AutoConfig.from_pretrained(folder)
    model = class_of(plain_config(family))(config)
    model.save_pretrained(folder / "saved")
    saved = json.loads((folder / "saved" / "config.json").read_text())
    tensors = load_file(folder / "saved" / "model.safetensors")
    saved.pop("transformers_version")
    return saved, {name: list(tensor.shape) for name, tensor in tensors.items()}


def published_tensors(family: Family, shapes: dict[str, list[int]]) -> list[StoredTensor]:
    published = dict(family.extra)
    for name, shape in shapes.items():
        for pattern, replacement in family.renames:
            name = re.sub(pattern, replacement, name)
        if family.transposed and re.search(family.transposed, name):
            shape = [*shape[:-2], shape[-1], shape[-2]]
        if family.mxfp4 and re.search(r"experts\.\w+_proj$", name):
            experts, columns, rows = shape
            published[f"{name}_blocks"] = [experts, rows, columns // 32, 16]
            published[f"{name}_scales"] = [experts, rows, columns // 32]
            continue
        published[name] = shape
    return [StoredTensor(name, shape, *((0.0, 0.0) if is_mxfp4(name)
                                        else distribution_of(family, name, shape)))
            for name, shape in published.items()]


def readable_numbers(tensors: list[StoredTensor], seed: int) -> dict[str, np.ndarray]:
    """The tensors as transformers reads them on any machine: its own code expands MXFP4."""
    made = {tensor.name: tensor.make(seed) for tensor in tensors}
    for name in [name for name in made if name.endswith("_blocks")]:
        matrix = name.removesuffix("_blocks")
        blocks, scales = (torch.from_numpy(made.pop(f"{matrix}_{part}"))
                          for part in ("blocks", "scales"))
        made[matrix] = convert_moe_packed_tensors(blocks, scales, dtype=torch.float32).numpy()
    return made


def load(family: Family, folder: Path, config: Config, dtype: torch.dtype) -> Any:
    """Loads the weights in `folder` as a published checkpoint of this configuration."""
    write_json(folder / "config.json", config)
    options: Config = {"dtype": dtype, "attn_implementation": "eager",
                       "experts_implementation": "eager", "output_loading_info": True}
    model, info = class_of(config).from_pretrained(folder, **options)
    info["unexpected_keys"] = set(info["unexpected_keys"]) - set(family.extra)
    for problem, names in info.items():
        assert not names, (problem, names)
    return model.eval()


def logits_of(model: Any, ids: list[int]) -> torch.Tensor:
    if isinstance(model, transformers.Llama4ForConditionalGeneration):
        model = model.language_model  # without an image, this version fails behind it
    return model(input_ids=torch.tensor([ids]), use_cache=False).logits[0]


class BadSeed(Exception):
    """The weights of this seed do not suit a test."""


@dataclass
class Sequence:
    prompt: list[int]
    following: list[int] = field(default_factory=list)
    logits: torch.Tensor | None = None  # of prompt and following but its last id, in float64

    def inputs(self) -> list[int]:
        return self.prompt + self.following[:-1]

    def extend(self, model: Any) -> None:
        for _ in range(NUM_STEPS):
            logits = logits_of(model, self.prompt + self.following)[-1]
            best, second = logits.topk(2).values.tolist()
            if best - second < 10 * TOLERANCE * logits.abs().max().item():
                raise BadSeed("a greedy step has a near-tie")
            self.following.append(int(logits.argmax()))

    def compute_logits(self, model: Any) -> None:
        self.logits = logits_of(model, self.inputs())
        following = self.logits[len(self.prompt) - 1:].argmax(-1).tolist()
        assert following == self.following, "float32 and float64 differ in a greedy step"

    def difference(self, logits: torch.Tensor) -> float:
        """The largest difference of these logits, relative to the largest logit."""
        assert self.logits is not None
        return ((logits.double() - self.logits).abs().max() / self.logits.abs().max()).item()


def check_weights_show(family: Family, model: Any, sequence: Sequence) -> None:
    generator = torch.Generator().manual_seed(0)
    weights = dict(model.named_parameters())
    stored = model.state_dict()
    weights |= {name: buffer for name, buffer in model.named_buffers() if name in stored}
    for name, weight in weights.items():
        if re.search(family.silent, name):
            continue
        before = weight.clone()
        noise = torch.randn(weight.shape, generator=generator)
        weight.copy_(before + 0.3 * before.abs().mean() * noise)
        difference = sequence.difference(logits_of(model, sequence.inputs()))
        weight.copy_(before)
        if difference < 10 * TOLERANCE:
            raise BadSeed(f"{name} does not show in the logits: {difference:.1e}")


def make_prompts(seed: int, vocab_size: int) -> list[Sequence]:
    random = np.random.default_rng(seed)
    return [Sequence(random.integers(3, vocab_size, length).tolist()) for length in PROMPT_LENGTHS]


def golden_of(family: Family, saved: Config, tensors: list[StoredTensor], seed: int) -> Config:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        save_file(readable_numbers(tensors, seed), folder / "model.safetensors",
                  metadata={"format": "pt"})
        published = plain_config(family)
        sequences = make_prompts(seed, family.vocab_size)
        with computing_in(torch.float32):
            narrow = load(family, folder, published, torch.float32)
            for sequence in sequences:
                sequence.extend(narrow)
        with computing_in(torch.float64):
            wide = load(family, folder, published, torch.float64)
            for sequence in sequences:
                sequence.compute_logits(wide)
            wide = load(family, folder, saved, torch.float64)
            for sequence in sequences:
                difference = sequence.difference(logits_of(wide, sequence.inputs()))
                assert difference < 1e-9, f"the saved configuration differs by {difference:.1e}"
        with computing_in(torch.float32):
            for sequence in sequences:
                difference = sequence.difference(logits_of(narrow, sequence.inputs()))
                if difference > TOLERANCE / 5:
                    raise BadSeed(f"float32 differs from float64 by {difference:.1e}")
            check_weights_show(family, narrow, sequences[0])
    return {
        "seed": seed,
        "max_model_len": family.max_model_len,
        "configs": {"published": family.config, "saved": saved},
        "tensors": [[tensor.name, tensor.shape, tensor.mean, tensor.deviation]
                    for tensor in tensors],
        "prompts": [{
            "ids": sequence.prompt,
            "following": sequence.following,
            "logits": {str(position): [round(x, 5) for x in sequence.logits[position].tolist()]
                       for position in positions},
        } for sequence, positions in zip(sequences, POSITIONS)],
        "made_with": {"torch": torch.__version__.split("+")[0],
                      "transformers": transformers.__version__},
    }


def golden_of_first_seed(family: Family) -> Config:
    with tempfile.TemporaryDirectory() as name:
        saved, shapes = saved_form(family, Path(name))
    tensors = published_tensors(family, shapes)
    problem: BadSeed | None = None
    for seed in range(1, 1 + MAX_SEEDS):
        try:
            return golden_of(family, saved, tensors, seed)
        except BadSeed as error:
            problem = error
            print(f"{family.name}: seed {seed}: {error}")
    raise RuntimeError(f"{family.name}: no seed is good, the last one because {problem}")


def to_text(value: Any, indent: str = "") -> str:
    """JSON with one member of an object per line, and one row of a table."""
    inner = indent + " "
    if isinstance(value, dict) and value:
        items = [f"{json.dumps(key)}: {to_text(part, inner)}" for key, part in value.items()]
        opening, closing = "{", "}"
    elif isinstance(value, list) and any(isinstance(part, list | dict) for part in value):
        items = [to_text(part, inner) if isinstance(part, dict) else json.dumps(part)
                 for part in value]
        opening, closing = "[", "]"
    else:
        return json.dumps(value)
    separator = ",\n" + inner
    return f"{opening}\n{inner}{separator.join(items)}\n{indent}{closing}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [family.name for family in FAMILIES]
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--only", nargs="+", choices=names, metavar="FAMILY", default=names)
    args = parser.parse_args()
    torch.set_num_threads(1)
    transformers.logging.disable_progress_bar()
    args.output.mkdir(parents=True, exist_ok=True)
    for family in FAMILIES:
        if family.name not in args.only:
            continue
        golden = golden_of_first_seed(family)
        path = args.output / f"{family.name}.json"
        path.write_text(to_text(golden) + "\n")
        print(f"{family.name}: seed {golden['seed']}, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
