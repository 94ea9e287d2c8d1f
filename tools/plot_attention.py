"""Draws the heat map of a table that `quire bench attention --csv FILE` wrote.

    python tools/plot_attention.py bench/results/h200/attention_strict.csv --output strict.svg

One panel per backend, and one for the choice of `auto`: the share of the peak bandwidth that each cell
reaches, in percent. The panel of `auto` also has the backend's name, and the distance from the best
backend where that is not zero.
"""

from __future__ import annotations

import argparse
import csv
from dataclasses import dataclass
from pathlib import Path

from svg import INK, SOFT, Picture, shade

SUFFIX = "_graph_us"
WIDTH, HEIGHT = 48, 32  # of a cell, in pixels
SHORT = {"flashinfer": "flashinf."}  # what fits into a cell


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


def draw_panel(picture: Picture, left: int, top: int, table: Table, name: str) -> None:
    is_auto = name == "auto"
    num_seqs, lengths = table.num_seqs(), table.max_seq_lens()
    picture.text(left, top, "auto: its choice, % of peak (% off the best)" if is_auto else name, bold=True)
    for index, length in enumerate(lengths):
        y = top + 12 + HEIGHT * (len(lengths) - 1 - index)
        picture.text(left + 26, y + 20, short_length(length), size=10, fill=SOFT, anchor="end")
    for index, num in enumerate(num_seqs):
        x = left + 30 + WIDTH * index
        picture.text(x + WIDTH / 2, top + 26 + HEIGHT * len(lengths), str(num), size=10, fill=SOFT, anchor="middle")
    for row in table.rows:
        share = row.share_of_peak.get(row.auto if is_auto else name)
        if share is None:
            continue
        x = left + 30 + WIDTH * num_seqs.index(row.num_seqs)
        y = top + 12 + HEIGHT * (len(lengths) - 1 - lengths.index(row.max_seq_len))
        picture.rect(x, y, WIDTH - 1, HEIGHT - 1, shade(share))
        fill = "#ffffff" if share > 0.7 else INK
        off = 0.0 if row.auto_over_best is None else 100 * (row.auto_over_best - 1)
        text = f"{100 * share:.0f}" + (f" ({off:+.1f})" if is_auto and f"{off:.1f}" != "0.0" else "")
        picture.text(x + WIDTH / 2, y + (26 if is_auto else 20), text, size=10 if len(text) < 8 else 9, fill=fill, anchor="middle")
        if is_auto:
            picture.text(x + WIDTH / 2, y + 13, SHORT.get(row.auto, row.auto), size=9, fill=fill, anchor="middle")


def draw(table: Table) -> str:
    names = [*table.backends, "auto"]
    num_columns = min(2, len(names))
    panel_width = 44 + WIDTH * len(table.num_seqs())
    panel_height = 50 + HEIGHT * len(table.max_seq_lens())
    num_rows = -(-len(names) // num_columns)
    picture = Picture(20 + panel_width * num_columns, 56 + panel_height * num_rows, table.title)
    picture.text(16, 26, table.title, size=12, bold=True)
    picture.text(16, 44, "% of the peak bandwidth; across: sequences, up: longest context in tokens", size=11, fill=SOFT)
    for index, name in enumerate(names):
        draw_panel(picture, 16 + panel_width * (index % num_columns), 74 + panel_height * (index // num_columns),
                   table, name)
    return picture.svg()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("table", type=Path, help="CSV of quire bench attention")
    parser.add_argument("--output", type=Path, required=True, help="an .svg to write")
    arguments = parser.parse_args()
    arguments.output.write_text(draw(read_table(arguments.table)), encoding="utf-8")


if __name__ == "__main__":
    main()
