"""Tables of probes: the best head of each relation, trained probes, coreference."""

from collections.abc import Mapping

import pandas as pd
import xarray as xr

from headscope.reporting.frames import ENDS, TableColumn, to_frame
from headscope.results.accuracies import select_adjusted_p
from headscope_studies.what_heads_look_at import probe_numbers


def relation_table(dependency: xr.Dataset) -> pd.DataFrame:
    """Return the accuracy of the best head and of the baselines for every relation and for all."""
    data = dependency.sel(task="dependency", drop=True)
    columns = [
        TableColumn(
            "words", "accuracy_n", {"predictor": "head"} if "predictor" in data["accuracy_n"].dims else {}, whole=True
        )
    ]
    columns += [
        TableColumn(str(name).replace("_", " "), "accuracy", {"predictor": name}, scale=100)
        for name in data["predictor"].values
    ]
    p = str(select_adjusted_p(data, "gain").name)
    columns += [TableColumn("gain", "gain", scale=100), TableColumn("p", p, interval=False)]
    frame = to_frame(data, {"relation": "relation"}, columns)
    frame["best head"] = [probe_numbers.describe_best(data.sel(relation=name)) for name in frame.index]
    return frame


def uas_table(trained: Mapping[str, xr.Dataset]) -> pd.DataFrame:
    """Return the UAS of every trained probe and its baselines, on syntax and on the control task."""
    rows: dict[str, dict[str, float]] = {}
    for name, data in trained.items():
        whole = data.sel(relation=probe_numbers.ALL)
        for task in whole["task"].values:
            rows[f"{name.replace('_', ' ')}, {task}"] = {
                f"{str(predictor).replace('_', ' ')}{end}": 100
                * float(whole[f"accuracy{end}"].sel(task=task, predictor=predictor))
                for predictor in whole["predictor"].values
                for end in ENDS
            }
    return pd.DataFrame.from_dict(rows, "index").rename_axis("probe")


def coreference_table(result: xr.Dataset) -> pd.DataFrame:
    """Return the accuracy of one head and of the baselines, by kind of mention (%)."""
    data = result.sel(task="coreference", drop=True)
    columns = [TableColumn(str(kind), "accuracy", {"kind": kind}, scale=100) for kind in data["kind"].values]
    return to_frame(data, {"predictor": "predictor"}, columns)
