"""Muon: momentum whose every matrix is made orthogonal before the step (Jordan et al., 2024)."""

from __future__ import annotations

from collections import defaultdict

import torch
from torch import Tensor, nn


def orthogonalize(matrices: Tensor, steps: int = 5) -> Tensor:
    """Newton-Schulz iteration in BF16 on [count, rows, columns]: U S V^T becomes about U V^T."""
    a, b, c = 3.4445, -4.7750, 2.0315  # the quintic with the steepest slope at zero
    x = matrices.bfloat16()
    wide = x.shape[-2] <= x.shape[-1]
    x = x if wide else x.mT
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(steps):
        gram = x @ x.mT
        x = a * x + (b * gram + c * gram @ gram) @ x
    return x if wide else x.mT


class Muon:
    """Steps all matrices of one shape together. `learning_rate` is set by the caller every step."""

    def __init__(self, parameters: list[nn.Parameter], momentum: float = 0.95, weight_decay: float = 0.01) -> None:
        by_shape: dict[torch.Size, list[nn.Parameter]] = defaultdict(list)
        for parameter in parameters:
            by_shape[parameter.shape].append(parameter)
        self._groups = [(group, torch.zeros(len(group), *shape, device=group[0].device))
                        for shape, group in by_shape.items()]
        self._momentum = momentum
        self._weight_decay = weight_decay
        self.learning_rate = 0.0

    @torch.no_grad()
    def step(self) -> None:
        for group, buffer in self._groups:
            gradient = torch.stack([parameter.grad for parameter in group])
            buffer.lerp_(gradient, 1 - self._momentum)
            update = orthogonalize(gradient.lerp(buffer, self._momentum)).float()
            rows, columns = update.shape[-2:]
            scale = self.learning_rate * max(1.0, rows / columns) ** 0.5
            torch._foreach_mul_(group, 1 - self.learning_rate * self._weight_decay)
            torch._foreach_add_(group, list(update.unbind()), alpha=-scale)
