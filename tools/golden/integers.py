"""Writes tiny checkpoints in 4 and 8-bit integers, packed by the tools that define the formats, and
transformers' logits for what their integers stand for.

    pip install torch==2.15.0 transformers==5.24.0 safetensors==0.8.0 accelerate==1.15.0 \\
        compressed-tensors==0.20.0
    pip install --no-deps auto-gptq==0.7.1 autoawq==0.2.9
    python tools/golden/integers.py --output tests/golden/integers

The output is committed; tests/parity compares Quire's logits with it. The logits are those of the
model with float32 weights, (value - zero point) * scale. Everything is seeded, and the manifest
names the versions.
"""

import argparse
import functools
import importlib.util
import json
import shutil
import sys
import types
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from compressed_tensors.compressors import (NaiveQuantizationCompressor,
                                            PackedQuantizationCompressor)
from compressed_tensors.quantization import QuantizationArgs, QuantizationScheme
from safetensors.torch import save_file
from transformers import AutoConfig, AutoModelForCausalLM

Config = dict[str, Any]
Tensors = dict[str, torch.Tensor]

VOCAB_SIZE = 67
CONFIG: Config = {
    "model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": VOCAB_SIZE,
    "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2,
    "num_key_value_heads": 2, "head_dim": 16, "hidden_act": "silu", "rms_norm_eps": 1e-5,
    "max_position_embeddings": 128, "bos_token_id": 1, "eos_token_id": 2, "rope_theta": 100.0,
    "tie_word_embeddings": True, "torch_dtype": "float16",
}


@functools.cache
def load_module(package: str, path: str) -> types.ModuleType:
    """Loads one file of an installed package without the package's own imports."""
    folder = importlib.util.find_spec(package).submodule_search_locations[0]
    names = path.removesuffix(".py").split("/")
    for depth in range(len(names)):
        parent = types.ModuleType(".".join([package, *names[:depth]]))
        parent.__path__ = ["/".join([folder, *names[:depth]])]
        sys.modules.setdefault(parent.__name__, parent)
    return importlib.import_module(".".join([package, *names]))


@dataclass
class Matrix:
    """A quantized matrix: unsigned values [rows, columns], scales and zeros [rows, groups]."""

    values: torch.Tensor
    scales: torch.Tensor
    zeros: torch.Tensor
    groups: torch.Tensor  # of each column

    def plain(self) -> torch.Tensor:
        zeros = self.zeros[:, self.groups]
        return (self.values - zeros).float() * self.scales.float()[:, self.groups]


@dataclass
class Case:
    name: str
    tool: str  # awq, gptq, gptq_v2, pack-quantized or int-quantized
    bits: int = 4
    group_size: int = 16  # -1: a scale per row
    symmetric: bool = False
    act_order: bool = False


CASES = [
    Case("awq", "awq"),
    Case("gptq", "gptq", symmetric=True),
    Case("gptq_8_bits_act_order", "gptq", bits=8, act_order=True),
    Case("gptq_v2", "gptq_v2"),
    Case("pack_symmetric", "pack-quantized", symmetric=True),
    Case("pack_asymmetric", "pack-quantized"),
    Case("int8_rows", "int-quantized", bits=8, group_size=-1, symmetric=True),
]


