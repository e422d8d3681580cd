"""The report on the study: verdicts first, then every table and figure of the paper, then what it could not say."""

from collections.abc import Mapping
from typing import TypeVar

import xarray as xr

from headscope.core.document import Document, Paragraph, Part, Picture, Section, Table
from headscope.results.stamp import read_provenance
from headscope.studies.effective_attention import paper, pictures, remarks, tables
from headscope.studies.effective_attention.claims import Claim, claims
from headscope.studies.effective_attention.reduce import SAME
from headscope.studies.effective_attention.scale import counted, reduced, reduced_maps
from headscope.studies.effective_attention.words import JUDGED, LENSES, METHOD, answers, lead, origin, twins, unlearned

CITED = ("sun2021", "brunner2020", "kovaleva2019", "kobayashi2020", "clark2019")


def document(found: Mapping[str, xr.Dataset]) -> Document:
    """All of it, from what the study found."""
    numbers, times = found["numbers"], found.get("times")
    judged = claims(numbers, times)
    facts = read_provenance(numbers)
    sections = [
        _verdicts(judged, numbers),
        _data(numbers),
        _patterns(numbers, judged),
        _types(numbers),
        *([_example(found["maps"])] if "maps" in found else []),
        _tuning(numbers),
        _special(numbers),
        *([_times(times)] if times is not None else []),
        _scores(numbers),
        _lengths(numbers),
        _norms(numbers),
        _method(numbers),
    ]
    cited = (*CITED, *(["webster2018"] if "GAP" in numbers["task"].values else []))
    title = "Effective attention: what the published comparison shows"
    return Document(title, lead(numbers, judged), sections, cited, [{"name": "the study", **facts}])


def _verdicts(judged: list[Claim], numbers: xr.Dataset) -> Section:
    why = reduced(numbers)
    parts: list[Part] = [
        Paragraph(answers(numbers)),
        *([Paragraph(said)] if (said := unlearned(numbers)) else []),
        Paragraph(LENSES),
        Table("verdicts", "The claims of Sun & Marasović (2021), and what stands of them with effective attention "
              "measured exactly.", tables.verdicts(judged), counted(numbers), reduced=why),
        Paragraph(JUDGED),
    ]  # fmt: skip
    if numbers.sizes["task"] > 1:
        parts.append(
            Table("verdicts_by_task", "What stands of the claims of Sun & Marasović (2021), task by task.",
                  tables.verdicts_by_task(judged), counted(numbers), reduced=why)
        )  # fmt: skip
    return Section("What holds", parts)


def _data(numbers: xr.Dataset) -> Section:
    size = int(numbers["value_size"].values[0])
    sources = " ".join(f"**{task}**: {origin(numbers, task)}." for task in map(str, numbers["task"].values))
    missing = read_provenance(numbers).get("missing") or []
    lacking = f" Not in the folder: {', '.join(missing)}." if missing else ""
    table = Table(
        "table_1",
        f"The data in use (the paper's Table 1). d, the value dimensions of a head of this model, is {size}.",
        tables.sizes(numbers),
        counted(numbers),
        theirs=paper.table_1() if _theirs(numbers) else None,
        reduced=reduced(numbers),
        number=1,
    )
    return Section("The data", [table, Paragraph(sources + lacking)])


def _patterns(numbers: xr.Dataset, judged: list[Claim]) -> Section:
    names = [str(each) for each in numbers["task"].values]
    why, many = reduced_maps(numbers), counted(numbers, maps=True)
    caption = "Share of maps of each pattern class in per cent, {}. B block, D diagonal, V vertical, H heterogeneous."
    shown = _shown(numbers.sel(role="tuned", length="all"))
    parts: list[Part] = [
        Paragraph(remarks.survivors(judged)),
        Table("table_2", caption.format("tuned model (the paper's Table 2)"), tables.patterns(numbers, "tuned"), many,
              theirs=tables.their_patterns(names), reduced=why, number=2),
        *([Paragraph(paper.FAULTS)] if _theirs(numbers) else []),
        Picture("figure_4", "Share of maps of each pattern class, tuned model (the paper's Figure 4).",
                pictures.shares(shown["share"]), many, reduced=why, number=4),
        Picture("shares", "Share of maps of each pattern class with 95 % intervals, tuned model.",
                pictures.intervals(ends(shown, "share")), many, reduced=why),
        Table("table_2_base", caption.format("base model, before tuning"), tables.patterns(numbers, "base"), many,
              reduced=why),
    ]  # fmt: skip
    return Section("Patterns of attention", parts)


