"""The page docs/heads.md and its figures, from docs/results/heads.nc."""

from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from headscope.plotting.draw import draw
from headscope.results.stamp import read_provenance
from headscope.results.store import open_result

DOCS = Path(__file__).parent
CORPORA = {"wikitext": "pairs of paragraphs of WikiText-2", "sst2": "sentences of SST-2"}
ROWS: dict[str, tuple[str, dict[str, Any]]] = {  # what a row shows, of which variable, and where along further axes
    "entropy (nats)": ("entropy", {}),
    "largest weight of a row": ("peak", {}),
    "distance (tokens)": ("distance", {}),
    "on the previous token": ("offsets", {"offset": -1}),
    "on the token itself": ("offsets", {"offset": 0}),
    "on the next token": ("offsets", {"offset": 1}),
    "on [CLS], from others": ("special_tokens", {"role": "cls", "source": "others"}),
    "on [SEP], from others": ("special_tokens", {"role": "sep", "source": "others"}),
    "effective share": ("effective_share", {}),
    "cosine with norm-based": ("lens_agreement", {}),
    "rank correlation with norm-based": ("lens_agreement_rank", {}),
}
PICTURES = {
    "heads_sep.svg": ("e5-small", "curve:variable=special_tokens,at=role=sep+source=others,title=Weight on [SEP]"),
    "heads_entropy.svg": ("all-MiniLM-L6-v2", "heads:variable=entropy"),
    "heads_types.svg": (
        "e5-small",
        "bars:variable=token_types,along=type,at=layer=11,title=From [CLS] in the last layer",
    ),
}

TEXT = """# What every head does, standard and effective

*Made by `docs/make.py` from `docs/results/heads.nc`; no number here is typed by hand.*

Every statistic of [the catalog](statistics.md) but `similarity`, which wants two models of one shape, over {inputs},
with two pretrained models: {models}. Lenses: standard attention (`raw`) and exact effective attention. This is one
`hs.measure` for each model and corpus; tags are those of the built-in tagger.

**In short.** On two paragraphs, {sep_model} gives [SEP] {sep_raw} of a row's weight on average, and {sep_top} in the
layer that gives it most, where its effective weight is {sep_effective}. [CLS] loses as much in {cls_model}: {cls_raw}
of the weight, {cls_effective} of the effective. Effective attention is spread wider (entropy {entropy_effective}
against {entropy_raw} nats). On the short sentences of SST-2 most of that difference is gone: the effective share is
{share_short} there and {share_long} on two paragraphs. Norm-based and effective attention agree only in part: a rank
correlation of {rank_effective} on average on two paragraphs, where norm-based and standard have {rank_raw}.

![Weight on SEP by layer](pictures/heads_sep.svg)

*{sep_model}, two paragraphs: the mean weight on [SEP] from all other tokens. A dot is a head.*

![Entropy of every head](pictures/heads_entropy.svg)

*{cls_model}, two paragraphs.*

![Weight on types of tokens](pictures/heads_types.svg)

*{sep_model}, two paragraphs: the largest weight on each type, mean over heads. [CLS] and the heavier [SEP] get the same
weight here, to {alike} at most in any head: in this model their hidden states have become the same.*
{tables}
## How to read this

- Numbers are means over layers and heads of means over examples; the result file has every head with its spread and
  interval.
- A signed map is no distribution: for entropy, largest weight and distance, effective attention is taken as |w| / Σ|w|.
  Part of its larger entropy is due to that: many small weights of either sign count.
- Weights of effective attention need not sum to 1, so a smaller weight on [SEP] is not made up for elsewhere.
- WikiText-2 replaces rare words by an unknown token; paragraphs with more than one in twenty were left out. Inputs are
  cut to {length} tokens.

{n} inputs in all: {command}. {runs}
"""


