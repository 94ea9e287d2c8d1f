"""Trains an EAGLE-3 head (Li et al. 2025): one layer that drafts token after token from its own outputs.

The head's input at position t is the target's tapped states there, reduced by `fc`, and the embedding of the token at
t + 1; its output gives the token at t + 2, and takes the states' place where the target has not been yet. Training
unrolls these steps (training-time test): later steps see the context's keys up to the anchor, which come from the
target's states, and those of their own earlier steps.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path

import torch
from torch import Tensor, nn

from drafter import ContextAttention, Drafter, Rope, gather_rows, load_tensors, sees_context
from model import LlamaConfig, Mlp
from training import Job, add_arguments, answer_ids, train

ARCHITECTURE = "LlamaForCausalLMEagle3"


class MidLayer(nn.Module):
    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        self.input_layernorm = nn.RMSNorm(config.hidden_size, eps=config.rms_norm_eps)
        self.hidden_norm = nn.RMSNorm(config.hidden_size, eps=config.rms_norm_eps)
        self.self_attn = ContextAttention(config, 2 * config.hidden_size, has_qk_norm=False)
        self.post_attention_layernorm = nn.RMSNorm(config.hidden_size, eps=config.rms_norm_eps)
        self.mlp = Mlp(config.hidden_size, config.intermediate_size)

    def joined(self, embedded: Tensor, hidden: Tensor) -> Tensor:
        return torch.cat([self.input_layernorm(embedded), self.hidden_norm(hidden)], dim=-1)


class Eagle3Head(Drafter):
    """d2t is the difference of the target's id and the draft's, by draft id; t2d says which ids of the target are
    drafted. `config.vocab_size` is the target's."""

    def __init__(self, config: LlamaConfig, taps: tuple[int, ...], target_ids: Tensor) -> None:
        super().__init__()
        self.config, self.taps = config, taps
        self.midlayer = MidLayer(config)
        self.fc = nn.Linear(len(taps) * config.hidden_size, config.hidden_size, bias=False)
        self.norm = nn.RMSNorm(config.hidden_size, eps=config.rms_norm_eps)
        self.lm_head = nn.Linear(config.hidden_size, len(target_ids), bias=False)
        self.register_buffer("d2t", target_ids - torch.arange(len(target_ids)))
        self.register_buffer("t2d", torch.isin(torch.arange(config.vocab_size), target_ids))
        self.initialize()

    @property
    def target_ids(self) -> Tensor:
        return self.d2t + torch.arange(len(self.d2t), device=self.d2t.device)

    def forward(self, embedding: Tensor, ids: Tensor, tapped: Tensor, anchors: Tensor, num_drafts: int,
                is_forced: bool) -> Tensor:
        layer, attention = self.midlayer, self.midlayer.self_attn
        length, num_anchors = tapped.shape[1], anchors.shape[1]
        rope = Rope(self.config, length + num_drafts, ids.device)
        fused = self.fc(tapped).float()
        joined = layer.joined(embedding[ids[:, 1:]].float(), fused)
        k, v = attention.keys_values(joined, *rope.at(torch.arange(length, device=ids.device)[None]))
        keys, values = [k], [v]
        masks = [sees_context(anchors, length)]
        own = torch.eye(num_anchors, dtype=torch.bool, device=ids.device).expand(len(ids), 1, -1, -1)
        hidden, joined = gather_rows(fused, anchors - 1), gather_rows(joined, anchors - 1)
        logits: list[Tensor] = []
        for step in range(num_drafts):
            cos, sin = rope.at(anchors - 1 + step)
            if step:
                token = self._token(ids, anchors + step, logits[-1], is_forced)
                joined = layer.joined(embedding[token].float(), hidden)
                k, v = attention.keys_values(joined, cos, sin)
                keys.append(k)
                values.append(v)
                masks.append(own)
            hidden = hidden + attention(attention.queries(joined, cos, sin), keys, values, torch.cat(masks, dim=-1))
            hidden = hidden + layer.mlp(layer.post_attention_layernorm(hidden))
            logits.append(self.lm_head(self.norm(hidden)))
        return torch.stack(logits, dim=2)

    def _token(self, ids: Tensor, positions: Tensor, logits: Tensor, is_forced: bool) -> Tensor:
        if is_forced:
            return gather_rows(ids, positions.clamp(max=ids.shape[1] - 1))
        return self.target_ids[logits.argmax(-1)]

    def to_hugging_face(self) -> dict[str, object]:
        """`eagle_aux_hidden_state_layer_ids` counts as vLLM does: layer i is tapped where its input enters."""
        return {
            "architectures": [ARCHITECTURE], "model_type": "llama", **vars(self.config), "num_hidden_layers": 1,
            "draft_vocab_size": len(self.d2t), "target_hidden_size": self.config.hidden_size,
            "eagle_aux_hidden_state_layer_ids": list(self.taps),
            "hidden_act": "silu", "attention_bias": False, "mlp_bias": False, "rope_scaling": None,
            "tie_word_embeddings": False, "torch_dtype": "bfloat16",
        }


def load_eagle3(folder: Path) -> Eagle3Head:
    content = json.loads((folder / "config.json").read_text())
    config = LlamaConfig(**{name: content[name] for name in vars(LlamaConfig())})
    head = Eagle3Head(config, tuple(content["eagle_aux_hidden_state_layer_ids"]),
                      torch.arange(content["draft_vocab_size"]))
    load_tensors(head, folder)
    return head


def draft_vocabulary(ids: Tensor, size: int) -> tuple[Tensor, float]:
    """The `size` most frequent ids, ascending, and their share of all occurrences."""
    counts = Counter(ids.tolist())
    frequent = counts.most_common(size)
    unseen = (i for i in range(size + len(counts)) if i not in counts)
    chosen = [i for i, _ in frequent] + [next(unseen) for _ in range(size - len(frequent))]
    return torch.tensor(sorted(chosen)), sum(count for _, count in frequent) / len(ids)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    add_arguments(parser, taps=(2, 5, 7), num_drafts=5, anchor_share=0.25)
    parser.add_argument("--num-heads", type=int, default=2, help="of queries, and of keys and values")
    parser.add_argument("--intermediate-size", type=int, default=128)
    parser.add_argument("--draft-vocabulary", type=int, default=512, help="the tokens that answers use most")
    parser.add_argument("--vocabulary-tokens", type=int, default=2_000_000, help="read to count them")
    args = parser.parse_args()

    job = Job(args)
    job.log.write(counting=f"the answers in {args.vocabulary_tokens} tokens")
    target_ids, coverage = draft_vocabulary(answer_ids(job, args.vocabulary_tokens), args.draft_vocabulary)
    job.log.write(draft_vocabulary=len(target_ids), coverage=coverage)
    config = job.draft_config(args.intermediate_size, num_hidden_layers=1, num_attention_heads=args.num_heads,
                              num_key_value_heads=args.num_heads)
    head = Eagle3Head(config, job.taps, target_ids)
    with torch.no_grad():  # the rows of the target's tied head, and the norm before it, are near the right ones
        head.lm_head.weight.copy_(job.target.model.embed_tokens.weight[target_ids.to(job.device)])
        head.norm.weight.copy_(job.target.model.norm.weight)
    train(job, head)


if __name__ == "__main__":
    main()
