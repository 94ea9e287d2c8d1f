"""The training code of the drafters, with a tiny target: the loss falls, training drafts what plain inference drafts,
and the measured lengths are those of a decoding loop with verification. Skipped without PyTorch.

Usage: drafter_training_test.py REPOSITORY
"""

from __future__ import annotations

import importlib.util
import sys
import tempfile
import unittest
from pathlib import Path

_NEEDED = ("torch", "safetensors", "tokenizers", "numpy")
_missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
if _missing:
    print(f"skipped: python3 has no module {', '.join(_missing)}, which training needs")
    sys.exit(77)
sys.path.insert(0, str(Path(sys.argv.pop(1)) / "tools/train/drafters"))

import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import Tensor

import measure
from drafter import Drafter, Rope
from target import target_states
from train_block import BlockDrafter, load_block
from train_eagle3 import Eagle3Head, draft_vocabulary, load_eagle3
from training import Step, choose_anchors, draft_weights, own_tokens

from documents import Loss
from evaluate import greedy_answers
from model import Llama, LlamaConfig

_CONFIG = LlamaConfig(vocab_size=64, hidden_size=32, intermediate_size=48, num_hidden_layers=3, num_attention_heads=4,
                      num_key_value_heads=2, head_dim=8, max_position_embeddings=128)
_TAPS = (1, 2)
_EOS = 2


def tiny_target() -> Llama:
    """Random weights, large enough that its greedy output wanders."""
    torch.manual_seed(5)
    target = Llama(_CONFIG)
    with torch.no_grad():
        for parameter in target.parameters():
            if parameter.ndim == 2:
                parameter.normal_(std=0.3)
    return target.requires_grad_(False)


def tiny_drafters() -> list[Drafter]:
    torch.manual_seed(6)
    eagle_ids = torch.tensor([i for i in range(64) if i % 5])
    return [Eagle3Head(_CONFIG, _TAPS, eagle_ids), BlockDrafter(_CONFIG, _TAPS, 6, mask_token_id=0, num_target_layers=3)]


def target_texts(target: Llama, count: int) -> tuple[list[list[int]], list[list[int]]]:
    """Random prompts of several lengths, and the target's greedy answers to them."""
    generator = torch.Generator().manual_seed(7)
    prompts = [torch.randint(3, 64, (5 + i % 4,), generator=generator).tolist() for i in range(count)]
    return prompts, greedy_answers(target, prompts, _EOS, max_tokens=30, batch_size=3)


def plain_eagle3(head: Eagle3Head, embedding: Tensor, ids: list[int], tapped: Tensor, num_drafts: int) -> list[int]:
    """Drafts one token per step, the whole sequence computed anew in each. tapped [len(ids) - 1, taps * hidden]."""
    layer, attention = head.midlayer, head.midlayer.self_attn
    tokens, hidden = list(ids[1:]), head.fc(tapped)[None]
    for _ in range(num_drafts):
        joined = layer.joined(embedding[torch.tensor(tokens)][None], hidden)
        cos, sin = Rope(head.config, len(tokens), hidden.device).at(torch.arange(len(tokens))[None])
        k, v = attention.keys_values(joined, cos, sin)
        causal = torch.ones(len(tokens), len(tokens), dtype=torch.bool).tril()[None, None]
        out = hidden + attention(attention.queries(joined, cos, sin), [k], [v], causal)
        out = out + layer.mlp(layer.post_attention_layernorm(out))
        draft = head.lm_head(head.norm(out[0, -1])).argmax()
        tokens.append(int(draft + head.d2t[draft]))
        hidden = torch.cat([hidden, out[:, -1:]], dim=1)
    return tokens[-num_drafts:]


def plain_block(drafter: BlockDrafter, embedding: Tensor, ids: list[int], tapped: Tensor, num_drafts: int) -> list[int]:
    """One block after one context, in which everything is seen, so that there is no mask."""
    size = drafter.block_size
    context = drafter.hidden_norm(drafter.fc(tapped))[None]
    rope = Rope(drafter.config, len(ids) + size, context.device)
    before, own = (rope.at(positions[None]) for positions in torch.arange(len(ids) - 1 + size).split(
        [len(ids) - 1, size]))
    x = embedding[torch.tensor([ids[-1]] + [drafter.mask_token_id] * (size - 1))][None]
    for layer in drafter.layers:
        attention, normed = layer.self_attn, layer.input_layernorm(x)
        entries = attention.keys_values(context, *before), attention.keys_values(normed, *own)
        k, v = (torch.cat(parts, dim=2).repeat_interleave(attention.group, dim=1) for parts in zip(*entries))
        out = F.scaled_dot_product_attention(attention.queries(normed, *own), k, v)
        x = x + attention.o_proj(out.transpose(1, 2).flatten(2))
        x = x + layer.mlp(layer.post_attention_layernorm(x))
    return F.linear(drafter.norm(x[0, 1 : num_drafts + 1]), embedding).argmax(-1).tolist()


