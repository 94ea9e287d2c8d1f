"""The training loop of both drafters: the target's states on generated documents, anchors, and the loss.

The documents are those of the target's training. It answers them nearly word for word (its loss on their answers is
about 0.001), so their text, with the tokens that the target would not have written left out, is the target's own
output at a fraction of the cost of generating it.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path

import torch
import torch.nn.functional as F
from tokenizers import Tokenizer
from torch import Tensor
from torch.utils.data import DataLoader

from drafter import Drafter, gather_rows
from documents import PAD, Loss
from model import Llama, LlamaConfig
from target import check_taps, load_target, target_states
from train import Batches, Data, Phase, Settings, TrainingLog, make_optimizer, phases, rate_scale

_STEP_DECAY = 0.8  # a later draft counts less: it matters only if all before it were right
_LONGEST_DENSE_ROW = 2048  # a longer row gets no more anchors than one of this length: their mask grows with both
_ROWS_OF_LOGITS = 16  # per product with the embeddings, to bound the memory of the logits
_SECONDS_PER_LINE = 10
_SECONDS_PER_SAVE = 30


def add_arguments(parser: argparse.ArgumentParser, taps: tuple[int, ...], num_drafts: int, anchor_share: float) -> None:
    parser.add_argument("--model", type=Path, required=True, help="folder of the target")
    parser.add_argument("--output", type=Path, required=True, help="the drafter's folder")
    parser.add_argument("--taps", type=int, nargs="+", default=list(taps),
                        help="layers of the target whose inputs the drafter reads")
    parser.add_argument("--num-drafts", type=int, default=num_drafts, help="drafts per anchor")
    parser.add_argument("--anchor-share", type=float, default=anchor_share, help="anchors per position of a row")
    parser.add_argument("--max-minutes", type=float, default=2.0)
    parser.add_argument("--steps", type=int, default=1_000_000, help="a limit beside --max-minutes; the nearer one counts")
    parser.add_argument("--tokens-per-step", type=int, default=65_536)
    parser.add_argument("--context", type=int, default=4096,
                        help="tokens per row in the last of the phases, which are those of train.py")
    parser.add_argument("--learning-rate", type=float, default=0.002)
    parser.add_argument("--warmup-steps", type=int, default=100)
    parser.add_argument("--num-workers", type=int, default=15)
    parser.add_argument("--seed", type=int, default=3)
    parser.add_argument("--compile", action=argparse.BooleanOptionalAction, default=torch.cuda.is_available(),
                        help="compile the target's layers")


class Job:
    """The flags of a training, read and checked, and the target."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.begun = time.monotonic()
        torch.manual_seed(args.seed)
        torch.set_float32_matmul_precision("high")
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.output: Path = args.output
        self.taps = tuple(args.taps)
        self.num_drafts: int = args.num_drafts
        self.anchor_share: float = args.anchor_share
        self.target = load_target(args.model, self.device)
        check_taps(self.taps, self.target.config.num_hidden_layers)
        if args.compile:
            for layer in self.target.model.layers:
                layer.compile(dynamic=False)
        self.data = Data(args.model / "tokenizer.json", args.num_workers)
        tokenizer = Tokenizer.from_file(str(self.data.tokenizer))
        self.pad: int = tokenizer.token_to_id(PAD)
        self.settings = Settings(args.steps, args.max_minutes, tokens_per_step=args.tokens_per_step, seed=args.seed,
                                 learning_rate=args.learning_rate, warmup_steps=args.warmup_steps)
        self.phases = phases(args.context)
        self.output.mkdir(parents=True, exist_ok=True)
        self.log = TrainingLog(self.output / "training_log.jsonl")

    def draft_config(self, intermediate_size: int, **changes: int) -> LlamaConfig:
        """The target's shape with the drafter's own sizes."""
        return LlamaConfig(**{**vars(self.target.config), "intermediate_size": intermediate_size, **changes})

    def batches(self, phase: Phase, first_step: int) -> Iterator[tuple[Tensor, Tensor]]:
        """ids and Loss values, both [rows, length + 1]."""
        loader = DataLoader(Batches(self.data, phase, self.settings, first_step), batch_size=None,
                            num_workers=self.data.num_workers, pin_memory=self.device.type == "cuda",
                            prefetch_factor=4 if self.data.num_workers else None)
        for ids, losses in loader:
            yield tuple(t.to(self.device, non_blocking=True).long() for t in (ids, losses))


def answer_ids(job: Job, num_tokens: int) -> Tensor:
    """The answers' ids among `num_tokens` tokens of the training's documents, fewer if a twentieth of the time is over."""
    found, seen = [], 0
    for ids, losses in job.batches(job.phases[0], first_step=0):
        found.append(ids[losses == int(Loss.ANSWER)].cpu())
        seen += ids.numel()
        if seen >= num_tokens or time.monotonic() - job.begun > 3 * job.settings.max_minutes:
            return torch.cat(found)
    raise AssertionError("batches are endless")


def own_tokens(ids: Tensor, losses: Tensor, greedy: Tensor) -> Tensor:
    """[rows, length + 1]: whether a token is one of an answer, as the target would write it in this place.

    ids and losses [rows, length + 1]; greedy [rows, length], the target's token after each position.
    """
    return (losses == int(Loss.ANSWER)) & (F.pad(greedy, (1, 0), value=-1) == ids)


def choose_anchors(is_own: Tensor, num_anchors: int) -> Tensor:
    """Random positions [rows, num_anchors] where a draft may begin: that token and the next are the target's. A row
    with too few of them gets others, whose weights are zero."""
    can_begin = is_own[:, 1:-1] & is_own[:, 2:]
    order = torch.rand(can_begin.shape, device=is_own.device) + can_begin
    return order.topk(num_anchors, dim=1).indices + 1


