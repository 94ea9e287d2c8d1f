"""Trains the model: single problems first, then few-shot documents, then rows of the full context."""

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

from documents import BOS, EOS, LOSS_WEIGHTS, PAD, Loss, Mix
from model import Llama, LlamaConfig
from packing import Row, batches


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
    warmup_steps: int = 100
    decay_from: float = 0.4  # share of the run after which the rates fall linearly to zero
    log_every: int = 100


def phases(context: int) -> tuple[Phase, ...]:
    """Short rows come first: copying and arithmetic are learned with little else to look at."""
    return (Phase("alone", 0.3, context // 16, Mix(plain=0.6, chat=0.4, max_shots=0)),
            Phase("short", 0.6, context // 4, Mix(plain=0.4, chat=0.25, max_shots=4)),
            Phase("long", 1.0, context, Mix(plain=0.25, chat=0.2, max_shots=10)))


class Batches(IterableDataset[Row]):
    """Each worker generates its own stream, a function of seed, phase and worker number alone."""

    def __init__(self, tokenizer_path: Path, phase: Phase, settings: Settings) -> None:
        self._tokenizer_path, self._phase, self._settings = tokenizer_path, phase, settings

    def __iter__(self) -> Iterator[Row]:
        worker = get_worker_info()
        seed = f"train/{self._settings.seed}/{self._phase.name}/{worker.id if worker else 0}"
        num_rows = self._settings.tokens_per_step // self._phase.length
        tokenizer = Tokenizer.from_file(str(self._tokenizer_path))
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


def train(model: Llama, tokenizer_path: Path, settings: Settings, device: torch.device, num_workers: int,
          log: TrainingLog, output: Path) -> None:
    optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.95), fused=device.type == "cuda")
    weights = torch.tensor(LOSS_WEIGHTS, device=device)
    loss_function = torch.compile(weighted_loss, dynamic=False) if device.type == "cuda" else weighted_loss
    start = saved = time.monotonic()
    step, progress = 0, 0.0
    for phase in phases(model.config.max_position_embeddings):
        loader = DataLoader(Batches(tokenizer_path, phase, settings), batch_size=None, num_workers=num_workers,
                            pin_memory=device.type == "cuda")
        for ids, losses in loader:
            ids, losses = (t.to(device, non_blocking=True).long() for t in (ids, losses))
            with torch.autocast(device.type, torch.bfloat16):
                loss, answer_loss = loss_function(model, ids, losses, weights)
            loss.backward()
            rate = settings.learning_rate * rate_scale(settings, step, progress)
            optimizer.param_groups[0]["lr"] = rate
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            step += 1
            now = time.monotonic()
            progress = max(step / settings.steps, (now - start) / (60 * settings.max_minutes))
            if step % settings.log_every == 0 or progress >= 1:
                log.write(phase=phase.name, step=step, seconds=round(now - start, 1),
                          tokens=step * settings.tokens_per_step, rate=rate,
                          loss=loss.item(), answer_loss=answer_loss.item())
            if now - saved > 60:
                save_weights(model, output)
                saved = now
            if progress >= phase.until:
                break
        del loader
    save_weights(model, output)


def save_weights(model: nn.Module, output: Path) -> None:
    """BF16, written beside the file and then moved, so that a killed run leaves a whole one."""
    tensors = {name: tensor.detach().to("cpu", torch.bfloat16) for name, tensor in model.state_dict().items()}
    temporary = output / "model.safetensors.tmp"
    save_file(tensors, temporary, metadata={"format": "pt"})
    temporary.replace(output / "model.safetensors")


def write_configs(config: LlamaConfig, tokenizer: Tokenizer, output: Path) -> None:
    bos, eos, pad = (tokenizer.token_to_id(token) for token in (BOS, EOS, PAD))
    generation = {"bos_token_id": bos, "eos_token_id": eos, "pad_token_id": pad, "do_sample": False}
    for name, content in (("config.json", config.to_hugging_face(bos, eos, pad)), ("generation_config.json", generation)):
        (output / name).write_text(json.dumps(content, indent=2) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, required=True, help="the model's folder; holds tokenizer.json")
    parser.add_argument("--steps", type=int, default=12_000)
    parser.add_argument("--max-minutes", type=float, default=60.0,
                        help="a limit; when it is nearer than --steps, the schedule follows the clock")
    parser.add_argument("--tokens-per-step", type=int, default=65_536)
    parser.add_argument("--num-layers", type=int, default=LlamaConfig.num_hidden_layers)
    parser.add_argument("--context", type=int, default=LlamaConfig.max_position_embeddings)
    parser.add_argument("--num-workers", type=int, default=14, help="part of the seed: each has its own stream")
    parser.add_argument("--seed", type=int, default=3)
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    torch.set_float32_matmul_precision("high")
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    tokenizer_path = args.output / "tokenizer.json"
    tokenizer = Tokenizer.from_file(str(tokenizer_path))
    config = LlamaConfig(vocab_size=tokenizer.get_vocab_size(), num_hidden_layers=args.num_layers,
                         max_position_embeddings=args.context)
    write_configs(config, tokenizer, args.output)
    model = Llama(config).to(device)
    settings = Settings(args.steps, args.max_minutes, args.tokens_per_step, args.seed)
    log = TrainingLog(args.output / "training_log.jsonl")
    log.write(parameters=sum(p.numel() for p in model.parameters()), torch=torch.__version__,
              device=torch.cuda.get_device_name() if device.type == "cuda" else "cpu", **vars(settings))
    train(model, tokenizer_path, settings, device, args.num_workers, log, args.output)


if __name__ == "__main__":
    main()
