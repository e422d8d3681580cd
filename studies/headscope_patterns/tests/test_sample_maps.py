"""Maps are sampled from what `hs.read` takes."""

import pytest

from headscope_patterns.labels.sample_maps import sample_maps
from tests.data.reading.test_inputs import SOURCES
from tests.models import tiny


@pytest.mark.parametrize("source", SOURCES)
def test_sampling_reads_examples_as_read_does(source, tmp_path):
    sampled = sample_maps(tiny("bert"), SOURCES[source](tmp_path), 16)
    assert {item.source.text for item in sampled} == {"a", "b"}