@torch.no_grad()
def plain_drafts(target: Llama, drafter: Drafter, ids: list[int], num_drafts: int) -> list[int]:
    tapped = target_states(target, torch.tensor([ids[:-1]]), drafter.taps)[0][0]
    plain = plain_eagle3 if isinstance(drafter, Eagle3Head) else plain_block
    return plain(drafter, target.model.embed_tokens.weight, ids, tapped, num_drafts)


@torch.no_grad()
def next_tokens(target: Llama, ids: list[int]) -> list[int]:
    return target(torch.tensor([ids]))[0].argmax(-1).tolist()


def decode(target: Llama, drafter: Drafter, prompt: list[int], num_tokens: int, num_drafts: int) -> list[list[int]]:
    """The tokens of each round of a decoding loop with verification, after the first token."""
    ids, rounds = prompt + next_tokens(target, prompt)[-1:], []
    while len(ids) - len(prompt) < num_tokens and ids[-1] != _EOS:
        drafts = plain_drafts(target, drafter, ids, num_drafts)
        sampled = next_tokens(target, ids + drafts)[len(ids) - 1 :]
        num_accepted = next((i for i, draft in enumerate(drafts) if draft != sampled[i]), num_drafts)
        rounds.append(sampled[: num_accepted + 1][: num_tokens - (len(ids) - len(prompt))])
        if _EOS in rounds[-1]:
            rounds[-1] = rounds[-1][: rounds[-1].index(_EOS) + 1]
        ids += rounds[-1]
    return rounds


def train_shortly(target: Llama, drafter: Drafter, steps: int) -> list[float]:
    """The losses of training on the target's own answers."""
    prompts, answers = target_texts(target, 24)
    rows = [(prompt + answer + [0] * 40)[:36] for prompt, answer in zip(prompts, answers)]
    kinds = [([int(Loss.PROMPT)] * len(prompt) + [int(Loss.ANSWER)] * len(answer) + [int(Loss.NONE)] * 40)[:36]
             for prompt, answer in zip(prompts, answers)]
    step = Step(target, drafter, num_drafts=4, anchor_share=0.5)
    optimizer = torch.optim.AdamW(drafter.parameters(), lr=0.01)
    losses = []
    for _ in range(steps):
        loss, _ = step(torch.tensor(rows), torch.tensor(kinds))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses


