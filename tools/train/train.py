"""Trains the model: short rows first, then few-shot documents, then rows of the full context.

A run that was cut leaves the weights of at most a minute before, and goes on when it is started again
with `--resume` and the same flags. `--pause-after` cuts it on purpose, where a machine is lent for less time
than the schedule takes.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from torch import Tensor, nn
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from deepseek_v2 import DeepseekV2
from documents import BOS, EOS, LOSS_WEIGHTS, PAD, Loss, Mix, Source
from gsm8k import Gsm8k
from model import CausalLm, Llama, LlamaConfig, ModelConfig
from packing import Row, batches


MODELS: dict[str, type[CausalLm]] = {
    model.config_type.model_type: model for model in (Llama, DeepseekV2)}


@dataclass(frozen=True)
class Phase:
    """A stretch of training that ends at a share of the whole."""

    name: str
    until: float
    length: int
    mix: Mix


@dataclass(frozen=True)
class Settings:
    steps: int
    max_minutes: float
    pause_after: float
    start_at: float  # share of the schedule
    tokens_per_step: int
    seed: int
    learning_rate: float = 0.002
    weight_decay: float = 0.05  # of matrices, not of embeddings and norms
    warmup_steps: int = 200
    decay_from: float = 0.45  # share of the run after which the rates fall linearly to zero
    gsm8k_share: float = 0.3  # of the word problems outside chats
    log_every: int = 100


def phases(context: int) -> tuple[Phase, ...]:
    """Short rows come first: copying and arithmetic are learned with little else to look at.

    A third of the tokens are word problems, half of them GSM8K's; a part of these is in chats, with bare calculations
    as replies. The templates of the generated ones are learned long before the wordings of short questions, which are
    what most people type and where the model errs; so short questions get half of the tokens, and questions about
    Quire 17 %. There are few few-shot prompts, as each is as long as ten questions. The last phase, whose small rates
    keep what was seen last, has still more chats.
    """
    return (Phase("alone", 0.5, context // 8, Mix(problem=0.09, chat=0.75, short_text=0.155, max_shots=1)),
            Phase("few shots", 0.85, context // 4, Mix(problem=0.08, chat=0.76, short_text=0.15, max_shots=3)),
            Phase("long", 1.0, context, Mix(problem=0.055, chat=0.80, short_text=0.14, max_shots=8)))


def problem_phases(context: int) -> tuple[Phase, ...]:
    """Word problems as text alone, for a model that only the held-out problems measure."""
    return (Phase("alone", 0.5, context // 8, Mix(problem=0.9, chat=0, short_text=0, max_shots=1)),
            Phase("few shots", 0.85, context // 4, Mix(problem=0.7, chat=0, short_text=0, max_shots=3)),
            Phase("long", 1.0, context, Mix(problem=0.6, chat=0, short_text=0, max_shots=8)))


@dataclass(frozen=True)
class Data:
    tokenizer: Path
    gsm8k: Path | None
    num_workers: int


class Batches(IterableDataset[Row]):
    """Each worker generates its own stream, a function of seed, phase, first step and worker number alone."""

    def __init__(self, data: Data, phase: Phase, settings: Settings, first_step: int) -> None:
        self._data, self._phase, self._settings, self._first_step = data, phase, settings, first_step

    def __iter__(self) -> Iterator[Row]:
        worker = get_worker_info()
        seed = f"train/{self._settings.seed}/{self._phase.name}/{self._first_step}/{worker.id if worker else 0}"
        num_rows = self._settings.tokens_per_step // self._phase.length
        tokenizer = Tokenizer.from_file(str(self._data.tokenizer))
        gsm8k = Gsm8k(self._data.gsm8k) if self._data.gsm8k else None
        source = Source(self._phase.mix, gsm8k, self._settings.gsm8k_share)
        # One id more than the model reads: the last one is a target only.
        return batches(tokenizer, random.Random(seed), source, num_rows, self._phase.length + 1)


def weighted_loss(model: nn.Module, ids: Tensor, losses: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """The training loss, and the mean loss of the answers' tokens."""
    logits = model(ids[:, :-1])
    token_loss = F.cross_entropy(logits.float().flatten(0, 1), ids[:, 1:].flatten(), reduction="none")
    kinds = losses[:, 1:].flatten()
    weight = weights[kinds]
    is_answer = (kinds == int(Loss.ANSWER)).float()
    answer_loss = (token_loss.detach() * is_answer).sum() / is_answer.sum()
    return (token_loss * weight).sum() / weight.sum(), answer_loss


