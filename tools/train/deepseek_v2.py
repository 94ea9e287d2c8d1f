"""DeepSeek-V2 in plain PyTorch: multi-head latent attention, and a mixture of experts.

`state_dict` is the checkpoint of the hub's `DeepseekV2ForCausalLM`, with queries of full rank
(`q_lora_rank` is null), softmax routing to the k best experts, and routing weights that are not
renormalized.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from model import CausalLm, Layer, Mlp, ModelConfig, rotate


@dataclass(frozen=True)
class DeepseekV2Config(ModelConfig):
    """About 1.8 million parameters: the BF16 checkpoint has less than 3.6 MB."""

    architecture = "DeepseekV2ForCausalLM"
    model_type = "deepseek_v2"

    hidden_size: int = 128
    intermediate_size: int = 256  # of the dense layers
    num_hidden_layers: int = 4
    num_attention_heads: int = 4
    rms_norm_eps: float = 1e-6
    kv_lora_rank: int = 64
    qk_nope_head_dim: int = 32
    qk_rope_head_dim: int = 64
    v_head_dim: int = 32
    first_k_dense_replace: int = 1
    moe_intermediate_size: int = 64
    n_routed_experts: int = 8
    n_shared_experts: int = 2
    num_experts_per_tok: int = 2
    # With equal scores, as at the start, the weights of the chosen experts then add up to 1.
    routed_scaling_factor: float = 4.0
    # The paper's value. With 0.001, some experts were chosen by no token in the first 80 steps.
    aux_loss_alpha: float = 0.003

    @property
    def rotary_dim(self) -> int:
        return self.qk_rope_head_dim

    @property
    def qk_head_dim(self) -> int:
        return self.qk_nope_head_dim + self.qk_rope_head_dim

    def to_hugging_face(
        self, bos_token_id: int, eos_token_id: int, pad_token_id: int
    ) -> dict[str, object]:
        return {
            **super().to_hugging_face(bos_token_id, eos_token_id, pad_token_id),
            "num_key_value_heads": self.num_attention_heads,
            "q_lora_rank": None,
            "moe_layer_freq": 1,
            "n_group": 1,
            "topk_group": 1,
            "topk_method": "greedy",
            "scoring_func": "softmax",
            "norm_topk_prob": False,
            "seq_aux": True,
        }


class LatentAttention(nn.Module):
    """Computes keys and values from one latent per token; all heads share a key's rotated part."""

    def __init__(self, config: DeepseekV2Config) -> None:
        super().__init__()
        self.config = config
        num_heads, rank = config.num_attention_heads, config.kv_lora_rank
        kv_head_dim = config.qk_nope_head_dim + config.v_head_dim
        self.q_proj = nn.Linear(config.hidden_size, num_heads * config.qk_head_dim, bias=False)
        self.kv_a_proj_with_mqa = nn.Linear(
            config.hidden_size, rank + config.qk_rope_head_dim, bias=False)
        self.kv_a_layernorm = nn.RMSNorm(rank, eps=config.rms_norm_eps)
        self.kv_b_proj = nn.Linear(rank, num_heads * kv_head_dim, bias=False)
        self.o_proj = nn.Linear(num_heads * config.v_head_dim, config.hidden_size, bias=False)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        nope, rope = self.config.qk_nope_head_dim, self.config.qk_rope_head_dim
        q_nope, q_rope = self._heads(self.q_proj(x)).split([nope, rope], dim=-1)
        latent, k_rope = self.kv_a_proj_with_mqa(x).split([self.config.kv_lora_rank, rope], dim=-1)
        entries = self._heads(self.kv_b_proj(self.kv_a_layernorm(latent)))
        k_nope, v = entries.split([nope, self.config.v_head_dim], dim=-1)
        k_rope = rotate_pairs(k_rope[:, None], cos, sin).expand(*k_nope.shape[:-1], rope)
        q = torch.cat([q_nope, rotate_pairs(q_rope, cos, sin)], dim=-1)
        k = torch.cat([k_nope, k_rope], dim=-1)
        # PyTorch's FlashAttention needs keys and values of one size.
        padded = F.pad(v, (0, self.config.qk_head_dim - self.config.v_head_dim))
        out = F.scaled_dot_product_attention(q, k, padded, is_causal=True)
        return self.o_proj(out[..., : self.config.v_head_dim].transpose(1, 2).flatten(2))

    def _heads(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.config.num_attention_heads, -1)).transpose(1, 2)