def _types(numbers: xr.Dataset) -> Section:
    caption = (
        "Weight from [CLS] in the last layer to each type of token, tuned model, mean over inputs (the paper's Figure "
        "1); of several tokens of a type the heaviest, of a word of several tokens the first. Blue is above zero, "
        "orange below; colours mean the same in all panels of a task. Padded attention is left out: on real tokens it "
        "is nearly always the published one."
    )
    means = "Weight from [CLS] to each type of token, mean over the heads of the last layer, {}."
    many, why = counted(numbers), reduced(numbers)
    shown = _shown(numbers["head_type"].sel(role="tuned"))
    return Section(
        "Delimiters and linguistic features",
        [
            Picture("figure_1", caption, pictures.type_grids(shown), many, reduced=why, number=1),
            Table("type_weights", means.format("tuned model"), tables.types(numbers, "tuned"), many, reduced=why),
            Table("type_weights_base", means.format("base model, before tuning"), tables.types(numbers, "base"), many,
                  reduced=why),
            *([Paragraph(said)] if (said := twins(numbers)) else []),
        ],
    )  # fmt: skip


def _example(maps: xr.Dataset) -> Section:
    facts = read_provenance(maps)
    name = f"{facts.get('example', '')}{f' of {task}' if (task := facts.get('task_shown')) else ''}"
    layer, head = int(maps["layer"].values[0]), int(maps["head"].values[0])
    which = f"head L{layer}H{head} of the tuned model, the one that attends most to [SEP], on the input {name}"
    return Section(
        "One head on one example",
        [
            Picture("figure_2", f"The last rows of the map of {which} (the paper's Figure 2).",
                    pictures.one_head(maps, rows=pictures.LAST_ROWS), 1, number=2),
            Picture("figure_7", f"The whole map of {which} (the paper's Figure 7).", pictures.one_head(maps), 1,
                    number=7),
        ],
    )  # fmt: skip


def _tuning(numbers: xr.Dataset) -> Section:
    figure = pictures.head_grids(_shown(numbers["similarity"]), "cosine before and after tuning", signed=False)
    caption = "Cosine of the maps of base and tuned model, mean over inputs (the paper's Figure 3)."
    many, why = counted(numbers), reduced(numbers)
    return Section(
        "What fine-tuning changes",
        [
            Picture("figure_3", caption, figure, many, reduced=why, number=3),
            Table(
                "similarity",
                "Cosine of the maps of base and tuned model, by layer, mean over inputs and heads.",
                tables.layers(numbers),
                many,
                reduced=why,
            ),
        ],
    )


def _special(numbers: xr.Dataset) -> Section:
    many, why = counted(numbers), reduced(numbers)
    parts: list[Part] = []
    for number, token, name in ((5, "cls", "[CLS]"), (6, "sep", "[SEP]")):
        table = _shown(numbers["head_weight"].sel(role="tuned", token=token, drop=True))
        caption = (
            f"Weight on {name} from all other tokens, tuned model, mean over inputs (the paper's Figure {number})."
        )
        also = " Of two [SEP] the heavier." if token == "sep" else ""
        figure = pictures.head_grids(table, f"weight on {name}", signed=True)
        parts.append(Picture(f"figure_{number}", caption + also, figure, many, reduced=why, number=number))
    caption = (
        "Weight on [CLS] and [SEP] from all other tokens, mean over layers and heads, {}; absolute is that of |w|."
    )
    parts += [
        Table("special", caption.format("tuned model"), tables.weights(numbers, "tuned"), many, reduced=why),
        Table("special_base", caption.format("base model"), tables.weights(numbers, "base"), many, reduced=why),
    ]
    return Section("[CLS] and [SEP] over layers and heads", parts)


def _times(times: xr.Dataset) -> Section:
    where, tokens = times.attrs.get("device", ""), int(times.attrs.get("tokens", 0))
    slow = int(times["seconds"].sel(way="svd").count("turn").max())
    caption = (
        f"Evaluation time over that with standard attention, in one run, in turns (the paper's Table 3): median, least "
        "and most. "
        f"Inputs filled up to {tokens} tokens, on {where}. The last way is the published one, timed in {slow} turns."
    )
    table = Table(
        "table_3", caption, tables.times(times), f"{times.sizes['turn']} turns", theirs=paper.table_3(), number=3
    )
    return Section("Evaluation time", [table])


