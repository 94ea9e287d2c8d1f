"""The parts that both drafters share: attention over a context and a few own tokens, and the checkpoint.

A drafter reads a target's tapped states. It drafts at *anchors*: the token at an anchor's position is known, the states
of all positions before it are there, and the tokens that follow are drafted. Training and measurement draft at many
anchors of a row at once; each sees only the context before it and its own drafts.
"""

from __future__ import annotations

import json
import math
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

import target  # puts tools/train on the path of modules
from model import LlamaConfig, rope_tables, rotate


class Drafter(nn.Module):
    """`state_dict` is the checkpoint. `target_ids` [draft vocabulary] are the target's ids by draft id."""

    max_drafts: float = math.inf  # at one anchor
    config: LlamaConfig
    taps: tuple[int, ...]
    target_ids: Tensor

    def forward(self, embedding: Tensor, ids: Tensor, tapped: Tensor, anchors: Tensor, num_drafts: int,
                is_forced: bool) -> Tensor:
        """Logits of the drafts [batch, anchors, num_drafts, draft vocabulary].

        embedding [vocabulary, hidden] is the target's; ids [batch, length + 1]; tapped [batch, length, taps * hidden];
        anchors [batch, anchors], from 1 to length. A draft depends on the drafts before it: with `is_forced` on the
        tokens that ids have there, otherwise on the likeliest ones.
        """
        raise NotImplementedError

    def to_hugging_face(self) -> dict[str, object]:
        raise NotImplementedError

    def save(self, folder: Path) -> None:
        """BF16, written beside the file and then moved, so that a killed run leaves a whole one."""
        tensors = {name: tensor.detach().to("cpu", torch.bfloat16 if tensor.is_floating_point() else tensor.dtype)
                   for name, tensor in self.state_dict().items()}
        temporary = folder / "model.safetensors.tmp"
        save_file(tensors, temporary, metadata={"format": "pt"})
        temporary.replace(folder / "model.safetensors")

    def save_config(self, folder: Path) -> None:
        (folder / "config.json").write_text(json.dumps(self.to_hugging_face(), indent=2) + "\n")

    def num_bytes(self) -> int:
        """Of the checkpoint's tensors."""
        return sum(t.numel() * (2 if t.is_floating_point() else t.element_size()) for t in self.state_dict().values())

    def initialize(self) -> None:
        for parameter in self.parameters():
            if parameter.ndim == 2:
                nn.init.normal_(parameter, std=0.02)


def load_tensors(drafter: Drafter, folder: Path) -> None:
    drafter.load_state_dict(load_file(folder / "model.safetensors"))


class HeadNorm(nn.RMSNorm):
    """Computed in FP32, also under autocast."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.float()).to(x.dtype)


class ContextAttention(nn.Module):
    """Queries of drafts over keys and values of the context and of the drafts, which the caller puts together."""

    def __init__(self, config: LlamaConfig, input_size: int, *, has_qk_norm: bool) -> None:
        super().__init__()
        self.head_dim = config.head_dim
        self.group = config.num_attention_heads // config.num_key_value_heads
        q_size = config.num_attention_heads * config.head_dim
        kv_size = config.num_key_value_heads * config.head_dim
        self.q_proj = nn.Linear(input_size, q_size, bias=False)
        self.k_proj = nn.Linear(input_size, kv_size, bias=False)
        self.v_proj = nn.Linear(input_size, kv_size, bias=False)
        self.o_proj = nn.Linear(q_size, config.hidden_size, bias=False)
        norm = HeadNorm if has_qk_norm else nn.Identity
        self.q_norm, self.k_norm = (norm(config.head_dim, eps=config.rms_norm_eps) for _ in range(2))

    def queries(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        return rotate(self.q_norm(self._heads(self.q_proj(x))), cos, sin)

    def keys_values(self, x: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
        """Both [batch, key/value heads, length, head_dim]."""
        return rotate(self.k_norm(self._heads(self.k_proj(x))), cos, sin), self._heads(self.v_proj(x))

    def forward(self, q: Tensor, keys: list[Tensor], values: list[Tensor], mask: Tensor) -> Tensor:
        """mask [batch, 1, queries, all keys]: True where a query sees a key."""
        k, v = (torch.cat(parts, dim=2).repeat_interleave(self.group, dim=1) for parts in (keys, values))
        out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return self.o_proj(out.transpose(1, 2).flatten(2))

    def _heads(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (-1, self.head_dim)).transpose(1, 2)


class Rope:
    """cos and sin, both [batch, 1, length, head_dim], of positions [batch, length]."""

    def __init__(self, config: LlamaConfig, length: int, device: torch.device) -> None:
        self._cos, self._sin = rope_tables(config, length, device)

    def at(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        return self._cos[positions][:, None], self._sin[positions][:, None]


def sees_context(anchors: Tensor, length: int) -> Tensor:
    """[batch, 1, anchors, length]: an anchor sees the positions before its own."""
    return (torch.arange(length, device=anchors.device) < anchors[..., None])[:, None]


def gather_rows(x: Tensor, rows: Tensor) -> Tensor:
    """x [batch, length, ...], rows [batch, n] -> [batch, n, ...]."""
    return x[torch.arange(x.shape[0], device=x.device)[:, None], rows]
