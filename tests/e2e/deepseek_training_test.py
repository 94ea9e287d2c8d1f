"""The DeepSeek-V2 of tools/train: its experts, rotation and balance loss against plain references,
its checkpoint against the hub's names and, where transformers is installed, the hub's logits.
Skipped without PyTorch.

Usage: deepseek_training_test.py REPOSITORY
"""

from __future__ import annotations

import importlib.util
import json
import sys
import tempfile
import unittest
from dataclasses import replace
from pathlib import Path

_NEEDED = ("torch", "safetensors", "tokenizers", "numpy")
_missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
if _missing:
    print(f"skipped: python3 has no module {', '.join(_missing)}, which training needs")
    sys.exit(77)
sys.path.insert(0, str(Path(sys.argv.pop(1)) / "tools/train"))

import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import Tensor

from deepseek_v2 import DeepseekV2, DeepseekV2Config, MixtureOfExperts, rotate_pairs
from documents import LOSS_WEIGHTS
from model import rope_tables
from train import save_weights, weighted_loss

# A large balance loss, so that its gradient is far above rounding.
_CONFIG = DeepseekV2Config(
    vocab_size=64, hidden_size=32, intermediate_size=48, num_hidden_layers=3, num_attention_heads=2,
    max_position_embeddings=128, kv_lora_rank=12, qk_nope_head_dim=8, qk_rope_head_dim=6,
    v_head_dim=10, moe_intermediate_size=16, n_routed_experts=6, n_shared_experts=2,
    num_experts_per_tok=2, routed_scaling_factor=1.5, aux_loss_alpha=1.0)


def tiny_model(config: DeepseekV2Config = _CONFIG) -> DeepseekV2:
    """Random weights, large enough that scores and logits differ."""
    torch.manual_seed(5)
    model = DeepseekV2(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.2)
    return model.eval()


def some_ids(*shape: int) -> Tensor:
    return torch.randint(0, _CONFIG.vocab_size, shape, generator=torch.Generator().manual_seed(7))


def loop_over_experts(moe: MixtureOfExperts, token: Tensor) -> Tensor:
    """One token [hidden], by the matrices of its chosen experts as the checkpoint has them."""
    tensors = moe.state_dict()
    scores = (tensors["gate.weight"] @ token).softmax(dim=0)
    out = moe.shared_experts(token)
    for i in scores.topk(moe.config.num_experts_per_tok).indices.tolist():
        names = ("gate_proj", "up_proj", "down_proj")
        gate, up, down = (tensors[f"experts.{i}.{name}.weight"] for name in names)
        expert = down @ (F.silu(gate @ token) * (up @ token))
        out = out + moe.config.routed_scaling_factor * scores[i] * expert
    return out


