"""`headscope cues`, `headscope balance` and `headscope add-negated` in the shell."""

import warnings

from rich.cells import cell_len

import headscope as hs
from tests.cli.test_importances import run


def test_the_best_cues_are_printed_and_all_are_saved(tmp_path):
    files = [str(tmp_path / name) for name in ("cues.nc", "cues.svg")]
    out = run("cues", "arct:dev", "--patterns", "negation=not|n't", "--top", "2", "-o", files[0], "-o", files[1])
    lines = out.splitlines()
    assert all(len(line) <= 80 for line in lines if not line.startswith("Wrote"))
    assert lines[0].split() == ["cue", "applies", "to", "productivity", "p", "chance", "coverage", "gain"]
    assert lines[1].startswith("negation ")
    assert lines[2].startswith("not ")
    assert "0.692 [0.604, 0.767]" in lines[2]
    result = hs.open_result(files[0])
    assert result.sizes["cue"] > 1000
    assert "exists already" in run("cues", "arct:dev", "-o", files[0], code=2)


def test_pairs_of_cues_are_printed(tmp_path):
    file = str(tmp_path / "pairs.nc")
    options = ("--ngrams", "1", "--pairs", "claim", "--pairs", "choices", "--min-count", "10", "--top", "2", "-o", file)
    lines = run("cues", "arct:dev", *options).splitlines()
    assert "not in claim & not in choices" in " ".join(lines[2].split("  ")[:1])
    assert "0.730 [0.570, 0.846]" in lines[2]
    assert hs.open_result(file).sizes["cue"] == 33


def test_a_pattern_that_is_asked_for_is_printed_whatever_its_rank():
    lines = run("cues", "arct:dev", "--patterns", "zebras=zebra|people", "--top", "1").splitlines()
    assert lines[1].startswith("not ")
    assert lines[2].startswith("zebras ")


def test_a_long_cue_is_broken_and_hides_no_number(tmp_path):
    path = tmp_path / "long.tsv"
    path.write_text("text\tlabel\n" + f"{'long' * 20}\tyes\n{'字' * 45}\tno\n" * 10)
    lines = run("cues", str(path), "--ngrams", "1").splitlines()
    assert lines[0].split() == ["cue", "label", "applies", "to", "productivity", "p", "chance"]
    text = "".join(line.split(" ")[0] for line in lines)
    assert "long" * 20 in text
    assert "字" * 45 in text
    assert all(cell_len(line) <= 80 for line in lines)


def test_cues_of_wrong_choices_are_named():
    out = " ".join(run("cues", "arct:train", "--ngrams", "1", "--top", "1").split())
    assert "4 are significant. Of these, can is right less often than by chance. p is corrected" in out


def test_a_table_of_your_own_is_audited(tmp_path):
    path = tmp_path / "mine.tsv"
    path.write_text("a\tb\ty\n" + "good\tx [1]\tyes\nbad\tx\tno\n" * 10)
    out = run("cues", str(path), "--text", "a", "--pair", "b", "--label", "y", "--ngrams", "1")
    assert out.splitlines()[0].split()[:3] == ["cue", "label", "applies"]
    assert any(line.startswith("good") and "yes" in line for line in out.splitlines())
    assert any(line.startswith("[ ") for line in out.splitlines())
    assert "good" not in run("cues", str(path), "--text", "a", "--pair", "b", "--label", "y", "--parts", "pair")
    assert "No part of these examples is called 'c'" in run(
        "cues", str(path), "--text", "a", "--label", "y", "--parts", "c", code=2
    )


def test_a_pattern_that_no_example_has_is_noted_once(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        out = run("balance", "arct:dev", "-o", str(tmp_path / "balanced.jsonl"), "--patterns", "absent=zzzz")
    assert out.count("left out the pattern 'absent'") == 1


def test_a_balanced_part_is_written_with_its_proof(tmp_path):
    path = tmp_path / "balanced.jsonl"
    out = run("balance", "arct:dev", "-o", str(path))
    assert out.splitlines()[2].split()[3] == "0"
    balanced = hs.read(path, choices="choices")
    assert 0 < len(balanced) < 316
    assert "exists already" in run("balance", "arct:dev", "-o", str(path), code=2)


def test_negated_copies_are_written_with_their_proof(tmp_path):
    claims = {example.columns["claim"] for example in hs.read("arct:dev")}
    table = tmp_path / "claims.tsv"
    table.write_text("original\tnegated\n" + "".join(f"{claim}\tNot: {claim}\n" for claim in sorted(claims)))
    path = tmp_path / "both.jsonl"
    out = run("add-negated", "arct:dev", str(table), "-o", str(path))
    assert out.splitlines()[2].split() == ["after", "632", "1,817", "0", "0.0000"]
    assert len(hs.read(path, choices="choices")) == 632
