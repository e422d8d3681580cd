import csv
import json

import numpy as np
import pandas as pd
import pyarrow.parquet
import pytest

from headscope.core.errors import DataWarning, OutputError
from headscope.results.compare import compare
from headscope.results.store import save
from headscope.results.tables import means_table, rows_table, write_cells
from tests.figures.data import dataset, measured

FIRST = ["lens", "site", "layer", "head", "type", "variable", "value", "sd", "n", "low", "high"]


def test_every_cell_is_one_row():
    data = measured(layers=3, heads=4)
    result = means_table(data)
    assert list(result) == FIRST
    assert len(result) == 2 * (24 + 0) + 2 * 12 * 3
    row = result.query("lens == 'effective' and layer == 2 and head == 1 and type == 'verb'").squeeze()
    cell = data.sel(lens="effective", site="self", layer=2, head=1, type="verb")
    assert row["variable"] == "token_types"
    assert row["value"] == float(cell["token_types"])
    assert [row[each] for each in ("sd", "n", "low", "high")] == [
        float(cell[f"token_types_{each}"]) for each in ("sd", "n", "low", "high")
    ]


def test_an_axis_that_a_variable_lacks_is_empty_and_labels_stay_integers():
    result = means_table(measured())
    assert result.query("variable == 'entropy'")["type"].isna().all()
    assert str(result["layer"].dtype) == str(result["n"].dtype) == "Int64"
    wide = measured().rename(type="offset").assign_coords(offset=[-1, 0, 1])
    assert means_table(wide)["offset"].dropna().unique().tolist() == [-1, 0, 1]
    assert str(means_table(wide)["offset"].dtype) == "Int64"


def test_a_csv_file_has_full_precision(tmp_path):
    data = measured(rows=False)
    with save(data, tmp_path / "a.csv").open(encoding="utf-8", newline="") as file:
        back = list(csv.DictReader(file))
    assert [float(row["value"]) for row in back] == means_table(data)["value"].tolist()
    assert [int(row["layer"]) for row in back] == means_table(data)["layer"].tolist()
    assert (tmp_path / "a.csv").read_text(encoding="utf-8").startswith(",".join(FIRST) + "\nraw,self,0,0,,entropy,")


def test_a_parquet_file_carries_the_provenance(tmp_path):
    path = save(measured(rows=False), tmp_path / "a.parquet")
    stamp = json.loads(pyarrow.parquet.read_schema(path).metadata[b"headscope"])
    assert stamp == {"data": "texts", "model": "tiny", "n": 7}
    assert pd.read_parquet(path).equals(means_table(measured(rows=False)))


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_the_same_data_gives_the_same_bytes(ending, tmp_path):
    first, second = (save(measured(rows=False), tmp_path / f"{n}.{ending}").read_bytes() for n in (1, 2))
    assert first == second


def test_a_comparison_has_its_p_values_in_the_table():
    result = means_table(compare(measured(seed=1), measured(seed=2)))
    assert list(result) == [*FIRST, "p", "p_adjusted", "significant"]
    assert result["p_adjusted"].between(0, 1).all()
    assert result["significant"].isin([0, 1]).all()


def test_single_examples_have_a_separate_table(tmp_path):
    data = measured()
    with pytest.warns(DataWarning, match=r"a\.csv has the means; .* 7 single examples .* Save to a\.rows\.csv to get"):
        save(data, tmp_path / "a.csv")
    result = pd.read_csv(save(data, tmp_path / "a.rows.csv"))
    assert list(result) == ["lens", "site", "layer", "head", "example", "type", "variable", "value"]
    assert len(result) == 7 * (2 * 12 + 2 * 18)
    one = result.query("variable == 'entropy' and lens == 'raw' and layer == 1 and head == 2")
    assert np.allclose(one["value"], data["entropy_rows"].sel(lens="raw", site="self", layer=1, head=2))
    assert one["example"].tolist() == list(data["example"].values)


def test_a_selected_lens_is_still_a_column():
    result = means_table(measured(rows=False).sel(lens="raw", layer=1))
    assert set(result["lens"]) == {"raw"}
    assert set(result["layer"]) == {1}


def test_missing_values_are_empty(tmp_path):
    data = measured(rows=False)
    data["entropy"][0, 0, 0, 0] = np.nan
    data["entropy_n"][0, 0, 0, 0] = 0
    assert (save(data, tmp_path / "a.csv")).read_text().splitlines()[1].startswith("raw,self,0,0,,entropy,,")


def test_datasets_that_are_no_table_raise(tmp_path):
    with pytest.raises(
        OutputError, match=r"A table holds measured numbers, but this Dataset holds maps\. Save it as .nc"
    ):
        save(dataset(), tmp_path / "a.csv")
    with pytest.raises(OutputError, match=r"There is no value of single examples to write.*Measure with rows=True, or"):
        rows_table(measured(rows=False))
    with pytest.raises(OutputError, match="There is nothing to write: this Dataset has no variables"):
        means_table(measured()[[]])
    assert not list(tmp_path.iterdir())


FORMULAS = ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\tx", "\rx", "'=1", "''-x"]


def test_no_text_of_a_table_is_a_formula_to_a_spreadsheet(tmp_path):
    texts = [*FORMULAS, "a=b", "'quoted'", "-0.5", "-"]
    data = measured(types=texts, rows=False)
    path = save(data, tmp_path / "table.csv")
    table = pd.read_csv(path, dtype=str, keep_default_na=False)
    written = list(dict.fromkeys(table["type"][table["variable"] == "token_types"]))
    assert written == [*(f"'{text}" for text in FORMULAS), "a=b", "'quoted'", "-0.5", "'-"]
    assert [text[1:] if text not in texts else text for text in written] == texts
    numbers = table["value"].astype(float)
    assert (numbers < 0).any()  # negative numbers are numbers
    np.testing.assert_allclose(numbers, means_table(data)["value"])


def test_labels_and_names_of_columns_are_guarded_too(tmp_path):
    index = pd.MultiIndex.from_tuples([("=a", 1), ("b", -2)], names=["=cue", "n"])
    frame = pd.DataFrame({"@x": ["-a", "b"], "y": [-1, 2.5]}, index=index)
    write_cells(frame, tmp_path / "a.csv", index=True)
    assert (tmp_path / "a.csv").read_text() == "'=cue,n,'@x,y\n'=a,1,'-a,-1.0\nb,-2,b,2.5\n"
