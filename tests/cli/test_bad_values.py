"""Values that no verb can use end in one sentence, before any work begins."""

import math
import warnings

import pytest
import torch

import headscope as hs
from headscope.core.checks import MAX_SEED, check_seed
from headscope.core.errors import DataWarning, InputError, LoadError, OutputError
from headscope.engine.device import check_device
from headscope.results.atomic import check_name
from tests.cli.test_importances import run
from tests.models import text, tiny

LONG = "n" * 300
ROWS = [{"text": f"{word} {number}", "label": number % 2} for number, word in enumerate(["good", "bad"] * 4)]


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("text,label\n" + "".join(f"{row['text']},{row['label']}\n" for row in ROWS))
    return str(path)


@pytest.fixture
def untouched(monkeypatch):
    """Let nothing be loaded."""

    def refuse(*arguments, **options):
        raise AssertionError("a model was loaded")

    monkeypatch.setattr("headscope.engine.load._read_network", refuse)
    monkeypatch.setattr("headscope.training.finetuning.finetune.prepare_training", refuse)


@pytest.mark.parametrize("seed", [-3, MAX_SEED + 1, 1.5, True, "3"])
def test_a_seed_is_a_whole_number_from_0_on(seed):
    with pytest.raises(InputError, match=rf"seed={seed} cannot seed a random generator. Give a whole number from 0"):
        check_seed(seed)
    assert check_seed(MAX_SEED) == MAX_SEED


def test_every_verb_refuses_a_negative_seed(tmp_path):
    model, texts = tiny("bert"), [text(9), text(8)]
    calls = {
        "balance": lambda: hs.balance(ROWS, seed=-3),
        "measure": lambda: hs.measure(model, texts, statistics="entropy", limit=1, seed=-3),
        "probe": lambda: hs.probe(model, texts, seed=-3),
        "entry of probes": lambda: hs.probe(model, texts, "dependency:seed=-3"),
        "cluster": lambda: hs.cluster(hs.measure(model, texts, statistics="head_distance", progress=False), seed=-3),
        "finetune": lambda: hs.finetune(model, ROWS, out=tmp_path / "tuned", seed=-3),
        "study": lambda: hs.study("dark_secrets", out=tmp_path / "study", seed=-3),
        "another study": lambda: hs.study("argument_cues", out=tmp_path / "study", seed=-3),
    }
    for name, call in calls.items():
        with pytest.raises(InputError, match="seed=-3 cannot seed"):
            call()
            pytest.fail(name)
    assert not list(tmp_path.iterdir())


def test_the_shell_says_so_in_its_own_words(data, tmp_path):
    out = run("balance", data, "--seed", "-3", "-o", str(tmp_path / "b.jsonl"), code=2)
    assert "--seed -3 cannot seed a random generator. Give a whole number" in " ".join(out.split())


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize(
    ("device", "problem"),
    [
        ("tpu", "device='tpu' is no device of torch. Give 'cpu', 'cuda' or 'cuda:1'"),
        ("", "device='' is no device of torch"),
        ("meta", "device='meta' is asked for, but no model can run there"),
        ("vulkan", "device='vulkan' is asked for, but no model can run there"),
    ],
)
def test_a_device_is_checked_before_a_model_is_read(device, problem):
    with pytest.raises(LoadError, match=problem):
        hs.load(device=device)