class DrafterTraining(unittest.TestCase):
    def setUp(self) -> None:
        torch.set_num_threads(1)
        self.target = tiny_target()

    def test_greedy_answers_are_those_of_each_prompt_alone(self) -> None:
        for prompt, answer in zip(*target_texts(self.target, 5)):
            self.assertEqual(answer, next_tokens(self.target, prompt + answer)[len(prompt) - 1 : -1])

    def test_training_drafts_what_plain_inference_drafts(self) -> None:
        torch.manual_seed(8)
        ids = torch.randint(3, 64, (2, 21))
        anchors = torch.tensor([[1, 4, 5, 20], [13, 2, 20, 6]])
        for drafter in tiny_drafters():
            tapped, _ = target_states(self.target, ids[:, :-1], drafter.taps)
            with torch.no_grad():
                logits = drafter(self.target.model.embed_tokens.weight, ids, tapped, anchors, 5, is_forced=False)
            drafted = drafter.target_ids[logits.argmax(-1)]
            for row in range(2):
                for i, anchor in enumerate(anchors[row].tolist()):
                    plain = plain_drafts(self.target, drafter, ids[row, : anchor + 1].tolist(), 5)
                    self.assertEqual(drafted[row, i].tolist(), plain, f"{type(drafter).__name__} at {anchor}")

    def test_forced_drafts_equal_own_ones_where_these_are_the_text(self) -> None:
        head = tiny_drafters()[0]
        ids = torch.randint(3, 64, (1, 12), generator=torch.Generator().manual_seed(9))
        drafts = plain_drafts(self.target, head, ids[0].tolist(), 4)
        text = torch.cat([ids, torch.tensor([drafts])], dim=1)
        tapped, _ = target_states(self.target, text[:, :-1], head.taps)
        logits = [head(self.target.model.embed_tokens.weight, text, tapped, torch.tensor([[11]]), 4, is_forced)
                  for is_forced in (True, False)]
        torch.testing.assert_close(*logits)

    def test_loss_falls_and_measured_lengths_are_those_of_decoding(self) -> None:
        for drafter in tiny_drafters():
            losses = train_shortly(self.target, drafter, 40)
            self.assertLess(losses[-1], losses[0] - 0.4, type(drafter).__name__)
            prompts, answers = target_texts(self.target, 6)
            texts = [measure.Answered(prompt + answer, len(prompt)) for prompt, answer in zip(prompts, answers)]
            matching = measure.num_matching(self.target, drafter, texts, num_drafts=3)
            for prompt, answer, row in zip(prompts, answers, matching):
                rounds = decode(self.target, drafter, prompt, len(answer), num_drafts=3)
                self.assertEqual(answer[1:], [token for tokens in rounds for token in tokens])
                self.assertEqual(measure.rounds(row, 3), [len(tokens) for tokens in rounds])
            self.assertGreater(max(max(row, default=0) for row in matching), 0, "no draft was ever accepted")

    def test_weights_end_where_the_target_would_write_something_else(self) -> None:
        ids = torch.tensor([[9, 8, 7, 6, 5, 4, 3]])
        losses = torch.tensor([[1, 1, 2, 2, 2, 2, 2]])
        greedy = torch.tensor([[8, 7, 6, 5, 9, 3]])  # 9 where the text has 4
        is_own = own_tokens(ids, losses, greedy)
        self.assertEqual(is_own.tolist(), [[False, False, True, True, True, False, True]])
        self.assertEqual(sorted(choose_anchors(is_own, 2)[0].tolist()), [2, 3])
        weights = draft_weights(is_own, is_own, torch.tensor([[2, 3, 4, 6]]), 3)
        self.assertEqual((weights > 0).tolist(), [[[True, True, False], [True, False, False], [False] * 3, [False] * 3]])
        no_five = draft_weights(is_own, is_own & (ids != 5), torch.tensor([[2]]), 3)
        self.assertEqual((no_five > 0).tolist(), [[[True, False, False]]])

    def test_checkpoints_have_the_published_names_and_are_read_again(self) -> None:
        for drafter, load in zip(tiny_drafters(), (load_eagle3, load_block)):
            with tempfile.TemporaryDirectory() as name:
                folder = Path(name)
                drafter.save_config(folder)
                drafter.save(folder)
                tensors = load_file(folder / "model.safetensors")
                again = load(folder)
            self.assertEqual(again.taps, drafter.taps)
            for key, tensor in drafter.state_dict().items():
                torch.testing.assert_close(again.state_dict()[key], tensor.bfloat16().to(tensor.dtype))
            floats = {tensor.dtype for tensor in tensors.values() if tensor.is_floating_point()}
            self.assertEqual(floats, {torch.bfloat16})
            self.assertLessEqual({"fc.weight", "norm.weight"}, tensors.keys())
            if isinstance(drafter, Eagle3Head):
                self.assertLessEqual({"midlayer.hidden_norm.weight", "midlayer.self_attn.q_proj.weight",
                                      "midlayer.mlp.down_proj.weight", "lm_head.weight"}, tensors.keys())
                self.assertEqual((tensors["d2t"].dtype, tensors["t2d"].dtype), (torch.int64, torch.bool))
                self.assertEqual((torch.arange(len(tensors["d2t"])) + tensors["d2t"]).tolist(),
                                 tensors["t2d"].nonzero().flatten().tolist())
            else:
                self.assertLessEqual({"hidden_norm.weight", "layers.0.self_attn.k_norm.weight"}, tensors.keys())

    def test_draft_vocabulary_is_the_most_frequent_tokens(self) -> None:
        chosen, coverage = draft_vocabulary(torch.tensor([7, 7, 7, 3, 3, 9]), 2)
        self.assertEqual((chosen.tolist(), coverage), ([3, 7], 5 / 6))
        self.assertEqual(draft_vocabulary(torch.tensor([7, 7, 3]), 4)[0].tolist(), [0, 1, 3, 7])


if __name__ == "__main__":
    unittest.main()