class DeepseekTraining(unittest.TestCase):
    def setUp(self) -> None:
        torch.set_num_threads(1)

    def test_wide_experts_are_a_loop_over_the_chosen_ones(self) -> None:
        moe = tiny_model().model.layers[1].mlp
        x = torch.randn(2, 5, _CONFIG.hidden_size, generator=torch.Generator().manual_seed(8))
        with torch.no_grad():
            expected = torch.stack([loop_over_experts(moe, token) for token in x.flatten(0, 1)])
            torch.testing.assert_close(moe(x).flatten(0, 1), expected)

    def test_pairs_of_neighbours_are_rotated(self) -> None:
        x = torch.randn(1, 1, 9, 6, generator=torch.Generator().manual_seed(9))
        rotated = rotate_pairs(x, *rope_tables(_CONFIG, 9, x.device))
        pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)))
        frequencies = _CONFIG.rope_theta ** -(torch.arange(3) * 2 / 6)
        angles = torch.outer(torch.arange(9), frequencies)
        expected = pairs * torch.polar(torch.ones_like(angles), angles)
        torch.testing.assert_close(rotated, torch.cat([expected.real, expected.imag], dim=-1))

    def test_later_tokens_do_not_change_earlier_logits(self) -> None:
        model, ids = tiny_model(), some_ids(1, 12)
        with torch.no_grad():
            torch.testing.assert_close(model(ids)[:, :7], model(ids[:, :7]))

    def test_balance_loss_is_least_when_experts_are_chosen_evenly(self) -> None:
        moe = tiny_model().model.layers[1].mlp
        even = (torch.eye(6) + torch.eye(6).roll(1, 0))[None]
        scores = torch.full((1, 6, 6), 1 / 6)
        alpha = _CONFIG.aux_loss_alpha
        self.assertAlmostEqual(moe._balance_loss(scores, even > 0).item(), alpha, places=6)
        first_two = torch.tensor([1, 1, 0, 0, 0, 0]).expand(1, 6, 6)
        collapsed = moe._balance_loss(first_two * 0.5, first_two > 0).item()
        self.assertAlmostEqual(collapsed, 3 * alpha, places=6)

    def test_training_alone_adds_the_gradient_of_the_balance_loss(self) -> None:
        x = torch.randn(2, 5, _CONFIG.hidden_size, generator=torch.Generator().manual_seed(8))
        moe = tiny_model().model.layers[1].mlp
        gradients = []
        for is_training in (False, True):
            moe.train(is_training).zero_grad()
            moe(x).square().sum().backward()
            gradients.append(moe.gate.weight.grad.clone())
        moe.zero_grad()
        moe._balance_loss(*moe._route(x)).backward()
        self.assertGreater(moe.gate.weight.grad.abs().max().item(), 0)
        torch.testing.assert_close(gradients[1] - gradients[0], moe.gate.weight.grad)

    def test_loss_falls(self) -> None:
        model, ids = tiny_model().train(), some_ids(4, 20)
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
        kinds = torch.ones_like(ids)
        losses = []
        for _ in range(30):
            loss, _ = weighted_loss(model, ids, kinds, torch.tensor(LOSS_WEIGHTS))
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            losses.append(loss.item())
        self.assertLess(losses[-1], losses[0] / 2)

    def test_checkpoint_has_the_names_of_the_hub_and_is_read_again(self) -> None:
        model = tiny_model()
        with tempfile.TemporaryDirectory() as name:
            save_weights(model, Path(name))
            tensors = load_file(Path(name) / "model.safetensors")
        again = DeepseekV2(_CONFIG)
        again.load_state_dict(tensors)
        for parameter, read in zip(model.parameters(), again.parameters(), strict=True):
            torch.testing.assert_close(read, parameter.bfloat16().float())
        attention = {"q_proj", "kv_a_proj_with_mqa", "kv_a_layernorm", "kv_b_proj", "o_proj"}
        mlp = {"gate_proj", "up_proj", "down_proj"}
        experts = {f"experts.{i}.{name}" for i in range(6) for name in mlp}
        expected = {"embed_tokens.weight", "norm.weight"}
        for i in range(3):
            shared = {f"shared_experts.{name}" for name in mlp}
            inside = mlp if i == 0 else {"gate", *experts, *shared}
            expected |= {f"layers.{i}.self_attn.{name}.weight" for name in attention}
            expected |= {f"layers.{i}.mlp.{name}.weight" for name in inside}
            norms = ("input_layernorm", "post_attention_layernorm")
            expected |= {f"layers.{i}.{name}.weight" for name in norms}
        self.assertEqual(tensors.keys(), {f"model.{name}" for name in expected})

    def test_default_sizes_fit_3_6_megabytes(self) -> None:
        with torch.device("meta"):
            tensors = DeepseekV2(DeepseekV2Config()).state_dict().values()
        header = 120 * len(tensors)  # a name, a type, a shape and two offsets each
        self.assertLess(header + sum(2 * tensor.numel() for tensor in tensors), 3.6e6)

    @unittest.skipIf(importlib.util.find_spec("transformers") is None, "needs transformers")
    def test_logits_are_those_of_transformers(self) -> None:
        from transformers import AutoModelForCausalLM

        other = replace(_CONFIG, first_k_dense_replace=2, routed_scaling_factor=1.0)
        for config in (_CONFIG, other):
            model, ids = tiny_model(config), some_ids(2, 40)
            with tempfile.TemporaryDirectory() as name:
                save_weights(model, Path(name))
                content = config.to_hugging_face(bos_token_id=1, eos_token_id=2, pad_token_id=0)
                (Path(name) / "config.json").write_text(json.dumps(content))
                model.load_state_dict(load_file(Path(name) / "model.safetensors"))
                theirs = AutoModelForCausalLM.from_pretrained(name, dtype=torch.float32).eval()
            self.assertEqual(type(theirs).__name__, "DeepseekV2ForCausalLM")
            with torch.no_grad():
                torch.testing.assert_close(model(ids), theirs(ids).logits, rtol=0, atol=1e-4)


if __name__ == "__main__":
    unittest.main()