def rotate_pairs(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotates elements 2i and 2i + 1 as a pair. The first half of the result has the first elements
    of all pairs: queries and keys have the same order, so their products do not depend on it."""
    return rotate(x.unflatten(-1, (-1, 2)).transpose(-1, -2).flatten(-2), cos, sin)


class Experts(Mlp):
    """All routed experts side by side as one wide MLP, with activations scaled by routing weights.

    An expert that is not chosen has the weight zero, so the result is that of a loop over the
    chosen experts. Sorting the tokens by expert would save three quarters of the arithmetic, but
    gathers and scatters the tokens and leaves narrow GEMMs, which are bound by memory bandwidth.
    The checkpoint has separate matrices per expert.
    """

    def __init__(self, config: DeepseekV2Config) -> None:
        super().__init__(config.hidden_size, config.n_routed_experts * config.moe_intermediate_size)
        self.num_experts = config.n_routed_experts
        self.register_state_dict_post_hook(_split_experts)
        self.register_load_state_dict_pre_hook(_join_experts)

    def forward(self, x: Tensor, weights: Tensor) -> Tensor:
        """weights [batch, length, num_experts]."""
        inner = self.activations(x).unflatten(-1, (self.num_experts, -1))
        return self.down_proj((inner * weights[..., None]).flatten(-2))


# Each projection of `Experts`, and the dimension along which its experts lie side by side.
_EXPERT_DIMENSIONS = {"gate_proj": 0, "up_proj": 0, "down_proj": 1}


def _split_experts(experts: Experts, state: dict[str, Any], prefix: str, _metadata: object) -> None:
    for name, dimension in _EXPERT_DIMENSIONS.items():
        wide = state.pop(f"{prefix}{name}.weight")
        for i, part in enumerate(wide.chunk(experts.num_experts, dimension)):
            state[f"{prefix}{i}.{name}.weight"] = part


def _join_experts(experts: Experts, state: dict[str, Any], prefix: str, *_: object) -> None:
    for name, dimension in _EXPERT_DIMENSIONS.items():
        parts = [state.pop(f"{prefix}{i}.{name}.weight") for i in range(experts.num_experts)]
        state[f"{prefix}{name}.weight"] = torch.cat(parts, dimension)


class MixtureOfExperts(nn.Module):
    def __init__(self, config: DeepseekV2Config) -> None:
        super().__init__()
        self.config = config
        self.gate = nn.Linear(config.hidden_size, config.n_routed_experts, bias=False)
        self.experts = Experts(config)
        self.shared_experts = Mlp(
            config.hidden_size, config.n_shared_experts * config.moe_intermediate_size)

    def forward(self, x: Tensor) -> Tensor:
        scores, is_chosen = self._route(x)
        weights = scores * is_chosen * self.config.routed_scaling_factor
        out = self.experts(x, weights) + self.shared_experts(x)
        if self.training:
            out = _WithGradientOf.apply(out, self._balance_loss(scores, is_chosen))
        return out

    def _route(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Scores of the experts, and whether each is chosen: [batch, length, n_routed_experts]."""
        with torch.autocast(x.device.type, enabled=False):  # near scores decide, so they are FP32
            scores = F.linear(x.float(), self.gate.weight.float()).softmax(dim=-1)
        chosen = scores.topk(self.config.num_experts_per_tok, dim=-1, sorted=False).indices
        return scores, torch.zeros_like(scores, dtype=torch.bool).scatter(-1, chosen, True)

    def _balance_loss(self, scores: Tensor, is_chosen: Tensor) -> Tensor:
        """The hub's loss per sequence: products of each expert's mean score and its share of the
        tokens. It is `aux_loss_alpha` when experts are chosen equally often, otherwise larger."""
        frequency = is_chosen.float().mean(dim=1)
        frequency = frequency * self.config.n_routed_experts / self.config.num_experts_per_tok
        return self.config.aux_loss_alpha * (frequency * scores.mean(dim=1)).sum(dim=-1).mean()


class _WithGradientOf(torch.autograd.Function):
    """Passes `x` on, and adds the gradient of `loss` to that of the model's loss."""

    @staticmethod
    def forward(_ctx: Any, x: Tensor, _loss: Tensor) -> Tensor:
        return x.view_as(x)

    @staticmethod
    def backward(_ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
        return grad, torch.ones((), device=grad.device)


class DeepseekV2(CausalLm):
    config_type = DeepseekV2Config

    def __init__(self, config: DeepseekV2Config) -> None:
        super().__init__(config, (
            Layer(config, LatentAttention(config), _make_mlp(config, layer))
            for layer in range(config.num_hidden_layers)))


def _make_mlp(config: DeepseekV2Config, layer: int) -> nn.Module:
    if layer < config.first_k_dense_replace:
        return Mlp(config.hidden_size, config.intermediate_size)
    return MixtureOfExperts(config)
