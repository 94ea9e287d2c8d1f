"""A Llama in plain PyTorch, and the parts that it shares with `deepseek_v2.py`.

Module names are Hugging Face's, so `state_dict` is the checkpoint.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn


@dataclass(frozen=True)
class ModelConfig:
    """The fields of every architecture, with Hugging Face's names."""

    architecture: ClassVar[str]
    model_type: ClassVar[str]

    vocab_size: int = 4096
    hidden_size: int = 384
    intermediate_size: int = 1024
    num_hidden_layers: int = 8
    num_attention_heads: int = 8
    max_position_embeddings: int = 4096
    rms_norm_eps: float = 1e-5
    rope_theta: float = 10000.0

    @property
    def rotary_dim(self) -> int:
        """Elements of a head that are rotated."""
        raise NotImplementedError

    def to_hugging_face(
        self, bos_token_id: int, eos_token_id: int, pad_token_id: int
    ) -> dict[str, object]:
        return {
            "architectures": [self.architecture],
            "model_type": self.model_type,
            **vars(self),
            "hidden_act": "silu",
            "attention_bias": False,
            "attention_dropout": 0.0,
            "rope_scaling": None,
            "initializer_range": 0.02,
            "tie_word_embeddings": True,
            "use_cache": True,
            "bos_token_id": bos_token_id,
            "eos_token_id": eos_token_id,
            "pad_token_id": pad_token_id,
            "torch_dtype": "bfloat16",
        }


@dataclass(frozen=True)
class LlamaConfig(ModelConfig):
    architecture = "LlamaForCausalLM"
    model_type = "llama"

    num_key_value_heads: int = 4
    head_dim: int = 64

    @property
    def rotary_dim(self) -> int:
        return self.head_dim

    def to_hugging_face(
        self, bos_token_id: int, eos_token_id: int, pad_token_id: int
    ) -> dict[str, object]:
        common = super().to_hugging_face(bos_token_id, eos_token_id, pad_token_id)
        return {**common, "mlp_bias": False}


def rope_tables(config: ModelConfig, length: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """cos and sin, both [length, rotary_dim], in the half-rotated layout."""
    exponent = torch.arange(0, config.rotary_dim, 2, device=device).float() / config.rotary_dim
    angles = torch.outer(torch.arange(length, device=device).float(), config.rope_theta**-exponent)
    angles = torch.cat([angles, angles], dim=-1)
    return angles.cos(), angles.sin()


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """x [batch, heads, length, head_dim]."""
    low, high = x.chunk(2, dim=-1)
    return (x * cos + torch.cat([-high, low], dim=-1) * sin).to(x.dtype)


class Attention(nn.Module):
    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        self.head_dim = config.head_dim
        self.group = config.num_attention_heads // config.num_key_value_heads
        q_size = config.num_attention_heads * config.head_dim
        kv_size = config.num_key_value_heads * config.head_dim
        self.q_proj = nn.Linear(config.hidden_size, q_size, bias=False)
        self.k_proj = nn.Linear(config.hidden_size, kv_size, bias=False)
        self.v_proj = nn.Linear(config.hidden_size, kv_size, bias=False)
        self.o_proj = nn.Linear(q_size, config.hidden_size, bias=False)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        q = rotate(self._heads(self.q_proj(x)), cos, sin)
        k = rotate(self._heads(self.k_proj(x)), cos, sin).repeat_interleave(self.group, dim=1)
        v = self._heads(self.v_proj(x)).repeat_interleave(self.group, dim=1)
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.o_proj(out.transpose(1, 2).flatten(2))

    def _heads(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (-1, self.head_dim)).transpose(1, 2)


class Mlp(nn.Module):
    def __init__(self, hidden_size: int, intermediate_size: int) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(hidden_size, intermediate_size, bias=False)
        self.up_proj = nn.Linear(hidden_size, intermediate_size, bias=False)
        self.down_proj = nn.Linear(intermediate_size, hidden_size, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.down_proj(self.activations(x))

    def activations(self, x: Tensor) -> Tensor:
        return F.silu(self.gate_proj(x)) * self.up_proj(x)


class Layer(nn.Module):
    def __init__(self, config: ModelConfig, attention: nn.Module, mlp: nn.Module) -> None:
        super().__init__()
        self.input_layernorm = nn.RMSNorm(config.hidden_size, eps=config.rms_norm_eps)
        self.self_attn = attention
        self.post_attention_layernorm = nn.RMSNorm(config.hidden_size, eps=config.rms_norm_eps)
        self.mlp = mlp

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        x = x + self.self_attn(self.input_layernorm(x), cos, sin)
        return x + self.mlp(self.post_attention_layernorm(x))


class Body(nn.Module):
    def __init__(self, config: ModelConfig, layers: Iterable[Layer]) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList(layers)
        self.norm = nn.RMSNorm(config.hidden_size, eps=config.rms_norm_eps)


class CausalLm(nn.Module):
    """Tied embeddings: the checkpoint has no `lm_head.weight`."""

    config_type: ClassVar[type[ModelConfig]]

    def __init__(self, config: ModelConfig, layers: Iterable[Layer]) -> None:
        super().__init__()
        self.config = config
        self.model = Body(config, layers)
        residual_std = 0.02 / (2 * config.num_hidden_layers) ** 0.5
        for name, parameter in self.named_parameters():
            if parameter.ndim == 2:
                is_residual = name.endswith(("o_proj.weight", "down_proj.weight"))
                nn.init.normal_(parameter, std=residual_std if is_residual else 0.02)

    def forward(self, ids: Tensor) -> Tensor:
        """ids [batch, length] -> logits [batch, length, vocab_size]."""
        return F.linear(self.states(ids), self.model.embed_tokens.weight)

    def states(self, ids: Tensor) -> Tensor:
        """ids [batch, length] -> the normed outputs [batch, length, hidden_size]."""
        cos, sin = rope_tables(self.config, ids.shape[1], ids.device)
        x = self.model.embed_tokens(ids)
        for layer in self.model.layers:
            x = layer(x, cos, sin)
        return self.model.norm(x)


class Llama(CausalLm):
    config_type = LlamaConfig

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__(config, (
            Layer(config, Attention(config), Mlp(config.hidden_size, config.intermediate_size))
            for _ in range(config.num_hidden_layers)))
