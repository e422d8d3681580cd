"""Labels, encodings and fields of objects in the shell."""

import json

import headscope as hs
from headscope.core.provenance import read_provenance
from tests.cli.test_importances import folder, run  # noqa: F401  (a fixture)


def test_the_shell_asks_for_the_classes_of_labels_and_takes_them(folder, tmp_path):  # noqa: F811
    path, out = tmp_path / "a.csv", str(tmp_path / "score.nc")
    path.write_bytes("text,label\nthe cat sät,worst\na dog ran,best\n".encode("cp1252"))
    options = (str(path), "--model", folder, "--encoding", "cp1252")
    asked = " ".join(run("score", *options, code=2).split())
    assert "The labels of the data are names, 'worst' and 'best', but the classes are called 0 and 1" in asked
    assert "Give the number of each one's class: --labels worst=…,best=…" in asked
    run("score", *options, "--labels", "worst=0,best=1", "-o", out)
    assert read_provenance(hs.open_result(out))["labels"] == {"worst": 0, "best": 1}
    assert hs.open_result(out)["label"].values.tolist() == [0, 1]
    wrong = " ".join(run("score", str(path), "--model", folder, code=2).split())
    assert "byte 10 of the line, 0xE4, is not UTF-8; name the encoding of the file, such as --encoding cp1252" in wrong


def test_the_shell_names_fields_of_objects(folder, tmp_path):  # noqa: F811
    path, out = tmp_path / "a.json", str(tmp_path / "a.nc")
    path.write_text(
        json.dumps([{"data": {"text": "the cat sat"}, "label": ""}, {"data": {"text": "a dog"}, "label": "a"}])
    )
    run("measure", str(path), "--model", folder, "--text", "data.text", "--statistics", "entropy", "-o", out)
    assert int(hs.open_result(out)["entropy_n"].max()) == 2
