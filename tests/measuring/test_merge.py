"""Merging the shards of a measurement."""

import pytest
import xarray as xr

import headscope as hs
from headscope.core.errors import InputError
from tests.measuring.data import LENSES, STATISTICS, examples
from tests.models import tiny


def shards(folder, count, **options):
    arguments = {"lens": LENSES, "statistics": STATISTICS, "progress": False, **options}
    paths = [folder / f"{part}.state" for part in range(1, count + 1)]
    for part, path in enumerate(paths, 1):
        hs.measure(tiny("bert"), examples(17), shard=f"{part}/{count}", out=path, **arguments)
    return paths


@pytest.mark.parametrize("rows", [False, True])
def test_merged_shards_equal_the_whole_in_any_order(tmp_path, rows):
    paths = shards(tmp_path, 3, rows=rows)
    whole = hs.measure(
        tiny("bert"), examples(17), lens=LENSES, statistics=STATISTICS, rows=rows, progress=False, batch_size=4
    )
    xr.testing.assert_allclose(hs.merge(*paths), whole, atol=1e-6)
    xr.testing.assert_identical(hs.merge(*reversed(paths)), hs.merge(*paths))


def test_missing_and_repeated_shards_are_named(tmp_path):
    paths = shards(tmp_path, 3)
    with pytest.raises(InputError, match="1 of 3 shards are missing: 2/3"):
        hs.merge(paths[0], paths[2])
    again = tmp_path / "again.state"
    again.write_bytes(paths[0].read_bytes())
    with pytest.raises(InputError, match="Shard 1/3 was given twice"):
        hs.merge(*paths, again)


def test_shards_of_different_measurements_do_not_merge(tmp_path):
    (tmp_path / "other").mkdir()
    first, second = shards(tmp_path, 2), shards(tmp_path / "other", 2, lens=["raw"])
    with pytest.raises(InputError, match=r"are not parts of one measurement: their lenses differs, \['raw', 'effec"):
        hs.merge(first[0], second[1])


def test_no_files_and_missing_files_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"with a star: hs.merge\(\*paths\)"):
        hs.merge(["a.state", "b.state"])
    with pytest.raises(InputError, match="There is nothing to merge"):
        hs.merge()
    with pytest.raises(InputError, match="there is no such file"):
        hs.merge(tmp_path / "none.state")
