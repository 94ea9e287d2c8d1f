"""Draws training_log.jsonl as an SVG: the losses, on a logarithmic scale, over the tokens seen."""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path

_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _TOP = 720, 400, 60, 40, 20
_CURVES = (("loss", "#7a7a7a", "training loss"), ("answer_loss", "#1f6fb2", "loss on answers"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("log", type=Path)
    parser.add_argument("output", type=Path)
    args = parser.parse_args()
    rows = [row for row in map(json.loads, args.log.read_text().splitlines()) if "step" in row]
    assert rows, f"[plot] {args.log} has no steps; train longer than --log-every"
    args.output.write_text(draw(rows))


def draw(rows: list[dict[str, float]]) -> str:
    values = [row[name] for row in rows for name, _, _ in _CURVES if row[name] > 0]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    last = rows[-1]["tokens"]

    def x(tokens: float) -> float:
        return _LEFT + (_WIDTH - _LEFT - 20) * tokens / last

    def y(loss: float) -> float:
        share = (math.log10(loss) - low) / max(1, high - low)
        return _HEIGHT - _BOTTOM - (_HEIGHT - _BOTTOM - _TOP) * share

    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
             'font-family="sans-serif" font-size="12">', f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>']
    for power in range(low, high + 1):
        at = y(10.0**power)
        parts.append(f'<line x1="{_LEFT}" x2="{_WIDTH - 20}" y1="{at:.1f}" y2="{at:.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{at + 4:.1f}" text-anchor="end">{10.0**power:g}</text>')
    for quarter in range(5):
        tokens = last * quarter / 4
        parts.append(f'<text x="{x(tokens):.1f}" y="{_HEIGHT - 18}" text-anchor="middle">{tokens / 1e6:.0f} M</text>')
    parts.append(f'<text x="{_WIDTH / 2}" y="{_HEIGHT - 3}" text-anchor="middle">tokens</text>')
    for index, (name, color, label) in enumerate(_CURVES):
        points = " ".join(f"{x(row['tokens']):.1f},{y(row[name]):.1f}" for row in rows if row[name] > 0)
        parts.append(f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="1.5"/>')
        parts.append(f'<text x="{_WIDTH - 150}" y="{_TOP + 14 + 16 * index}" fill="{color}">{label}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


if __name__ == "__main__":
    main()
