"""Trains a model: short rows first, then rows of the full context.

The weights are saved every minute, so that a run that is cut leaves those of at most a minute before.
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
from safetensors.torch import save_file
from tokenizers import Tokenizer
from torch import Tensor, nn
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from deepseek_v2 import DeepseekV2
from documents import BOS, EOS, LOSS_WEIGHTS, PAD, Loss, Mix
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
    tokens_per_step: int
    seed: int
    learning_rate: float = 0.002
    weight_decay: float = 0.05  # of matrices, not of embeddings and norms
    warmup_steps: int = 200
    decay_from: float = 0.45  # share of the run after which the rates fall linearly to zero
    quantize_from: float = 0.7  # share of the run after which a Llama computes with the weights that Q8_0 stores
    log_every: int = 100


def phases(context: int) -> tuple[Phase, ...]:
    """Short rows come first: copying and arithmetic are learned with little else to look at. There are few few-shot
    prompts, as each is as long as ten questions."""
    return (Phase("short", 0.65, context // 8, Mix(problem=0.27, chat=0.55, short_text=0.14, max_shots=2)),
            Phase("long", 1.0, context, Mix(problem=0.2, chat=0.6, short_text=0.13, max_shots=8)))


def problem_phases(context: int) -> tuple[Phase, ...]:
    """Word problems as text alone, for a model that only the held-out problems measure."""
    return (Phase("short", 0.65, context // 8, Mix(problem=0.9, chat=0, short_text=0, max_shots=1)),
            Phase("long", 1.0, context, Mix(problem=0.7, chat=0, short_text=0, max_shots=8)))


@dataclass(frozen=True)
class Data:
    tokenizer: Path
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
        # One id more than the model reads: the last one is a target only.
        return batches(tokenizer, random.Random(seed), self._phase.mix, num_rows, self._phase.length + 1)


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

    def __init__(self, path: Path) -> None:
        self._file = path.open("w")

    def write(self, **fields: object) -> None:
        line = json.dumps({k: round(v, 5) if isinstance(v, float) else v for k, v in fields.items()})
        print(line, flush=True)
        print(line, file=self._file, flush=True)


def make_optimizer(model: nn.Module, settings: Settings, device: torch.device) -> torch.optim.Optimizer:
    matrices = [p for name, p in model.named_parameters() if p.ndim == 2 and "embed" not in name]
    others = [p for name, p in model.named_parameters() if p.ndim != 2 or "embed" in name]
    groups = [{"params": matrices, "weight_decay": settings.weight_decay}, {"params": others, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, betas=(0.9, 0.95), fused=device.type == "cuda")


def rounded_to_q8(weight: Tensor) -> Tensor:
    """What Q8_0 stores exactly: each 32 weights of a row are integers of at most 127 times one power of two, which BF16
    stores exactly too. weight [rows, 32 * blocks]."""
    blocks = weight.unflatten(-1, (-1, 32))
    scale = torch.exp2(torch.log2(blocks.abs().amax(-1, keepdim=True) / 127).ceil().clamp(-24, 15))
    return ((blocks / scale).round().clamp(-127, 127) * scale).flatten(-2)


class Run:
    """The state of a training run."""

    def __init__(self, model: CausalLm, settings: Settings, device: torch.device, output: Path) -> None:
        self.model, self.settings, self.device, self.output = model, settings, device, output
        self.optimizer = make_optimizer(model, settings, device)
        self.weights = torch.tensor(LOSS_WEIGHTS, device=device)
        self.loss = torch.compile(weighted_loss, dynamic=False) if device.type == "cuda" else weighted_loss
        self.step, self.seconds, self.progress = 0, 0.0, 0.0
        self.quantized = [p for p in model.parameters() if p.ndim == 2 and isinstance(model, Llama)]

    def advance(self, ids: Tensor, losses: Tensor) -> tuple[Tensor, Tensor]:
        """One step of the optimizer. Late in the run, gradients are those at the rounded weights and change the exact
        ones (a straight-through estimator)."""
        exact = self.round_weights() if self.progress >= self.settings.quantize_from else []
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.device.type == "cuda"):
            loss, answer_loss = self.loss(self.model, ids, losses, self.weights)
        loss.backward()
        self.restore(exact)
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        for group in self.optimizer.param_groups:
            group["lr"] = self.rate
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.step += 1
        return loss, answer_loss

    @torch.no_grad()
    def round_weights(self) -> list[Tensor]:
        """Rounds the matrices and returns the exact ones."""
        exact = [parameter.clone() for parameter in self.quantized]
        for parameter in self.quantized:
            parameter.copy_(rounded_to_q8(parameter))
        return exact

    @torch.no_grad()
    def restore(self, exact: list[Tensor]) -> None:
        for parameter, value in zip(self.quantized, exact):
            parameter.copy_(value)

    @property
    def rate(self) -> float:
        return self.settings.learning_rate * rate_scale(self.settings, self.step, self.progress)

    def save(self) -> None:
        exact = self.round_weights()
        save_weights(self.model, self.output)
        self.restore(exact)


def train(run: Run, data: Data, schedule: tuple[Phase, ...], log: TrainingLog) -> None:
    """Ends after the settings' steps or by the clock; the rates follow whichever is nearer."""
    settings, device = run.settings, run.device
    saved = begun = time.monotonic()
    for phase in schedule:
        if run.progress >= phase.until:
            continue
        loader = DataLoader(Batches(data, phase, settings, run.step), batch_size=None, num_workers=data.num_workers,
                            pin_memory=device.type == "cuda", prefetch_factor=8 if data.num_workers else None)
        for ids, losses in loader:
            ids, losses = (t.to(device, non_blocking=True).long() for t in (ids, losses))
            loss, answer_loss = run.advance(ids, losses)
            now = time.monotonic()
            run.seconds = now - begun
            run.progress = max(run.step / settings.steps, run.seconds / (60 * settings.max_minutes))
            if run.step % settings.log_every == 0 or run.progress >= 1:
                log.write(phase=phase.name, step=run.step, seconds=round(run.seconds, 1),
                          tokens=run.step * settings.tokens_per_step, rate=run.rate,
                          loss=loss.item(), answer_loss=answer_loss.item())
            if now - saved > 60:
                run.save()
                saved = now
            if run.progress >= phase.until:
                break
        del loader
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
    parser.add_argument("--only-problems", action="store_true", help="no chats and no short questions")
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--max-minutes", type=float, default=6.5,
                        help="a limit; when it is nearer than --steps, the schedule follows the clock")
    parser.add_argument("--tokens-per-step", type=int, default=65_536)
    parser.add_argument("--num-layers", type=int, help="default: the architecture's")
    parser.add_argument("--hidden-size", type=int, help="default: the architecture's")
    parser.add_argument("--context", type=int, default=ModelConfig.max_position_embeddings)
    parser.add_argument("--num-workers", type=int, default=15, help="part of the seed: each has its own stream")
    parser.add_argument("--log-every", type=int, default=Settings.log_every)
    parser.add_argument("--learning-rate", type=float, default=Settings.learning_rate)
    parser.add_argument("--seed", type=int, default=3)
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    torch.set_float32_matmul_precision("high")
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    data = Data(args.output / "tokenizer.json", args.num_workers)
    tokenizer = Tokenizer.from_file(str(data.tokenizer))
    model_type = MODELS[args.architecture]
    sizes = {"num_hidden_layers": args.num_layers, "hidden_size": args.hidden_size}
    config = model_type.config_type(
        vocab_size=tokenizer.get_vocab_size(), max_position_embeddings=args.context,
        **{name: size for name, size in sizes.items() if size})
    write_configs(config, tokenizer, args.output)
    settings = Settings(args.steps, args.max_minutes, args.tokens_per_step, args.seed, args.learning_rate,
                        log_every=args.log_every)
    run = Run(model_type(config).to(device), settings, device, args.output)
    log = TrainingLog(args.output / "training_log.jsonl")
    log.write(parameters=sum(p.numel() for p in run.model.parameters()), torch=torch.__version__,
              device=torch.cuda.get_device_name() if device.type == "cuda" else "cpu",
              architecture=args.architecture, only_problems=args.only_problems, **vars(settings))
    train(run, data, (problem_phases if args.only_problems else phases)(args.context), log)


if __name__ == "__main__":
    main()