@pytest.mark.usefixtures("untouched")
def test_a_gpu_that_is_not_there_is_noticed_before_training(monkeypatch, tmp_path):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    calls = (
        lambda: hs.load(device="cuda"),
        lambda: hs.finetune("any", ROWS, out=tmp_path / "tuned", device="cuda"),
        lambda: hs.study("dark_secrets", out=tmp_path / "study", device="cuda"),
    )
    for call in calls:
        with pytest.raises(LoadError, match="device='cuda' is asked for, but this installation of torch finds no GPU"):
            call()
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    with pytest.raises(LoadError, match="device='cuda:9' is asked for, but the GPUs here are 'cuda:0' to 'cuda:1'"):
        check_device("cuda:9")


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize("dtype", ["float99", "int64", "nn"])
def test_a_dtype_is_checked_before_a_model_is_read(dtype):
    with pytest.raises(LoadError, match=f"dtype='{dtype}' is not known. Give 'float32', 'bfloat16', 'float16' or"):
        hs.load(dtype=dtype)


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize(
    "arguments",
    [
        ("measure", "--statistics", "entropy", "-o", f"{LONG}.nc"),
        ("finetune", "-o", LONG),
        ("balance", "-o", f"{LONG}.jsonl"),
        ("cues", "-o", f"{LONG}.svg"),
        ("probe", "-o", f"{LONG}.svg", "-o", "a.nc"),
    ],
)
def test_a_name_that_no_file_system_takes_is_refused_at_once(arguments, data):
    verb, *options = arguments
    out = " ".join(run(verb, data, *options, code=2).split())
    assert "bytes, and at most 240 are possible. Give a shorter one." in out


@pytest.mark.usefixtures("untouched")
def test_long_names_of_other_verbs_are_refused_too(tmp_path):
    calls = (
        lambda: hs.study("dark_secrets", out=tmp_path / LONG),
        lambda: hs.report(tmp_path / "none.nc", tmp_path / LONG),
        lambda: check_name(tmp_path / "é" / ("é" * 125)),
        lambda: check_name(tmp_path.joinpath(*["n" * 200] * 21)),
    )
    for call in calls:
        with pytest.raises(OutputError, match=r"^Cannot write to '.*…': this (name|path) has [\d,]+ bytes, and"):
            call()
    check_name(tmp_path / ("n" * 237 + ".nc"))


@pytest.mark.parametrize("label", ["1" * 4000, "-" + "1" * 5000, "1" * 20, "9" * 200])
@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_labels_of_thousands_of_digits_are_no_numbers(label, ending, tmp_path):
    path = tmp_path / f"data.{ending}"
    rows = {"csv": f"text,label\na,{label}\nb,0\n", "jsonl": f'{{"text": "a", "label": {label}}}\n'}
    path.write_text(rows[ending])
    with pytest.raises(InputError, match=r"the label .* numbers up to 9223372036854775807|its JSON cannot be read"):
        hs.read(path, label="label")
    if ending == "csv":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)
            assert [example.text for example in hs.read(path, label="label", malformed="skip")] == ["b"]


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize("study", ["dark_secrets", "effective_attention"])
def test_a_classifier_that_is_missing_is_noticed_before_anything_is_trained(study, tmp_path):
    with pytest.raises(InputError, match="There is no classifier of patterns at .*none.safetensors. Name 'cnn'"):
        hs.study(study, out=tmp_path / "out", classifier=str(tmp_path / "none.safetensors"))
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize(
    ("option", "problem"),
    [
        ({"batch_size": 0}, "batch_size=0 is too small"),
        ({"max_length": 0}, "max_length=0 is too small"),
        ({"learning_rate": math.nan}, "learning_rate=nan is not between 0 and 1"),
        ({"warmup": math.nan}, "warmup=nan is not a share"),
        ({"weight_decay": math.nan}, "weight_decay=nan is not a number from 0 on"),
        ({"weight_decay": math.inf}, "weight_decay=inf is not a number from 0 on"),
        ({"seed": 2**40}, "seed=1099511627776 cannot seed"),
    ],
)
def test_settings_of_training_are_checked_first(option, problem, tmp_path):
    with pytest.raises(InputError, match=problem):
        hs.finetune("any", ROWS, out=tmp_path / "tuned", **option)
    if "weight_decay" not in option:
        with pytest.raises(InputError, match=problem):
            hs.study("dark_secrets", out=tmp_path / "study", **option)
    assert not list(tmp_path.iterdir())
