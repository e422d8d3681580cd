"""Draw sheets of maps for annotators, who see a number in place of each map's id, and collect what they wrote.

In studies/headscope_patterns:

    python runs/sheets.py draw maps/* --out sheets --key key.tsv
    python runs/sheets.py collect sheets --key key.tsv --out labels/bundled

Every pass has its own order and its own numbers, in packets for annotators who work side by side. An annotator of
packet 3 of pass 1 looks at sheets/pass1/packet3/*.png and writes sheets/pass1/packet3.tsv: one line for each map, its
number and one of the keys v, d, m, b, h. Only key.tsv knows the ids.
"""

import argparse
import csv
import random
from dataclasses import replace
from pathlib import Path

from headscope.experiments.runs import add_commands, call_command, make_parser
from headscope_patterns.labels.labelled_maps import PatternMap, read_labelled_maps, save_labels
from headscope_patterns.labels.render import save_sheets
from headscope_patterns.shell import KEYS

SEED = 2026
PASSES = {"pass1": "first", "pass2": "second"}
PACKETS = 4
NUMBERS = range(1000, 10_000)


def draw(options: argparse.Namespace) -> None:
    """Draw the sheets of every pass and packet, and write the key."""
    maps = [item for folder in options.folders for item in read_labelled_maps(folder).maps]
    key = []
    for name in PASSES:
        rng = random.Random(f"{SEED} {name}")
        order, numbers = rng.sample(maps, len(maps)), rng.sample(NUMBERS, len(maps))
        for packet in range(PACKETS):
            chosen = list(zip(order, numbers, strict=True))[packet::PACKETS]
            folder = options.out / name / f"packet{packet + 1}"
            folder.mkdir(parents=True)
            list(save_sheets([_hide(item, number) for item, number in chosen], folder))
            key += [f"{name}\t{packet + 1}\t{number}\t{item.source.id}" for item, number in chosen]
    options.key.write_text("\n".join(["pass\tpacket\tnumber\tid", *key]) + "\n", encoding="utf-8")


def _hide(item: PatternMap, number: int) -> PatternMap:
    return replace(item, source=replace(item.source, id=str(number)))


def collect(options: argparse.Namespace) -> None:
    """Add the labels of all packets to a folder of maps; fail unless every map has one label in each pass."""
    labelled, written = read_labelled_maps(options.out), _read_packets(options.sheets)
    with options.key.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            labels = labelled.passes.setdefault(PASSES[row["pass"]], {})
            if row["id"] in labels:
                raise SystemExit(f"{row['id']} has a label of the {PASSES[row['pass']]} pass already.")
            try:
                labels[row["id"]] = KEYS[written.pop((row["pass"], row["packet"], row["number"]))]
            except KeyError as error:
                raise SystemExit(
                    f"{row['pass']}, packet {row['packet']}, {row['number']}: no such key {error}"
                ) from None
    if written:
        raise SystemExit(f"These numbers are on no sheet: {sorted(written)}")
    save_labels(labelled.passes, options.out)


def _read_packets(folder: Path) -> dict[tuple[str, str, str], str]:
    """Return what annotators wrote, by pass, packet and number."""
    written: dict[tuple[str, str, str], str] = {}
    for name in PASSES:
        for packet in map(str, range(1, PACKETS + 1)):
            for line in (folder / name / f"packet{packet}.tsv").read_text(encoding="utf-8").splitlines():
                number, key = line.split("\t")[:2]
                if (name, packet, number) in written:
                    raise SystemExit(f"{name}, packet {packet}: {number} was labelled twice.")
                written[name, packet, number] = key.strip().lower()
    return written


def main() -> None:
    """Run draw or collect."""
    parser = make_parser(__doc__)
    drawing, collecting = add_commands(parser, draw=draw, collect=collect)
    drawing.add_argument("folders", type=Path, nargs="+", help="folders of maps")
    collecting.add_argument("sheets", type=Path, help="the folder that draw wrote, with the annotators' files")
    for command in (drawing, collecting):
        command.add_argument("--key", type=Path, required=True, help="the file that tells which map has which number")
    call_command(parser)


if __name__ == "__main__":
    main()
