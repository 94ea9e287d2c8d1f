"""Trains a block drafter in the way of DFlash (Chen et al. 2026): one pass drafts a whole block.

The block is the token at the anchor and a mask token for each draft. Its tokens see each other in both directions, and
the context as keys and values that each layer projects from the target's tapped states, reduced by `fc`. Embeddings
and logits are the target's own.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from drafter import ContextAttention, Drafter, Rope, gather_rows, load_tensors, sees_context
from model import LlamaConfig, Mlp
from training import Job, add_arguments, train

ARCHITECTURE = "DFlashDraftModel"


class BlockLayer(nn.Module):
    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        self.input_layernorm = nn.RMSNorm(config.hidden_size, eps=config.rms_norm_eps)
        self.self_attn = ContextAttention(config, config.hidden_size, has_qk_norm=True)
        self.post_attention_layernorm = nn.RMSNorm(config.hidden_size, eps=config.rms_norm_eps)
        self.mlp = Mlp(config.hidden_size, config.intermediate_size)


class BlockDrafter(Drafter):
    """The mask token is an id of the target's vocabulary that no text has. Block size counts the anchor."""

    def __init__(self, config: LlamaConfig, taps: tuple[int, ...], block_size: int, mask_token_id: int,
                 num_target_layers: int) -> None:
        super().__init__()
        self.config, self.taps = config, taps
        self.block_size, self.mask_token_id, self.num_target_layers = block_size, mask_token_id, num_target_layers
        self.max_drafts = block_size - 1
        self.layers = nn.ModuleList(BlockLayer(config) for _ in range(config.num_hidden_layers))
        self.fc = nn.Linear(len(taps) * config.hidden_size, config.hidden_size, bias=False)
        self.hidden_norm = nn.RMSNorm(config.hidden_size, eps=config.rms_norm_eps)
        self.norm = nn.RMSNorm(config.hidden_size, eps=config.rms_norm_eps)
        self.register_buffer("target_ids", torch.arange(config.vocab_size), persistent=False)
        self.initialize()

    def forward(self, embedding: Tensor, ids: Tensor, tapped: Tensor, anchors: Tensor, num_drafts: int,
                is_forced: bool) -> Tensor:
        """`is_forced` changes nothing: no draft is seen by another. The block always has its whole size."""
        length, size = tapped.shape[1], self.block_size
        rope = Rope(self.config, length + size, ids.device)
        context = self.hidden_norm(self.fc(tapped).float())
        context_rope = rope.at(torch.arange(length, device=ids.device)[None])
        offsets = torch.arange(size, device=ids.device)
        own_rope = rope.at((anchors[..., None] + offsets).flatten(1))
        tokens = torch.where(offsets == 0, gather_rows(ids, anchors)[..., None], self.mask_token_id)
        mask = self._mask(anchors, length)
        x = embedding[tokens.flatten(1)].float()
        for layer in self.layers:
            attention, normed = layer.self_attn, layer.input_layernorm(x)
            entries = attention.keys_values(context, *context_rope), attention.keys_values(normed, *own_rope)
            keys, values = map(list, zip(*entries, strict=True))
            x = x + attention(attention.queries(normed, *own_rope), keys, values, mask)
            x = x + layer.mlp(layer.post_attention_layernorm(x))
        drafts = self.norm(x).unflatten(1, (-1, size))[:, :, 1 : num_drafts + 1]
        return F.linear(drafts, embedding)

    def _mask(self, anchors: Tensor, length: int) -> Tensor:
        """[batch, 1, anchors * block size, length + anchors * block size]: the context, and the own block."""
        block = torch.arange(anchors.shape[1], device=anchors.device).repeat_interleave(self.block_size)
        own = (block[:, None] == block).expand(len(anchors), 1, -1, -1)
        return torch.cat([sees_context(anchors.repeat_interleave(self.block_size, dim=1), length), own], dim=-1)

    def to_hugging_face(self) -> dict[str, object]:
        """`target_layer_ids` counts as DFlash does: the states after layer i, which enter layer i + 1."""
        return {
            "architectures": [ARCHITECTURE], "model_type": "qwen3", **vars(self.config),
            "block_size": self.block_size, "num_target_layers": self.num_target_layers,
            "dflash_config": {"mask_token_id": self.mask_token_id, "target_layer_ids": [tap - 1 for tap in self.taps]},
            "layer_types": ["full_attention"] * self.config.num_hidden_layers,
            "hidden_act": "silu", "attention_bias": False, "rope_scaling": None, "tie_word_embeddings": True,
            "use_sliding_window": False, "torch_dtype": "bfloat16",
        }


def load_block(folder: Path) -> BlockDrafter:
    content = json.loads((folder / "config.json").read_text())
    config = LlamaConfig(**{name: content[name] for name in vars(LlamaConfig())})
    own = content["dflash_config"]
    drafter = BlockDrafter(config, tuple(i + 1 for i in own["target_layer_ids"]), content["block_size"],
                           own["mask_token_id"], content["num_target_layers"])
    load_tensors(drafter, folder)
    return drafter


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    add_arguments(parser, taps=(3, 7), num_drafts=7, anchor_share=0.125)
    parser.add_argument("--num-layers", type=int, default=2)
    parser.add_argument("--num-heads", type=int, default=2, help="of queries, and of keys and values")
    parser.add_argument("--intermediate-size", type=int, default=64)
    args = parser.parse_args()

    job = Job(args)
    config = job.draft_config(args.intermediate_size, num_hidden_layers=args.num_layers,
                              num_attention_heads=args.num_heads, num_key_value_heads=args.num_heads)
    drafter = BlockDrafter(config, job.taps, args.num_drafts + 1, job.pad, job.target.config.num_hidden_layers)
    with torch.no_grad():
        drafter.norm.weight.copy_(job.target.model.norm.weight)
    train(job, drafter)


if __name__ == "__main__":
    main()
