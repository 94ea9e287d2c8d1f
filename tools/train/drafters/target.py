"""The model that drafts are made for, frozen: the states that drafters read."""

from __future__ import annotations

import json
import sys
from dataclasses import fields
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor

sys.path.append(str(Path(__file__).resolve().parents[1]))  # the modules of tools/train

from model import Llama, LlamaConfig, rope_tables


def load_target(folder: Path, device: torch.device) -> Llama:
    """BF16 on a GPU, as it is served there; FP32 on a CPU, where BF16 is slow."""
    torch.backends.cuda.enable_cudnn_sdp(False)  # it prepares a plan for every new shape, and generation has many
    model = Llama(read_llama_config(folder))
    model.load_state_dict(load_file(folder / "model.safetensors"))
    return model.to(device, torch.bfloat16 if device.type == "cuda" else torch.float32).eval().requires_grad_(False)


def read_llama_config(folder: Path) -> LlamaConfig:
    content = json.loads((folder / "config.json").read_text())
    return LlamaConfig(**{field.name: content[field.name] for field in fields(LlamaConfig)})


def check_taps(taps: tuple[int, ...], num_layers: int) -> None:
    if not taps or list(taps) != sorted(set(taps)) or taps[0] < 0 or taps[-1] >= num_layers:
        raise SystemExit(f"taps {list(taps)}: expected ascending layers from 0 to {num_layers - 1} of the model, "
                         "each tapped where its input enters")


@torch.no_grad()
def target_states(model: Llama, ids: Tensor, taps: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    """The inputs of the tapped layers, side by side [batch, length, taps * hidden], and the normed output
    [batch, length, hidden], whose product with the embeddings is the logits. ids [batch, length]."""
    cos, sin = rope_tables(model.config, ids.shape[1], ids.device)
    x = model.model.embed_tokens(ids)
    tapped = []
    for i, layer in enumerate(model.model.layers):
        if i in taps:
            tapped.append(x)
        x = layer(x, cos, sin)
    return torch.cat(tapped, dim=-1), model.model.norm(x)