def rate_scale(settings: Settings, step: int, progress: float) -> float:
    """Warm up, stay, then fall linearly to zero."""
    warmup = min(1.0, (step + 1) / settings.warmup_steps)
    return warmup * min(1.0, max(0.0, (1 - progress) / (1 - settings.decay_from)))


class TrainingLog:
    """One JSON object a line, on the terminal and in a file."""

    def __init__(self, path: Path, append: bool) -> None:
        self._file = path.open("a" if append else "w")

    def write(self, **fields: object) -> None:
        line = json.dumps({k: round(v, 5) if isinstance(v, float) else v for k, v in fields.items()})
        print(line, flush=True)
        print(line, file=self._file, flush=True)


def make_optimizer(model: nn.Module, settings: Settings, device: torch.device) -> torch.optim.Optimizer:
    matrices = [p for name, p in model.named_parameters() if p.ndim == 2 and "embed" not in name]
    others = [p for name, p in model.named_parameters() if p.ndim != 2 or "embed" in name]
    groups = [{"params": matrices, "weight_decay": settings.weight_decay}, {"params": others, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, betas=(0.9, 0.95), fused=device.type == "cuda")


class Run:
    """The state of a training run, which `--resume` goes on from."""

    def __init__(self, model: CausalLm, settings: Settings, device: torch.device, output: Path) -> None:
        self.model, self.settings, self.device, self.output = model, settings, device, output
        self.optimizer = make_optimizer(model, settings, device)
        self.weights = torch.tensor(LOSS_WEIGHTS, device=device)
        self.loss = torch.compile(weighted_loss, dynamic=False) if device.type == "cuda" else weighted_loss
        self.step, self.seconds, self.progress = 0, settings.start_at * 60 * settings.max_minutes, settings.start_at

    def advance(self, ids: Tensor, losses: Tensor) -> tuple[Tensor, Tensor]:
        """One step of the optimizer."""
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.device.type == "cuda"):
            loss, answer_loss = self.loss(self.model, ids, losses, self.weights)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        for group in self.optimizer.param_groups:
            group["lr"] = self.rate
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.step += 1
        return loss, answer_loss

    @property
    def rate(self) -> float:
        return self.settings.learning_rate * rate_scale(self.settings, self.step, self.progress)

    def save(self) -> None:
        save_weights(self.model, self.output)
        state = {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict(), "step": self.step,
                 "seconds": self.seconds}
        temporary = self.output / "training_state.pt.tmp"
        torch.save(state, temporary)
        temporary.replace(self.output / "training_state.pt")

    def load(self) -> None:
        state = torch.load(self.output / "training_state.pt", map_location=self.device)
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.step, self.seconds = state["step"], state["seconds"]
        self.progress = self.share_done()

    def share_done(self) -> float:
        """Of the whole run, by steps or by the clock."""
        return max(self.step / self.settings.steps, self.seconds / (60 * self.settings.max_minutes))


def train(run: Run, data: Data, schedule: tuple[Phase, ...], log: TrainingLog) -> None:
    settings, device = run.settings, run.device
    saved = begun = time.monotonic()
    start = begun - run.seconds
    for phase in schedule:
        if run.progress >= phase.until:
            continue
        loader = DataLoader(Batches(data, phase, settings, run.step), batch_size=None, num_workers=data.num_workers,
                            pin_memory=device.type == "cuda", prefetch_factor=8 if data.num_workers else None)
        for ids, losses in loader:
            ids, losses = (t.to(device, non_blocking=True).long() for t in (ids, losses))
            loss, answer_loss = run.advance(ids, losses)
            now = time.monotonic()
            run.seconds = now - start
            run.progress = run.share_done()
            if run.step % settings.log_every == 0 or run.progress >= 1:
                log.write(phase=phase.name, step=run.step, seconds=round(run.seconds, 1),
                          tokens=run.step * settings.tokens_per_step, rate=run.rate,
                          loss=loss.item(), answer_loss=answer_loss.item())
            is_paused = now - begun >= 60 * settings.pause_after
            if now - saved > 60:
                run.save()
                saved = now
            if is_paused or run.progress >= phase.until:
                break
        del loader
        if is_paused:
            break
    run.save()


