"""The model that drafts are made for, frozen: the states that drafters read, and greedy answers."""

from __future__ import annotations

import json
import sys
from dataclasses import fields
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import Tensor

sys.path.append(str(Path(__file__).resolve().parents[1]))  # the modules of tools/train

from model import Attention, Llama, LlamaConfig, rope_tables, rotate


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


def greedy_answers(model: Llama, prompts: list[list[int]], eos: int, max_tokens: int, batch_size: int) -> list[list[int]]:
    """The ids that follow each prompt, with the end token if it came within `max_tokens`."""
    answers: list[list[int]] = [[] for _ in prompts]
    by_length = sorted(range(len(prompts)), key=lambda i: len(prompts[i]))
    for first in range(0, len(prompts), batch_size):
        chosen = by_length[first : first + batch_size]
        for i, answer in zip(chosen, _generate(model, [prompts[i] for i in chosen], eos, max_tokens), strict=True):
            answers[i] = answer
    return answers


@torch.no_grad()
def _generate(model: Llama, prompts: list[list[int]], eos: int, max_tokens: int) -> list[list[int]]:
    """Prompts are padded at the end. A generated token overwrites the padding at its position before any query sees
    that position, so padding is never attended to."""
    device = model.model.embed_tokens.weight.device
    lengths = torch.tensor([len(prompt) for prompt in prompts], device=device)
    longest = int(lengths.max())
    ids = torch.tensor([prompt + [eos] * (longest - len(prompt)) for prompt in prompts], device=device)
    cache = _Cache(model, len(prompts), longest + max_tokens)
    states = cache.extend(ids, torch.arange(longest, device=device).expand_as(ids))
    states = states[torch.arange(len(prompts), device=device), lengths - 1]
    generated = []
    is_done = torch.zeros_like(lengths, dtype=torch.bool)
    for step in range(max_tokens):
        token = F.linear(states, model.model.embed_tokens.weight).argmax(-1)
        generated.append(token)
        is_done |= token == eos
        if is_done.all():
            break
        states = cache.extend(token[:, None], (lengths + step)[:, None])[:, 0]
    return [_until(row, eos) for row in torch.stack(generated, dim=1).tolist()]


def _until(ids: list[int], eos: int) -> list[int]:
    return ids[: ids.index(eos) + 1] if eos in ids else ids


class _Cache:
    """Keys and values of a batch of sequences, by position."""

    def __init__(self, model: Llama, batch: int, capacity: int) -> None:
        config, weight = model.config, model.model.embed_tokens.weight
        shape = (config.num_hidden_layers, 2, batch, capacity, config.num_key_value_heads, config.head_dim)
        self._model = model
        self._entries = torch.zeros(shape, device=weight.device, dtype=weight.dtype)
        self._cos, self._sin = rope_tables(config, capacity, weight.device)

    def extend(self, ids: Tensor, positions: Tensor) -> Tensor:
        """Adds tokens, ids and positions both [batch, n], and returns their normed outputs [batch, n, hidden]."""
        body = self._model.model
        length = int(positions.max()) + 1
        mask = (torch.arange(length, device=ids.device) <= positions[..., None])[:, None]
        cos, sin = self._cos[positions][:, None], self._sin[positions][:, None]
        x = body.embed_tokens(ids)
        for layer, entries in zip(body.layers, self._entries, strict=True):
            x = x + self._attend(layer.self_attn, layer.input_layernorm(x), cos, sin, entries, positions, mask)
            x = x + layer.mlp(layer.post_attention_layernorm(x))
        return body.norm(x)

    def _attend(self, attention: Attention, x: Tensor, cos: Tensor, sin: Tensor, entries: Tensor, positions: Tensor,
                mask: Tensor) -> Tensor:
        q, k, v = (projection(x).unflatten(-1, (-1, attention.head_dim)).transpose(1, 2)
                   for projection in (attention.q_proj, attention.k_proj, attention.v_proj))
        rows = torch.arange(x.shape[0], device=x.device)[:, None]
        entries[0][rows, positions] = rotate(k, cos, sin).transpose(1, 2)
        entries[1][rows, positions] = v.transpose(1, 2)
        k, v = (e[:, : mask.shape[-1]].transpose(1, 2).repeat_interleave(attention.group, dim=1) for e in entries)
        out = F.scaled_dot_product_attention(rotate(q, cos, sin), k, v, attn_mask=mask)
        return attention.o_proj(out.transpose(1, 2).flatten(2))
