"""Draws the heat map of a table that `quire bench attention --csv FILE` wrote.

    python tools/plot_attention.py bench/results/h200/attention_strict.csv --output strict.svg

One panel a backend, and one for the choice of auto: the share of the peak bandwidth that each cell
reaches (in auto's panel with its distance from the best where that is not zero). Needs matplotlib.
"""

from __future__ import annotations

import argparse
import csv
from dataclasses import dataclass
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes

SUFFIX = "_graph_us"


@dataclass(frozen=True)
class Row:
    num_seqs: int
    max_seq_len: int
    share_of_peak: dict[str, float]  # of each backend that served the row
    auto: str
    auto_over_best: float | None


@dataclass(frozen=True)
class Table:
    title: str
    backends: list[str]
    rows: list[Row]

    def num_seqs(self) -> list[int]:
        return sorted({row.num_seqs for row in self.rows})

    def max_seq_lens(self) -> list[int]:
        return sorted({row.max_seq_len for row in self.rows})


def read_row(fields: dict[str, str], backends: list[str]) -> Row:
    best_us = float(fields["best_graph_us"] or "nan")
    best_share = float(fields["best_share_of_peak"] or "nan")
    shares = {
        name: best_share * best_us / float(fields[name + SUFFIX])
        for name in backends
        if fields[name + SUFFIX]
    }
    off = fields["auto_over_best"]
    return Row(
        num_seqs=int(fields["num_seqs"]),
        max_seq_len=int(fields["max_seq_len"]),
        share_of_peak=shares,
        auto=fields["auto"],
        auto_over_best=float(off) if off else None,
    )


def read_table(path: Path) -> Table:
    lines = path.read_text(encoding="utf-8").splitlines()
    comments = [line[1:].strip() for line in lines if line.startswith("#")]
    reader = csv.DictReader(line for line in lines if not line.startswith("#"))
    columns = reader.fieldnames or []
    backends = [
        name.removesuffix(SUFFIX)
        for name in columns
        if name.endswith(SUFFIX) and name != "best" + SUFFIX
    ]
    lines_of_rows = list(reader)
    q_lens = {fields["q_len"] for fields in lines_of_rows}
    if len(q_lens) > 1:
        raise SystemExit(
            f"{path}: several query lengths; got {', '.join(sorted(q_lens, key=int))}, expected one: "
            "measure with one --q-len"
        )
    rows = [read_row(fields, backends) for fields in lines_of_rows]
    if not rows:
        raise SystemExit(f"{path}: no rows; expected a table of quire bench attention --csv")
    return Table(comments[0] if comments else path.name, backends, rows)


def short_length(tokens: int) -> str:
    return f"{tokens // 1024}k" if tokens % 1024 == 0 else str(tokens)


def auto_text(row: Row) -> str:
    share = f"{100 * row.share_of_peak[row.auto]:.0f}" if row.auto in row.share_of_peak else "?"
    off = "" if row.auto_over_best is None else f"{100 * (row.auto_over_best - 1):+.1f}"
    return f"{row.auto}\n{share}" + ("" if off in ("", "+0.0") else f" ({off})")


def draw_panel(axes: Axes, table: Table, name: str) -> None:
    is_auto = name == "auto"
    num_seqs, lengths = table.num_seqs(), table.max_seq_lens()
    grid = [[float("nan")] * len(num_seqs) for _ in lengths]
    for row in table.rows:
        share = row.share_of_peak.get(row.auto if is_auto else name)
        if share is None:
            continue
        y, x = lengths.index(row.max_seq_len), num_seqs.index(row.num_seqs)
        grid[y][x] = share
        axes.text(
            x,
            y,
            auto_text(row) if is_auto else f"{100 * share:.0f}",
            ha="center",
            va="center",
            fontsize=5.5 if is_auto else 8,
            color="black" if share > 0.5 else "white",
        )
    axes.imshow(grid, vmin=0.0, vmax=1.0, cmap="viridis", origin="lower", aspect="auto")
    axes.set_xticks(range(len(num_seqs)), [str(n) for n in num_seqs], fontsize=7)
    axes.set_yticks(range(len(lengths)), [short_length(n) for n in lengths], fontsize=7)
    axes.set_title("auto: choice, % of peak (% off the best)" if is_auto else name, fontsize=9)


def draw(table: Table, output: Path) -> None:
    names = [*table.backends, "auto"]
    num_columns = min(3, len(names))
    num_rows = -(-len(names) // num_columns)
    figure, panels = plt.subplots(
        num_rows, num_columns, figsize=(4.0 * num_columns, 3.6 * num_rows), squeeze=False
    )
    for axes in panels.flat[len(names) :]:
        axes.axis("off")
    for axes, name in zip(panels.flat, names):
        draw_panel(axes, table, name)
    legend = "% of the peak bandwidth; across: sequences, up: longest context"
    figure.suptitle(f"{table.title}\n{legend}", fontsize=9)
    figure.tight_layout()
    figure.savefig(output, metadata={"Date": None} if output.suffix == ".svg" else None)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("table", type=Path, help="CSV of quire bench attention")
    parser.add_argument("--output", type=Path, required=True, help="an .svg or .png to write")
    arguments = parser.parse_args()
    plt.rcParams.update({"svg.hashsalt": "quire", "svg.fonttype": "none"})
    draw(read_table(arguments.table), arguments.output)


if __name__ == "__main__":
    main()