def quantize(weight: torch.Tensor, case: Case) -> Matrix:
    columns = weight.shape[1]
    size = case.group_size if case.group_size > 0 else columns
    ranks = torch.arange(columns)
    if case.act_order:
        order = torch.Generator().manual_seed(columns)  # that of all matrices of this width
        ranks = torch.randperm(columns, generator=order)
    groups = ranks // size
    num_groups = columns // size
    most = 2**case.bits - 1
    scales = torch.empty(weight.shape[0], num_groups)
    zeros = torch.full_like(scales, 2 ** (case.bits - 1))
    for group in range(num_groups):
        part = weight[:, groups == group]
        if case.symmetric:
            scales[:, group] = part.abs().amax(1) / (most // 2)
        else:
            low = part.amin(1).clamp(max=0)
            scales[:, group] = (part.amax(1).clamp(min=0) - low) / most
            zeros[:, group] = torch.round(-low / scales[:, group]).clamp(0, most)
    scales = scales.half()
    zeros = zeros.int()
    values = torch.round(weight / scales.float()[:, groups]).int() + zeros[:, groups]
    return Matrix(values.clamp(0, most), scales, zeros, groups)


def linear_of(matrix: Matrix) -> torch.nn.Linear:
    linear = torch.nn.Linear(matrix.values.shape[1], matrix.values.shape[0], bias=False)
    linear.weight.data = matrix.plain()
    return linear


def pack_awq(matrix: Matrix, case: Case) -> Tensors:
    gemm = load_module("awq", "modules/linear/gemm.py")
    packed = gemm.WQLinear_GEMM.from_linear(
        linear_of(matrix), case.bits, case.group_size, scales=matrix.scales.t().float(),
        zeros=matrix.zeros.t().float())
    return {name: getattr(packed, name) for name in ("qweight", "qzeros", "scales")}


def pack_gptq(matrix: Matrix, case: Case) -> Tensors:
    rows, columns = matrix.values.shape
    cuda = load_module("auto_gptq", "nn_modules/qlinear/qlinear_cuda.py")
    packed = cuda.QuantLinear(case.bits, case.group_size, columns, rows, bias=False)
    # The tool stores zero points less one; GPTQModel's second format stores them as they are.
    zeros = matrix.zeros + (1 if case.tool == "gptq_v2" else 0)
    linear = linear_of(matrix)
    if case.tool == "gptq_v2":  # the tool rounds (weight + zero * scale) / scale
        linear.weight.data -= matrix.scales.float()[:, matrix.groups]
    packed.pack(linear, matrix.scales.float(), zeros.float(), matrix.groups.int())
    tensors = {name: getattr(packed, name) for name in ("qweight", "qzeros", "scales", "g_idx")}
    return tensors | {"scales": packed.scales.half()}


def scheme_of(case: Case) -> QuantizationScheme:
    weights = QuantizationArgs(
        num_bits=case.bits, type="int", symmetric=case.symmetric,
        strategy="group" if case.group_size > 0 else "channel",
        group_size=case.group_size if case.group_size > 0 else None)
    inputs = None
    if case.tool == "int-quantized":
        inputs = QuantizationArgs(num_bits=8, type="int", symmetric=True, strategy="token",
                                  dynamic=True)
    return QuantizationScheme(targets=["Linear"], weights=weights, input_activations=inputs)


def pack_compressed(matrix: Matrix, case: Case) -> Tensors:
    offset = 2 ** (case.bits - 1)
    state = {"weight": matrix.plain(), "weight_scale": matrix.scales}
    if not case.symmetric:
        state["weight_zero_point"] = (matrix.zeros - offset).to(torch.int8)
    packing = case.tool == "pack-quantized"
    compressor = PackedQuantizationCompressor if packing else NaiveQuantizationCompressor
    return compressor.compress(state, scheme_of(case))


def pack(matrix: Matrix, case: Case) -> Tensors:
    if case.tool == "awq":
        return pack_awq(matrix, case)
    return pack_gptq(matrix, case) if "gptq" in case.tool else pack_compressed(matrix, case)


def quantization_config(case: Case) -> Config:
    if case.tool == "awq":
        return {"quant_method": "awq", "bits": case.bits, "group_size": case.group_size,
                "zero_point": True, "version": "gemm"}
    if "gptq" in case.tool:
        return {"quant_method": "gptq", "bits": case.bits, "group_size": case.group_size,
                "sym": case.symmetric, "desc_act": case.act_order, "checkpoint_format": case.tool}
    return {"quant_method": "compressed-tensors", "format": case.tool,
            "quantization_status": "compressed", "ignore": ["lm_head"],
            "config_groups": {"group_0": json.loads(scheme_of(case).model_dump_json())}}


def write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=1, sort_keys=True) + "\n")


def write_case(case: Case, ids: torch.Tensor, output: Path) -> Config:
    folder = output / case.name
    folder.mkdir()
    generator = torch.Generator().manual_seed(7)
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model(**CONFIG)).float().eval()
    tensors: Tensors = {}
    for name, parameter in model.named_parameters():
        mean = 1.0 if "norm" in name else 0.0
        weight = mean + 0.3 * torch.randn(parameter.shape, generator=generator)
        if name.endswith("_proj.weight"):
            matrix = quantize(weight, case)
            parameter.data = matrix.plain()
            for suffix, tensor in pack(matrix, case).items():
                tensors[name.removesuffix("weight") + suffix] = tensor.contiguous()
        else:
            tensors[name] = weight.half()
            parameter.data = tensors[name].float()
    with torch.no_grad():
        logits = model(ids[None]).logits[0]
    write_json(folder / "config.json",
               CONFIG | {"quantization_config": quantization_config(case)})
    save_file(tensors, folder / "model.safetensors")
    save_file({"logits": logits.contiguous()}, folder / "logits.safetensors")
    return {"name": case.name, "weights": case.name, "config": f"{case.name}/config.json",
            "logits": f"{case.name}/logits.safetensors"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, required=True)
    args = parser.parse_args()
    torch.set_num_threads(1)
    ids = torch.randint(VOCAB_SIZE, (40,), generator=torch.Generator().manual_seed(0))
    shutil.rmtree(args.output, ignore_errors=True)
    args.output.mkdir(parents=True)
    packages = ["torch", "transformers", "compressed-tensors", "auto-gptq", "autoawq"]
    write_json(args.output / "cases.json",
               {"cases": [write_case(case, ids, args.output) for case in CASES],
                "input_ids": ids.tolist(), "vocab_size": VOCAB_SIZE,
                "made_with": {name: version(name) for name in packages}})


if __name__ == "__main__":
    main()
