"""Makes the table and the plots of docs/benchmarks.md from bench/results/cells.csv.

    python tools/plot_benchmarks.py           # writes docs/benchmarks.md, docs/benchmarks-*.svg
    python tools/plot_benchmarks.py --check   # fails if they differ from what this would write

A cell is one measurement: a device, a model, a workload, a peer. `ratio` is Quire's speed divided by
the peer's; it stands in the file only where it is not the quotient of the two values (the median of
several rounds' ratios, or a mean over cells). `again` is the ratio of a later run. A bar is a target
for the value (`>= 258`) or for the ratio (`>= 1.2 x`).
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import sys
from pathlib import Path

from plot_attention import draw as draw_attention
from plot_attention import read_table
from svg import AHEAD, BEHIND, GRID, INK, SOFT, Picture

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench/results"
PAGE = ROOT / "docs/benchmarks.md"
BEGIN, END = "<!-- made by tools/plot_benchmarks.py: begin -->", "<!-- end -->"
SUMMARY_GPU = [("Llama-3.1-8B", "BF16", "1 × 128/512"), ("Llama-3.1-8B", "BF16", "64 × 1000/256"),
               ("Llama-3.1-8B", "BF16", "300 × 1000/1000"), ("Llama-3.1-8B", "BF16", "500 × 100/1000"),
               ("Llama-3.3-70B", "FP8", "500 × 100/1000"), ("DeepSeek-Coder-V2-Lite", "BF16", "1 × 128/512"),
               ("DeepSeek-Coder-V2-Lite", "FP8", "300 × 1000/1000"),
               ("DeepSeek-Coder-V2-Lite", "BF16", "300 × 1000/1000")]


class Cell:
    def __init__(self, row: dict[str, str]) -> None:
        self.row = row

    def __getattr__(self, name: str) -> str:
        return self.row[name]

    def number(self, name: str) -> float | None:
        text = self.row[name].replace(",", "")
        return float(text) if text else None

    @property
    def times(self) -> float | None:
        """Quire's speed divided by the peer's."""
        quire, peer = self.number("quire"), self.number("peer_value")
        if self.ratio or quire is None or peer is None:
            return self.number("ratio")
        return peer / quire if self.better == "lower" else quire / peer

    @property
    def meets(self) -> bool:
        """Whether the bar is met, by the worse of the ratio and the later run's."""
        sign, bar, *of_ratio = self.bar.split()
        value = self.times if of_ratio else self.number("quire")
        assert value is not None, self.row
        if of_ratio and self.again:
            value = min(value, float(self.again))
        value = round(value, 3) if of_ratio else value
        limit = float(bar.replace(",", ""))
        return value >= limit if sign == ">=" else value <= limit


def read_cells() -> list[Cell]:
    with (RESULTS / "cells.csv").open(encoding="utf-8", newline="") as file:
        return [Cell(row) for row in csv.DictReader(file)]


def short_ratio(ratio: float) -> str:
    return f"{ratio:.3f}" if 0.985 <= ratio < 1 else f"{ratio:.2f}"


def ahead(cells: list[Cell]) -> str:
    """How many cells are ahead of their peer, by the worse of the ratio and the later run's."""
    ratios = [min(cell.times or 0, float(cell.again or "inf")) for cell in cells]
    return f"{sum(ratio >= 1 for ratio in ratios)} of {len(ratios)}"


def table(cells: list[Cell]) -> str:
    commands = list(dict.fromkeys(cell.command for cell in cells))
    peers = [cell for cell in cells if cell.times is not None]
    barred = [cell for cell in cells if cell.bar]
    lines = [f"{len(cells)} cells: Quire is ahead of its peer in {ahead(peers)}, "
             f"and meets {sum(cell.meets for cell in barred)} of {len(barred)} bars.", "",
             "| device | model, format | workload | peer | Quire | ratio | limit | exactness | bar | commit, run |",
             "|---|---|---|---|---|---|---|---|---|---|"]
    for cell in cells:
        model = f"{cell.model}, {cell.format}" if cell.format else cell.model
        peer = f"{cell.peer}: {cell.peer_value}" if cell.peer_value else cell.peer
        ratio = "" if cell.times is None else short_ratio(cell.times)
        if cell.times is not None and cell.times < 1:
            ratio = f"**{ratio}**"
        if cell.again:
            again = f"**{cell.again}**" if float(cell.again) < 1 else cell.again
            ratio += f", again {again}"
        limit = f"{cell.limit} of {cell.limit_of}" if cell.limit else ""
        bar = ""
        if cell.bar:
            bar = cell.bar.replace(">=", "≥").replace("<=", "≤").replace(" x", " ×")
            bar += ": met" if cell.meets else ": **missed**"
        quire = f"{cell.quire} {cell.unit}".strip() if cell.quire else ""
        if cell.note:
            quire = f"{quire} ({cell.note})"
        lines.append("| " + " | ".join([
            cell.device, model, cell.workload, peer, quire, ratio, limit, cell.exact, bar,
            f"{cell.commit}, [{commands.index(cell.command) + 1}](#runs)"]) + " |")
    lines += ["", "### Runs", ""]
    lines += [f"{number}. `{command}`" for number, command in enumerate(commands, 1)]
    return "\n".join(line.replace("|  |", "| |").replace("|  |", "| |") for line in lines)