def draft_weights(is_own: Tensor, can_draft: Tensor, anchors: Tensor, num_drafts: int) -> Tensor:
    """The weight of each draft [rows, anchors, num_drafts]: zero from the first one on whose token is not the target's
    or not in the drafter's vocabulary, since no draft after it could be accepted. is_own, can_draft [rows, length + 1]."""
    length = is_own.shape[1]
    positions = anchors[..., None] + torch.arange(1, num_drafts + 1, device=anchors.device)
    is_right = gather_rows(can_draft, positions.clamp(max=length - 1).flatten(1)).unflatten(1, positions.shape[1:])
    is_right = is_right & (positions < length) & gather_rows(is_own, anchors)[..., None]
    decay = _STEP_DECAY ** torch.arange(num_drafts, device=anchors.device)
    return is_right.cumprod(dim=-1) * decay


def distillation_loss(logits: Tensor, target_logits: Tensor, weights: Tensor) -> Tensor:
    """Cross-entropy against the target's distribution over the drafter's vocabulary; both logits
    [..., draft vocabulary], weights [...]."""
    token_loss = F.cross_entropy(logits.float().flatten(0, -2), target_logits.float().softmax(-1).flatten(0, -2),
                                 reduction="none")
    return (token_loss * weights.flatten()).sum() / weights.sum().clamp(min=1)


def accepted_length(logits: Tensor, target_ids: Tensor, labels: Tensor, weights: Tensor) -> Tensor:
    """The mean number of tokens that one verification yields at the anchors: the accepted drafts and one more."""
    is_accepted = (target_ids[logits.argmax(-1)] == labels) & (weights > 0)
    num_accepted = is_accepted.cumprod(dim=-1).sum(dim=-1)
    is_anchor = weights[..., 0] > 0
    return 1 + (num_accepted * is_anchor).sum() / is_anchor.sum().clamp(min=1)


class Step:
    """One forward pass of target and drafter on a batch."""

    def __init__(self, target: Llama, drafter: Drafter, num_drafts: int, anchor_share: float) -> None:
        self.target, self.drafter, self.num_drafts, self.anchor_share = target, drafter, num_drafts, anchor_share
        self.embedding = target.model.embed_tokens.weight
        self.target_ids = drafter.target_ids
        self.is_drafted = torch.isin(torch.arange(len(self.embedding), device=self.embedding.device), self.target_ids)

    def __call__(self, ids: Tensor, losses: Tensor) -> tuple[Tensor, Tensor]:
        """The loss and the mean accepted length. ids and losses [rows, length + 1]."""
        device, length, num_drafts = ids.device, ids.shape[1] - 1, self.num_drafts
        tapped, states = target_states(self.target, ids[:, :-1], self.drafter.taps)
        greedy = torch.cat([F.linear(rows, self.embedding).argmax(-1) for rows in states.split(_ROWS_OF_LOGITS)])
        is_own = own_tokens(ids, losses, greedy)
        anchors = choose_anchors(is_own, max(1, int(self.anchor_share * min(length, _LONGEST_DENSE_ROW))))
        weights = draft_weights(is_own, is_own & self.is_drafted[ids], anchors, num_drafts)
        before = (anchors[..., None] + torch.arange(num_drafts, device=device)).clamp(max=length - 1)
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            logits = self.drafter(self.embedding, ids, tapped, anchors, num_drafts, is_forced=True)
        with torch.no_grad():
            chosen = gather_rows(states, before.flatten(1)).unflatten(1, before.shape[1:])
            target_logits = F.linear(chosen, self.embedding[self.target_ids])
            labels = gather_rows(ids, (before + 1).flatten(1)).unflatten(1, before.shape[1:])
            accepted = accepted_length(logits, self.target_ids, labels, weights)
        return distillation_loss(logits, target_logits, weights), accepted


def train(job: Job, drafter: Drafter) -> None:
    """Ends by the clock, which began with the job, or after the settings' steps; saves on the way."""
    settings = job.settings
    drafter.to(job.device)
    drafter.save_config(job.output)
    optimizer = make_optimizer(drafter, settings, job.device)
    job.log.write(parameters=sum(p.numel() for p in drafter.parameters()), bytes=drafter.num_bytes(),
                  torch=torch.__version__, device=torch.cuda.get_device_name() if job.device.type == "cuda" else "cpu",
                  taps=job.taps, num_drafts=job.num_drafts, **vars(settings))
    forward = Step(job.target, drafter, job.num_drafts, job.anchor_share)
    step, progress = 0, 0.0
    written = saved = job.begun
    for phase in job.phases:
        if progress >= phase.until:
            continue
        for ids, losses in job.batches(phase, step):
            loss, length = forward(ids, losses)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(drafter.parameters(), 1.0)
            rate = settings.learning_rate * rate_scale(settings, step, progress)
            for group in optimizer.param_groups:
                group["lr"] = rate
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            step += 1
            now = time.monotonic()
            seconds = now - job.begun
            progress = max(step / settings.steps, seconds / (60 * settings.max_minutes))
            if now - written >= _SECONDS_PER_LINE or progress >= 1:
                job.log.write(phase=phase.name, step=step, seconds=round(seconds, 1), rate=rate,
                              tokens=step * settings.tokens_per_step, loss=loss.item(), accepted_length=length.item())
                written = now
            if now - saved >= _SECONDS_PER_SAVE:
                drafter.save(job.output)
                saved = now
            if progress >= phase.until:
                break
    drafter.save(job.output)
