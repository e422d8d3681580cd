"""Fine-tuning on a few examples of real datasets."""

import pytest

import headscope as hs
from tests.readers.shared import DATA, real

TASKS = {
    "glue:mrpc:{}@glue": "classification",
    "glue:sts-b:{}@glue": "regression",
    "arct:{}@arct": "choice",
}


@real
@pytest.mark.parametrize("source", TASKS)
def test_a_few_examples_of_a_real_task_are_tuned_and_scored(source, minilm, tmp_path):
    name, _, folder = source.partition("@")
    train, dev = (hs.read(f"{name.format(split)}@{DATA / folder}")[:6] for split in ("train", "dev"))
    model = hs.finetune(minilm, train, dev=dev, out=tmp_path / "m", epochs=1, device="cpu", progress=False)
    result = hs.score(model, dev, progress=False)
    assert int(result["n"]) == 6
    assert type(model.network).__name__ == (
        "BertForMultipleChoice" if TASKS[source] == "choice" else "BertForSequenceClassification"
    )