def page(cells: list[Cell]) -> str:
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    return f"{before}{BEGIN}\n\n{table(cells)}\n\n{END}{rest.split(END)[1]}"


def bars(picture: Picture, top: int, title: str, note: str, rows: list[tuple[str, Cell]]) -> int:
    """Draws one bar per cell from 1.0, on a logarithmic scale of ratios, and returns the y below them."""
    left, right, last = 330, 670, 860
    low, high = math.log2(0.5), math.log2(4.0)

    def at(ratio: float) -> float:
        return left + (right - left) * (math.log2(ratio) - low) / (high - low)

    picture.text(20, top, title, size=15, bold=True)
    picture.text(20, top + 19, note, size=12, fill=SOFT)
    first = top + 50
    bottom = first + 24 * len(rows) - 8
    for ratio in (0.5, 1.0, 2.0, 4.0):
        picture.line(at(ratio), first - 8, at(ratio), bottom, INK if ratio == 1.0 else GRID)
        picture.text(at(ratio), first - 13, f"{ratio:g}×", size=11, fill=SOFT, anchor="middle")
    picture.text(last, first - 13, f"Quire : {rows[0][1].peer}, tokens/s", size=11, fill=SOFT, anchor="end")
    for index, (label, cell) in enumerate(rows):
        ratio = cell.times
        assert ratio is not None
        y = first + 24 * index
        is_ahead = ratio >= 1
        colour = AHEAD if is_ahead else BEHIND
        picture.text(left - 12, y + 12, label, size=12, anchor="end")
        picture.rect(min(at(1), at(ratio)), y, max(abs(at(ratio) - at(1)), 1), 16, colour)
        picture.text(at(ratio) + (6 if is_ahead else -6), y + 13, short_ratio(ratio), fill=colour, bold=True,
                     anchor="start" if is_ahead else "end")
        if cell.again:
            picture.text(at(ratio) + 42, y + 13, f"later {cell.again}", size=11,
                         fill=SOFT if float(cell.again) >= 1 else BEHIND)
        picture.text(last, y + 13, f"{cell.quire} : {cell.peer_value}", size=12, fill=SOFT, anchor="end")
    return bottom


def summary(cells: list[Cell]) -> str:
    by_key = {(c.device, c.model, c.format, c.workload, c.peer): c for c in cells}
    gpu = [(f"{model} {form}, {work}", by_key["H200", model, form, work, "vLLM 0.22"])
           for model, form, work in SUMMARY_GPU]
    cpu = [(f"{c.format}, {c.workload}", c) for c in cells
           if (c.device, c.model, c.peer) == ("EPYC Zen 4", "Llama 1B", "llama.cpp") and c.format in ("Q4_K_M", "F16")]

    def commits(rows: list[tuple[str, Cell]]) -> str:
        return ", ".join(dict.fromkeys(cell.commit for _, cell in rows))

    picture = Picture(880, 632, "Quire's speed divided by vLLM's on an H200 and by llama.cpp's on a CPU")
    bottom = bars(picture, 32, "GPU: speed relative to vLLM 0.22 on one NVIDIA H200",
                  f"requests × tokens in/out; dummy weights of the true shapes; commits {commits(gpu)}", gpu)
    bottom = bars(picture, bottom + 38, "CPU: speed relative to llama.cpp on two cores of an AMD EPYC (Zen 4)",
                  f"a Llama of 1B parameters, llama-cpp-python 0.3.36; commits {commits(cpu)}; "
                  "later: 72630ef7", cpu)
    picture.text(20, bottom + 28, "A bar to the right of 1×: Quire is faster. tools/plot_benchmarks.py, "
                 "from bench/results/cells.csv.", size=11, fill=SOFT)
    return picture.svg()


