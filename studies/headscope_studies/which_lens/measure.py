"""What is measured of one tuned model: how well each lens agrees with what it does to take edges and tokens away."""

from collections.abc import Mapping
from typing import Any

import xarray as xr

from headscope.core.catalog import lenses as catalog
from headscope.core.estimate import interval_names
from headscope.core.provenance import read_provenance
from headscope.core.spec import to_spec
from headscope.engine.model import Model
from headscope.experiments.tuned import TaskRun, ignore_truncation
from headscope.judging.faithfulness import faithfulness
from headscope.training.score import score
from headscope_studies.which_lens.claims import HEADS, HIDDEN, LAYERS, SCORE

GRADIENT = "gradient:times_attention=true"
EDGES = {"raw": "raw", "effective": "effective", "norm": "norm", "logit": "logit:head=linearized", "gradient": GRADIENT}
"""Lenses that say something of an edge of one head, by the names of the study."""

CUTS = {
    "raw": "raw",
    "effective": "effective",
    "norm": "norm",
    "norm with residual": "norm:residual=true",
    "alti": "alti",
    "value zeroing": "value_zeroing",
    "gradient": GRADIENT,
}
"""Lenses that say something of a query and a key in all heads of a layer."""

TOKENS = {
    "raw": "raw",
    "effective": "effective",
    "norm": "norm",
    "rollout": "rollout",
    "rollout, effective": "rollout:inner=effective",
    "rollout, measured": "rollout:residual=measured",
    "rollout, alti": "rollout:inner=alti,residual=0",
    "relevance": "relevance",
    "gradient": GRADIENT,
}
"""Lenses that say something of the tokens of the input."""

REFERENCES = {"blank_out": "blank-out", "random": "random"}
EFFECTS = {HIDDEN: "hidden", SCORE: "score"}
QUANTITIES = {"agreement": "rank_correlation", "covered": "top_share", "unseen": "mass_without_effect"}
COUNTED = {"edges": "edges", "forwards": "forwards"}
ORDER = list(dict.fromkeys([*EDGES, *CUTS, *TOKENS, *REFERENCES.values()]))
"""All lenses of the study, in the order of its tables and figures."""

LOGIT, PROBABILITY = "predicted:score=logit", "predicted"
"""The score of the predicted class: its logit where an edge goes, for a probability near 1 hardly moves."""


def measure_task(run: TaskRun, *, rows: int, keys: int) -> dict[str, xr.Dataset]:
    """Return the numbers of a task."""
    with ignore_truncation():
        tuned = run.tuned
        run.steps.say(2, "taking edges of single heads away")
        single = judge(run, "each", EDGES, target=LOGIT, judge=("edges", "pictures"), rows=rows, keys=keys)
        run.steps.say(3, "taking edges of all heads of a layer away")
        options: dict[str, Any] = {"heads": "all", "rows": rows, "keys": keys, "judge": ("edges", "pictures")}
        whole = judge(run, "all", CUTS, target=LOGIT, **options)
        run.steps.say(4, "taking tokens away")
        replace = choose_replacement(tuned)
        tokens = judge(run, "tokens", TOKENS, target=PROBABILITY, judge="tokens", replace=replace)
        numbers = [join_judges({HEADS: single, LAYERS: whole}), select_tokens(tokens), describe(run, tuned)]
    joined = xr.merge(numbers, join="outer", compat="no_conflicts").reindex(lens=ORDER, than=ORDER)
    return {"numbers": joined.expand_dims(task=[run.task.name])}


def choose_replacement(model: Model) -> str:
    """Return what tokens are replaced by: [MASK], or the unknown token where a tokenizer, as of decoders, has none."""
    return "unk" if getattr(model.tokenizer, "mask_token_id", None) is None else "mask"


def judge(run: TaskRun, name: str, lenses: Mapping[str, str], **options: Any) -> xr.Dataset:
    """Return what one judge says of the lenses, by their names in the study; stored when it is done."""
    path = run.steps.folder / f"{name}.nc"

    def measure() -> xr.Dataset:
        judged = faithfulness(
            run.tuned,
            run.examples,
            lenses=list(lenses.values()),
            max_length=run.max_length,
            seed=run.seed,
            out=path,
            resume=True,
            progress=run.steps.bars,
            **options,
        )
        return rename_lenses(
            judged, {to_spec(catalog.make(spec)): label for label, spec in lenses.items()} | REFERENCES
        )

    return run.steps.keep(name, measure, discard=path.name)


def rename_lenses(judged: xr.Dataset, names: Mapping[str, str]) -> xr.Dataset:
    """Return a result with the names of lenses in the study."""
    labels = [names[str(name)] for name in judged["lens"].values]
    return judged.drop_vars("merging", errors="ignore").assign_coords(lens=labels, other_lens=labels)


def join_judges(judged: Mapping[str, xr.Dataset]) -> xr.Dataset:
    """Return the quantities of edges along `judge`, `effect` and `lens`, and their differences along `than`."""
    parts = [
        select(data, QUANTITIES, {**COUNTED, "agreement_layer": "rank_correlation_layer"})
        .sel(effect=list(EFFECTS.values()))
        .assign_coords(effect=list(EFFECTS))
        .expand_dims(judge=[name])
        for name, data in judged.items()
    ]
    return xr.concat(parts, "judge", join="outer", data_vars="all")


def select_tokens(judged: xr.Dataset) -> xr.Dataset:
    """Return how much probability goes with the tokens that a lens names, and the areas under both curves."""
    names = {"removed": "comprehensiveness", "deletion": "deletion_area", "insertion": "insertion_area"}
    return select(judged, names, {"token_forwards": "forwards"})


def select(judged: xr.Dataset, names: Mapping[str, str], plain: Mapping[str, str]) -> xr.Dataset:
    """Return quantities with their intervals and paired differences, under the names of the study."""
    variables: dict[str, xr.DataArray] = {name: judged[source] for name, source in plain.items()}
    for name, source in names.items():
        pairs = zip(interval_names(name), interval_names(source), strict=True)
        changes = zip(interval_names(f"{name}_change"), interval_names(f"{source}_difference"), strict=True)
        for ours, theirs in (*pairs, *changes, (f"{name}_change_p", f"{source}_difference_p")):
            variables[ours] = judged[theirs]
    return xr.Dataset({name: values.rename(_than(values)).drop_attrs() for name, values in variables.items()})


def _than(values: xr.DataArray) -> dict[str, str]:
    return {"other_lens": "than"} if "other_lens" in values.dims else {}


def describe(run: TaskRun, tuned: Any) -> xr.Dataset:
    """Return the score of the model, how many inputs have more tokens than a head has value dimensions, and facts."""
    scored = score(tuned, run.examples, max_length=run.max_length, progress=False)
    main = str(read_provenance(scored)["main"])
    ends = {ours: scored[theirs] for ours, theirs in zip(interval_names("score"), interval_names(main), strict=True)}
    long = float((run.lengths["tokens"] > run.lengths["value_size"]).mean())
    more = {"majority": scored["majority"], "n": ((), len(run.examples)), "long_share": ((), long)}
    return run.describe(metric=main).assign({**ends, **more}).drop_attrs()