def page() -> bytes:
    """The page."""
    data = open_result(DOCS / "results" / "heads.nc").isel(site=0)
    facts = read_provenance(open_result(DOCS / "results" / "heads.nc"))
    sep_model, cls_model = "e5-small", "all-MiniLM-L6-v2"
    sep, cls = (
        data.special_tokens.sel(corpus="wikitext", role=role, source="others", model=model)
        for role, model in (("sep", sep_model), ("cls", cls_model))
    )
    long, layers = data.sel(corpus="wikitext"), ("layer", "head")
    top = int(sep.sel(lens="raw").mean("head").argmax("layer"))
    types = long.token_types.sel(model=sep_model, layer=11)
    share = data.effective_share.sel(lens="effective").mean(("model", *layers))
    values = {
        "inputs": " and ".join(f"{_many(facts, name):,} {title}" for name, title in CORPORA.items()),
        "models": " and ".join(facts["model"]),
        "sep_model": sep_model,
        "cls_model": cls_model,
        "sep_raw": f"{float(sep.sel(lens='raw').mean()):.0%}",
        "sep_top": f"{float(sep.sel(lens='raw').isel(layer=top).mean()):.0%}",
        "sep_effective": f"{float(sep.sel(lens='effective').isel(layer=top).mean()):.0%}",
        "cls_raw": f"{float(cls.sel(lens='raw').mean()):.0%}",
        "cls_effective": f"{float(cls.sel(lens='effective').mean()):.0%}",
        **{f"entropy_{lens}": f"{float(long.entropy.sel(lens=lens).mean()):.2f}" for lens in ("raw", "effective")},
        **{
            f"rank_{lens}": f"{float(long.lens_agreement_rank.sel(lens=lens).mean()):.2f}"
            for lens in ("raw", "effective")
        },
        "alike": f"{float(abs(types.sel(type='cls') - types.sel(type='sep')).max()):.0e}",
        "share_short": f"{float(share.sel(corpus='sst2')):.2f}",
        "share_long": f"{float(share.sel(corpus='wikitext')):.2f}",
        "tables": "".join(_table(data, facts, corpus) for corpus in CORPORA),
        "length": facts["max_length"],
        "n": f"{facts['n']:,}",
        "command": facts["command"],
        "runs": " ".join(
            f"{name}: weights {each['weights_hash'][:12]}, data {each['data']}, {each['dtype']} on {each['device']}."
            for name, each in sorted(facts["runs"].items())
        ),
    }
    return TEXT.format(**values).encode()


def _table(data: xr.Dataset, facts: dict[str, Any], corpus: str) -> str:
    """Means over layers and heads, a column for each model and lens."""
    models = [str(each) for each in data.model.values]
    names = [f"{model}, {lens}" for model in models for lens in data.lens.values]
    lines = [
        f"\n## {CORPORA[corpus][0].upper()}{CORPORA[corpus][1:]}\n",
        f"| | {' | '.join(names)} |",
        "|---" * (1 + len(names)) + "|",
    ]
    for title, (variable, where) in ROWS.items():
        cells = data[variable].sel(corpus=corpus, **where).mean(("layer", "head"))
        numbers = [float(cells.sel(model=model, lens=lens)) for model in models for lens in data.lens.values]
        lines.append(f"| {title} | {' | '.join('–' if np.isnan(each) else f'{each:.3g}' for each in numbers)} |")
    return "\n".join(lines) + f"\n\nn = {_many(facts, corpus):,} inputs each.\n"


def _many(facts: dict[str, Any], corpus: str) -> int:
    """How many inputs of a corpus each model read."""
    (many,) = {each["n"] for name, each in facts["runs"].items() if name.startswith(f"{corpus} ")}
    return int(many)


def pictures() -> dict[str, Figure]:
    """The page's pictures by name."""
    data = open_result(DOCS / "results" / "heads.nc").sel(corpus="wikitext")
    found = {}
    for name, (model, figure) in PICTURES.items():
        one = data.sel(model=model).drop_vars(
            [each for each in data.data_vars if str(each).startswith("head_distance")]
        )
        one = one.dropna("layer", how="all").drop_vars(["corpus", "model"])
        found[name] = draw(one, figure)
    return found