def cpu_grid(cells: list[Cell]) -> str:
    """A row per processor, model and format, a column per workload: the ratio to llama.cpp's speed."""
    chosen = [c for c in cells if "llama.cpp" in c.peer and c.model.startswith(("Llama", "stories"))
              and "server" not in c.workload]
    works = list(dict.fromkeys(c.workload for c in chosen))
    keys = list(dict.fromkeys((c.device, c.model, c.format, c.peer) for c in chosen))
    picture = Picture(880, 92 + 26 * len(keys), "Ratios to llama.cpp's speed on CPUs")
    picture.text(20, 30, "CPU: Quire's speed divided by the peer's, two cores", size=15, bold=True)
    picture.text(20, 50, "tokens/s of a prompt of 512 tokens, and of decode", size=12, fill=SOFT)
    for column, work in enumerate(works):
        picture.text(390 + 94 * column + 45, 56, work.replace("decode, ", "").replace("decode ", "1 "),
                     size=11, fill=SOFT, anchor="middle")
    for row, key in enumerate(keys):
        device, model, form, peer = key
        y = 66 + 26 * row
        picture.text(20, y + 17, f"{device}: {model} {form}, {peer.split(',')[0]}", size=12)
        for cell in chosen:
            if (cell.device, cell.model, cell.format, cell.peer) != key:
                continue
            ratio = cell.times
            assert ratio is not None
            x = 390 + 94 * works.index(cell.workload)
            depth = min(abs(math.log2(ratio)) / 2, 1.0)
            base = (47, 125, 79) if ratio >= 1 else (194, 86, 45)
            mixed = "#" + "".join(f"{round(252 + (part - 252) * (0.15 + 0.75 * depth)):02x}" for part in base)
            picture.rect(x, y, 91, 23, mixed)
            picture.text(x + 45, y + 16, short_ratio(ratio), size=12, bold=ratio < 1, anchor="middle",
                         fill="#ffffff" if depth > 0.6 else INK)
    return picture.svg()


def claims(cells: list[Cell]) -> list[str]:
    """What the first sentence of README.md says, in these words."""
    vllm = [c for c in cells if (c.device, c.peer, c.unit) == ("H200", "vLLM 0.22", "tokens/s")]
    llama = [c for c in cells if c.peer in ("llama.cpp", "llama.cpp, AVX2")]
    return [f"vLLM on an H200 in {ahead(vllm)} workloads", f"llama.cpp on CPUs in {ahead(llama)}"]


def figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.1f}"


def faults_of(cells: list[Cell]) -> list[str]:
    """Figures of the file that their source does not have."""
    faults = []
    for cell in cells:
        source = RESULTS / cell.source
        if source.suffix == ".json":
            found = {(f"{row['ratio']:.4f}", figure(row["quire"]), figure(max(
                value for name, value in row.items() if name.endswith("_flash"))))
                for row in json.loads(source.read_text(encoding="utf-8"))}
            has_all = (cell.ratio, cell.quire, cell.peer_value) in found
            missing = [] if has_all else [f"{cell.quire} : {cell.peer_value}, {cell.ratio}"]
        else:
            text = source.read_text(encoding="utf-8").replace("*", "")
            missing = [value for value in (cell.quire, cell.ratio) if value and value not in text]
        faults += [f"cells.csv: {cell.device}, {cell.model}, {cell.workload}: {value} is not in {cell.source}"
                   for value in missing]
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    faults += [f"README.md does not say \"{claim}\", which the cells do" for claim in claims(cells)
               if claim not in readme]
    return faults


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing, and fail if a file differs")
    check = parser.parse_args().check
    cells = read_cells()
    made = {PAGE: page(cells), ROOT / "docs/benchmarks-summary.svg": summary(cells),
            ROOT / "docs/benchmarks-cpu.svg": cpu_grid(cells)}
    for grid in ("seed", "strict"):
        made[ROOT / f"docs/attention-{grid}.svg"] = draw_attention(
            read_table(RESULTS / f"h200/attention_{grid}.csv"))
    faults = faults_of(cells)
    for path, text in made.items():
        if not check:
            path.write_text(text, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            faults.append(f"{path.relative_to(ROOT)} differs from what tools/plot_benchmarks.py writes: run it")
    print("\n".join(faults) if faults else f"{len(cells)} cells, {len(made)} files")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