def save_weights(model: nn.Module, output: Path) -> None:
    """BF16, written beside the file and then moved, so that a killed run leaves a whole one."""
    tensors = {name: tensor.detach().to("cpu", torch.bfloat16) for name, tensor in model.state_dict().items()}
    temporary = output / "model.safetensors.tmp"
    save_file(tensors, temporary, metadata={"format": "pt"})
    temporary.replace(output / "model.safetensors")


def write_configs(config: ModelConfig, tokenizer: Tokenizer, output: Path) -> None:
    bos, eos, pad = (tokenizer.token_to_id(token) for token in (BOS, EOS, PAD))
    generation = {"bos_token_id": bos, "eos_token_id": eos, "pad_token_id": pad, "do_sample": False}
    for name, content in (("config.json", config.to_hugging_face(bos, eos, pad)), ("generation_config.json", generation)):
        (output / name).write_text(json.dumps(content, indent=2) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, required=True, help="the model's folder; holds tokenizer.json")
    parser.add_argument("--architecture", choices=MODELS, default=LlamaConfig.model_type)
    parser.add_argument("--only-problems", action="store_true",
                        help="no chats, no short questions, nothing about Quire")
    parser.add_argument("--gsm8k", type=Path, help="GSM8K's train.jsonl; without it only generated data is used")
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--max-minutes", type=float, default=16.0,
                        help="a limit; when it is nearer than --steps, the schedule follows the clock")
    parser.add_argument("--pause-after", type=float, default=1e6, metavar="MINUTES",
                        help="end this run with the schedule unfinished; --resume goes on with it")
    parser.add_argument("--tokens-per-step", type=int, default=65_536)
    parser.add_argument("--num-layers", type=int, help="default: the architecture's")
    parser.add_argument("--hidden-size", type=int, help="default: the architecture's")
    parser.add_argument("--context", type=int, default=ModelConfig.max_position_embeddings)
    parser.add_argument("--num-workers", type=int, default=15, help="part of the seed: each has its own stream")
    parser.add_argument("--log-every", type=int, default=Settings.log_every)
    parser.add_argument("--learning-rate", type=float, default=Settings.learning_rate)
    parser.add_argument("--seed", type=int, default=3)
    parser.add_argument("--start-from", type=Path, help="a model's folder, whose weights are the first ones; it must have "
                        "the same tokenizer")
    parser.add_argument("--start-at", type=float, default=0.0, metavar="SHARE",
                        help="begin at this share of a schedule by the clock; with --start-from, this goes on from weights "
                        "whose training_state.pt was lost")
    parser.add_argument("--resume", action="store_true", help="go on from the folder's training_state.pt")
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    torch.set_float32_matmul_precision("high")
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    data = Data(args.output / "tokenizer.json", args.gsm8k, args.num_workers)
    tokenizer = Tokenizer.from_file(str(data.tokenizer))
    model_type = MODELS[args.architecture]
    sizes = {"num_hidden_layers": args.num_layers, "hidden_size": args.hidden_size}
    config = model_type.config_type(
        vocab_size=tokenizer.get_vocab_size(), max_position_embeddings=args.context,
        **{name: size for name, size in sizes.items() if size})
    write_configs(config, tokenizer, args.output)
    settings = Settings(args.steps, args.max_minutes, args.pause_after, args.start_at, args.tokens_per_step,
                        args.seed, args.learning_rate, log_every=args.log_every)
    run = Run(model_type(config).to(device), settings, device, args.output)
    if args.start_from:
        run.model.load_state_dict(load_file(args.start_from / "model.safetensors"))
    if args.resume:
        run.load()
    log = TrainingLog(args.output / "training_log.jsonl", append=args.resume)
    log.write(parameters=sum(p.numel() for p in run.model.parameters()), torch=torch.__version__,
              device=torch.cuda.get_device_name() if device.type == "cuda" else "cpu",
              architecture=args.architecture, only_problems=args.only_problems,
              gsm8k=args.gsm8k is not None, **vars(settings))
    schedule = (problem_phases if args.only_problems else phases)(args.context)
    train(run, data, schedule, log)


if __name__ == "__main__":
    main()