def _scores(numbers: xr.Dataset) -> Section:
    said = (
        "With exact effective attention in place the model computes the same numbers, to rounding: a prediction can "
        "change only where two classes are level. The published code computes another model."
    )
    many, why = counted(numbers), reduced(numbers)
    return Section(
        "What the model answers with effective attention in place",
        [
            Paragraph(said),
            Table("scores", "Score of the tuned model on its task with each attention in place.",
                  tables.scores(numbers), many, reduced=why),
            Table("same", f"Per cent in which exact effective attention is attention, to {100 * SAME:g} % of its size.",
                  tables.same(numbers), many, reduced=why),
        ],
    )  # fmt: skip


def _lengths(numbers: xr.Dataset) -> Section:
    many, why = counted(numbers), reduced(numbers)
    drawn = lengths_shown(numbers)
    caption = "Weights by length of the input, tuned model; whiskers are 95 % intervals over inputs."
    classes = tables.lengths(numbers)
    parts: list[Part] = [
        Paragraph(remarks.by_length(numbers)),
        Picture("by_length", caption, pictures.by_length(drawn, "tokens of the input"), many, reduced=why),
        Table("lengths", "How many of the inputs have so many tokens.", classes, many, reduced=why),
    ]
    if int(numbers["n"].sel(length="more than d").sum()):
        longer, size = counted(numbers, length="more than d"), int(numbers["value_size"].values[0])
        parts += [
            Table("table_2_longer", f"Share of maps of each pattern class in per cent, inputs of more than {size} "
                  "tokens (d) only, tuned model.",
                  tables.patterns(numbers, "tuned", "more than d"), counted(numbers, length="more than d", maps=True),
                  reduced=reduced_maps(numbers, "more than d")),
            Table("type_weights_longer", "Weight from [CLS] to each type of token, mean over the heads of the last "
                  f"layer, inputs of more than {size} tokens (d) only, tuned model.",
                  tables.types(numbers, "tuned", "more than d"), longer, reduced=why),
            Table("special_longer", "Weight on [CLS] and [SEP] from all other tokens, mean over layers and heads, "
                  f"inputs of more than {size} tokens (d) only, tuned model.",
                  tables.weights(numbers, "tuned", "more than d"), longer, reduced=why),
        ]  # fmt: skip
    else:
        parts.append(Paragraph("No input is longer than d, so there are no tables for such inputs."))
    return Section("Length, and what padding does", parts)


def lengths_shown(numbers: xr.Dataset) -> dict[str, xr.Dataset]:
    """What the picture by length shows: [SEP], [CLS] and punctuation, of the tuned model."""
    bins = [str(each) for each in numbers["length"].values[3:]]
    tuned = numbers.sel(role="tuned", length=bins, size="signed", lens=list(pictures.SHOWN))
    return {
        "weight on [SEP]": ends(tuned.sel(token="sep"), "weight"),
        "weight on [CLS]": ends(tuned.sel(token="cls"), "weight"),
        "[CLS] to punctuation": ends(tuned.sel(type="punctuation"), "type_weight"),
    }


def _norms(numbers: xr.Dataset) -> Section:
    many, why = counted(numbers), reduced(numbers)
    caption = (
        "Agreement of every head's map with the norm-based analysis, mean over heads; and the portion of [CLS]'s "
        "attention in the last layer that each kind of token has, of that on the six types."
    )
    table = Table("norms", caption, tables.norms(numbers), many, reduced=why)
    return Section("Beside the norm-based analysis", [Paragraph(remarks.beside_norms(numbers)), table])


def _method(numbers: xr.Dataset) -> Section:
    told = [Paragraph(each) for each in (*METHOD, f"**What differs from the paper.** {remarks.differences(numbers)}")]
    return Section("How it was measured, and what differs from the paper", told)


Held = TypeVar("Held", xr.DataArray, xr.Dataset)


def _shown(table: Held) -> Held:
    return table.sel(lens=list(pictures.SHOWN))


def ends(one: xr.Dataset, name: str) -> xr.Dataset:
    """A variable and its interval, as pictures take them."""
    return xr.Dataset({"value": one[name], "low": one[f"{name}_low"], "high": one[f"{name}_high"]})


def _theirs(numbers: xr.Dataset) -> bool:
    return any(str(each) in paper.KINDS for each in numbers["task"].values)
