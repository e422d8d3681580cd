"""What the page asks models: numbers are those of plain transformers, limits hold, and nothing stays on."""

import asyncio
import json
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
import torch
import transformers

from headscope.core.errors import InputError, LoadError
from headscope.studio.folder import StudioFolder
from headscope.studio.guard import Refusal
from headscope.studio.looking import LookRequest
from headscope.studio.options import Limits
from headscope.studio.shelf import DEFAULT_NAME, ModelShelf
from headscope.studio.views import ViewStore
from headscope.studio.worker import Worker
from tests.models import text, tokenizer
from tests.studio.live import run_studio, save_model

TEXT = "the cat sat on a mat and then it slept"
MASKED = "the cat [MASK] on a mat and then it slept"
SCRIPT = "<script>alert(1)</script>"
OFF = ["L0H1", "L0H3", "L1H0"]
RAW = [{"name": "raw"}]
GRADIENT = [{"name": "gradient"}]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("studio")
    save_model(folder / "headless")
    save_model(
        folder / "classes",
        "bert",
        transformers.BertForSequenceClassification,
        id2label={0: "good", 1: SCRIPT, 2: "bad"},
    )
    save_model(folder / "masked", "bert", transformers.BertForMaskedLM)
    save_model(folder / "causal", "gpt2", transformers.GPT2LMHeadModel)
    save_model(folder / "writes", "bart", transformers.BartForConditionalGeneration)
    save_model(folder / "rereads", "bart", transformers.BartForSequenceClassification)
    save_model(folder / "tags", "bert", transformers.BertForTokenClassification)
    save_model(folder / "images", "vit")
    return folder


@pytest.fixture(scope="module")
def live(folder):
    with run_studio(folder) as live:
        yield live


@pytest.fixture
def limited(live, monkeypatch):
    """Return a function that sets limits of the studio."""

    def limit(**changes):
        monkeypatch.setattr(live.studio, "limits", replace(live.studio.limits, **changes))

    return limit


def ask(live, path, model, **body):
    models = [{"name": name} for name in ([model] if isinstance(model, str) else model)]
    return live.ask(f"/api/{path}", {"text": TEXT, "models": models, **body})


def predict(live, model, **body):
    answer = ask(live, "predict", model, **body)
    assert answer.status == 200, answer.body
    return answer.json["predictions"][0]


def look(live, model, **body):
    answer = ask(live, "look", model, **{"lenses": RAW, **body})
    assert answer.status == 200, answer.body
    return answer.json


def read_header(live, view):
    return live.ask(f"/api/views/{view}/header").json


def read_block(live, view, name):
    return live.ask(f"/api/views/{view}/block?name={name}").body


# Predictions, recomputed with transformers and hooks of our own

MODELS = {
    "headless": (transformers.BertModel, TEXT, "encoder.layer.{}.attention.output.dense"),
    "classes": (transformers.BertForSequenceClassification, TEXT, "bert.encoder.layer.{}.attention.output.dense"),
    "masked": (transformers.BertForMaskedLM, MASKED, "bert.encoder.layer.{}.attention.output.dense"),
    "causal": (transformers.GPT2LMHeadModel, TEXT, "transformer.h.{}.attn.c_proj"),
}
SIZE = 8  # of a head


def recompute(folder, name, off, edit="zero_heads"):
    """Return the prediction of a model whose heads a hook switches off at the input of the output projection."""
    architecture, words, projection = MODELS[name]
    network = architecture.from_pretrained(folder / name).eval()
    for layer in (0, 1):
        heads = [int(head.partition("H")[2]) for head in off if head.startswith(f"L{layer}")]
        output = projection.format(layer)
        value = network.get_submodule(output.replace("output.dense", "self.value").replace("c_proj", "c_attn"))
        uniform = []
        value.register_forward_hook(lambda _, __, result, kept=uniform: kept.append(average(result, name == "causal")))

        def switch_off(_, inputs, heads=heads, uniform=uniform):
            context = inputs[0].clone()
            for head in heads:
                part = slice(head * SIZE, head * SIZE + SIZE)
                context[..., part] = uniform[0][..., part] if edit == "uniform_heads" else 0
            return (context, *inputs[1:])

        network.get_submodule(output).register_forward_pre_hook(switch_off)
    encoded = tokenizer()(words, return_tensors="pt")
    with torch.no_grad():
        output = network(**encoded)
    if name == "headless":
        return output.last_hidden_state[0].double().mean(0)
    if name == "classes":
        return output.logits[0].softmax(-1)
    position = encoded["input_ids"][0].tolist().index(4 if name == "masked" else 3)  # [MASK], or [SEP] after the text
    return output.logits[0, position - (name == "causal")].softmax(-1)


def average(values, causal):
    """Return the mean of the values of all tokens that each token sees; GPT-2 computes queries and keys with them."""
    values = values[..., -32:]
    if not causal:
        return values.mean(1, keepdim=True)
    return values.cumsum(1) / torch.arange(1, values.shape[1] + 1)[None, :, None]


def name_choices(name):
    return ["good", SCRIPT, "bad"] if name == "classes" else tokenizer().convert_ids_to_tokens(range(38))


@pytest.mark.parametrize("edit", ["zero_heads", "uniform_heads"])
@pytest.mark.parametrize(
    ("name", "kind"),
    [("classes", "classes"), ("masked", "mask"), ("causal", "next")],
    ids=["classes", "masked", "causal"],
)
def test_predictions_with_and_without_heads_are_those_of_plain_transformers(live, folder, name, kind, edit):
    answer = predict(live, name, text=MODELS[name][1], off=OFF, edit=edit)
    before, after = recompute(folder, name, []), recompute(folder, name, OFF, edit)
    assert answer["kind"] == kind
    names = name_choices(name)
    for label, *scores in answer["rows"]:
        index = names.index(label)
        assert scores == pytest.approx([float(before[index]), float(after[index])], abs=1e-6)
    largest = {*before.topk(min(8, len(names))).indices.tolist(), *after.topk(min(8, len(names))).indices.tolist()}
    assert {row[0] for row in answer["rows"]} == {names[index] for index in largest}
    assert [label for label, _ in answer["before"]] == [
        names[index] for index in before.topk(len(answer["before"])).indices
    ]
    assert max(abs(row[1] - row[2]) for row in answer["rows"]) > 1e-4  # the heads matter


@pytest.mark.parametrize("edit", ["zero_heads", "uniform_heads"])
def test_the_cosine_of_a_model_without_a_head_is_that_of_plain_transformers(live, folder, edit):
    answer = predict(live, "headless", off=OFF, edit=edit)
    expected = torch.cosine_similarity(
        recompute(folder, "headless", []), recompute(folder, "headless", OFF, edit), dim=0
    )
    assert answer["cosine"] == pytest.approx(float(expected), abs=1e-6)
    assert answer["cosine"] < 0.9999
    assert (answer["kind"], answer["before"], answer["rows"]) == ("vector", [], [])
    assert "gives a vector for the text, the mean over its tokens" in answer["note"]


def test_generated_tokens_are_those_of_greedy_search(live, folder):
    found = look(live, "causal", generate=6)
    header = read_header(live, found["view"])
    network = transformers.GPT2LMHeadModel.from_pretrained(folder / "causal").eval()
    prompt = tokenizer()(TEXT, return_tensors="pt")["input_ids"]
    options = {"max_new_tokens": 6, "do_sample": False, "pad_token_id": 0}
    ids = network.generate(prompt, attention_mask=torch.ones_like(prompt), **options)[0]
    assert found["generated"][0]
    assert found["generated"] == [tokenizer().decode(ids[prompt.shape[1] :], skip_special_tokens=True)]
    assert header["sheets"][0]["queries"]["text"] == tokenizer().convert_ids_to_tokens(ids)


def test_maps_are_those_of_plain_transformers_with_and_without_heads(live, folder):
    found = look(live, "headless", off=["L0H1"], showOff=True)
    network = transformers.BertModel.from_pretrained(folder / "headless", attn_implementation="eager").eval()
    encoded = tokenizer()(TEXT, return_tensors="pt")
    for sheet, off in enumerate((False, True)):
        if off:
            projection = network.encoder.layer[0].attention.output.dense
            mask = torch.ones(32)
            mask[8:16] = 0
            projection.register_forward_pre_hook(lambda _, inputs, mask=mask: (inputs[0] * mask,))
        with torch.no_grad():
            expected = network(**encoded, output_attentions=True).attentions
        sheets = read_header(live, found["view"])["sheets"]
        assert len(sheets) == 2
        block = np.frombuffer(read_block(live, found["view"], f"{sheet}/0/map/1/2"), np.float16)
        assert np.abs(block - expected[1][0, 2].numpy().ravel()).max() < 1e-3


# Edits never stay on


def test_a_prediction_after_heads_were_off_is_the_one_before(live):
    first = predict(live, "classes")
    assert predict(live, "classes", off=OFF)["rows"] != predict(live, "classes", off=["L1H2"])["rows"]
    look(live, "classes", off=OFF, showOff=True)
    assert predict(live, "classes") == first


def test_a_prediction_after_an_edit_that_failed_is_the_one_before(live):
    first = predict(live, "classes")
    for off, message in (
        (["L9H9"], "There is no layer 9"),
        (["L0H99"], "There is no head 99"),
        (["x.L0H0"], "no attention site"),
    ):
        for path, more in (("predict", {}), ("look", {"lenses": RAW, "showOff": True})):
            answer = ask(live, path, "classes", off=off, **more)
            assert answer.status == 400
            assert message in answer.error
    assert predict(live, "classes") == first


def test_looks_at_different_models_at_once_do_not_mix(live):
    def look_at(name):
        found = look(live, name, off=OFF if name == "headless" else [], showOff=name == "headless")
        return [read_block(live, found["view"], f"0/0/map/{layer}/{head}") for layer in (0, 1) for head in (0, 3)]

    names = ["headless", "causal", "headless", "classes"]
    alone = {name: look_at(name) for name in names}
    assert len({tuple(blocks) for blocks in alone.values()}) > 1
    with ThreadPoolExecutor(4) as pool:
        for _ in range(2):
            assert list(pool.map(look_at, names)) == [alone[name] for name in names]


def test_two_models_are_compared_in_one_view(live):
    header = read_header(live, look(live, ["headless", "classes"])["view"])
    assert [sheet["model"].rpartition("/")[2] for sheet in header["sheets"]] == ["headless", "classes"]
    assert header["comparisons"]


def test_a_model_that_is_chosen_twice_is_shown_once(live):
    assert len(read_header(live, look(live, ["headless", "headless"])["view"])["sheets"]) == 1


def test_what_a_model_warns_of_is_a_message_of_the_page(live, capfd):
    for path in ("predict", "look"):
        answer = ask(live, path, "classes", text=text(100), lenses=RAW)
        assert any("longer than 64 tokens and were truncated" in message for message in answer.json["messages"])
    assert capfd.readouterr().err == ""


# Texts that are code


@pytest.mark.parametrize(
    "words", [SCRIPT, "</script><img src=x onerror=alert(1)>", "the \u202e cat \0 \ud800 sat", "data.csv"]
)
def test_any_text_arrives_as_text_in_json(live, folder, words):
    answer = ask(live, "look", "headless", text=words, lenses=RAW)
    assert (answer.status, answer.header("content-type")) == (200, "application/json")
    header = live.ask(f"/api/views/{answer.json['view']}/header")
    assert header.header("content-type") == "application/json"
    assert header.json["sheets"][0]["text"] == words.replace("\ud800", "?")
    block = live.ask(f"/api/views/{answer.json['view']}/block?name=0/0/thumbs")
    assert block.header("content-type") == "application/octet-stream"


def test_a_script_in_the_tokens_of_a_tokenizer_arrives_as_text_in_json(live, folder):
    save_model(folder / "tokens")
    for path in (folder / "tokens").glob("*.json"):
        path.write_text(path.read_text().replace("[CLS]", SCRIPT))
    header = live.ask(f"/api/views/{look(live, 'tokens')['view']}/header")
    assert header.header("content-type") == "application/json"
    assert header.json["sheets"][0]["queries"]["text"][:2] == [SCRIPT, "the"]


def test_a_script_in_the_names_of_classes_arrives_as_text_in_json(live):
    answer = ask(live, "predict", "classes")
    assert answer.header("content-type") == "application/json"
    assert SCRIPT in [name for name, _ in answer.json["predictions"][0]["before"]]


# Limits


@pytest.mark.parametrize("path", ["look", "predict"])
@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"text": "a" * 200_001}, "The text has 200,001 letters; the studio takes 200,000 at most."),
        ({"pair": "a" * 200_001}, "The pair has 200,001 letters; the studio takes 200,000 at most."),
        ({"text": " \n"}, "The text is empty. Type at least one word."),
        ({"text": 5}, "The text must be a text, but got int."),
        ({"text": ["a"]}, "The text must be a text, but got list."),
        ({"generate": 201}, "generate must be a whole number from 0 to 200, but got '201'."),
        ({"generate": -1}, "generate must be a whole number from 0 to 200"),
        ({"generate": True}, "generate must be a whole number from 0 to 200"),
        ({"generate": 1.5}, "generate must be a whole number from 0 to 200"),
        ({"lenses": RAW * 9}, "Choose at most 8 lenses at once."),
        ({"lenses": "raw"}, "Choose at most 8 lenses at once."),
        ({"models": [{"name": "headless"}] * 3}, "Choose one model, or up to 2 to compare."),
        ({"models": []}, "Choose one model, or up to 2 to compare."),
        ({"models": "headless"}, "Choose one model, or up to 2 to compare."),
        ({"models": ["headless"]}, "Choose a model of the list, or name a hub id or a folder."),
        ({"models": [{"id": "0123456789abcdef"}]}, "There is no model of that id"),
        ({"target": 5}, "The target must be a short text"),
        ({"target": "x" * 201}, "The target must be a short text"),
        ({"edit": "effective_attention"}, "Heads are switched off by zero_heads or uniform_heads"),
        ({"edit": ["zero_heads"]}, "Heads are switched off by zero_heads or uniform_heads"),
        ({"off": "L0H0"}, "Heads are a list of at most 512 names"),
        ({"off": ["L0H0"] * 513}, "Heads are a list of at most 512 names"),
        ({"off": ["../x"]}, "names no head"),
    ],
)
def test_what_is_beyond_a_limit_is_refused_with_a_sentence(live, path, body, message):
    answer = ask(live, path, "headless", **{"lenses": RAW, **body})
    assert answer.status == 400
    assert message in answer.error


def test_a_look_needs_a_lens(live):
    assert ask(live, "look", "headless", lenses=[]).error == "Choose at least one lens."


@pytest.mark.parametrize("path", ["look", "predict"])
def test_too_many_tokens_are_refused(live, limited, path):
    limited(tokens=10)
    answer = ask(live, path, "headless", lenses=RAW)
    assert (answer.status, answer.error) == (400, "The text has 12 tokens; the studio takes 10 at most. Shorten it.")


@pytest.mark.parametrize("path", ["look", "predict"])
def test_too_many_weights_of_a_layer_are_refused(live, limited, path):
    limited(layer_weights=500)
    answer = ask(live, path, "headless", lenses=RAW)
    assert answer.status == 400
    assert "One layer has 576 weights for 12 tokens and 4 heads; the studio takes 500 at most." in answer.error


def test_generated_tokens_count(live, limited):
    limited(tokens=15)
    assert "The text has 22 tokens" in ask(live, "look", "causal", lenses=RAW, generate=10).error


def test_too_many_weights_of_all_layers_are_read_layer_by_layer_to_the_same_maps(live, limited):
    whole = look(live, "headless")["view"]
    limited(weights=1000)
    lazy = look(live, "headless")["view"]
    scales = read_header(live, lazy)["sheets"][0]["lenses"][0]["scales"]
    for layer, head in ((0, 0), (1, 3), (0, 2)):
        name = f"0/0/map/{layer}/{head}"
        codes = np.frombuffer(read_block(live, lazy, name), np.uint8)
        expected = np.frombuffer(read_block(live, whole, name), np.float16)
        assert np.abs(scales[layer][head] * (codes / 255) ** 2 - expected).max() < 0.005
    assert (
        "12 tokens are read layer by layer"
        in ask(live, "look", "causal", lenses=RAW, generate=0, off=OFF, showOff=True).error
    )
    assert "too long to compare two models" in ask(live, "look", ["headless", "classes"], lenses=RAW).error


def test_a_request_has_defaults():
    asked = LookRequest.read({"text": "the cat", "models": [{"id": "default"}]}, Limits())
    assert (asked.pair, asked.lenses, asked.target, asked.off, asked.generate) == (None, (), None, (), 0)
    assert (asked.edit, asked.show_off) == ("zero_heads", False)


def test_a_gradient_is_that_of_the_prediction_unless_a_target_is_named(live):
    asked = LookRequest.read({"text": "x", "models": [{}], "lenses": [{"name": "gradient"}]}, Limits())
    assert asked.target == "predicted"
    assert (
        LookRequest.read({"text": "x", "models": [{}], "lenses": RAW, "target": "class=good"}, Limits()).target is None
    )
    assert look(live, "classes", lenses=[{"name": "gradient"}], target="class=good")
    refused = ask(live, "look", "classes", lenses=[{"name": "gradient"}], target=f"class={SCRIPT}x")
    assert refused.status == 400


# What a model cannot do is said in words of the form


@pytest.mark.parametrize(
    ("model", "body", "message"),
    [
        ("headless", {"generate": 3}, "BertModel cannot generate tokens. Set 'Generate tokens' to 0, or choose"),
        ("tags", {"generate": 3}, "BertForTokenClassification cannot generate tokens."),
        ("writes", {"generate": 3}, "Set 'Generate tokens' to 0, and type what it may have written as second text."),
        ("causal", {"generate": 60}, "The text has 12 tokens, and with 60 generated ones it is longer than the 64"),
        ("headless", {"lenses": GRADIENT}, "so the lens 'gradient' has nothing to follow. Leave it out, or choose"),
        ("tags", {"lenses": GRADIENT}, "so the lens 'gradient' has nothing to follow."),
        ("causal", {"lenses": GRADIENT, "generate": 3}, "leave out the lens 'gradient', or generate no tokens."),
        ("classes", {"lenses": GRADIENT, "target": "label"}, "a text that is typed has no label. Give predicted,"),
        ("classes", {"lenses": GRADIENT, "target": "loss"}, "a text that is typed has no label. Give predicted,"),
        ("masked", {"lenses": GRADIENT, "target": "mask:column=a"}, "a text that is typed has no label."),
        ("images", {}, "ViTModel reads images, and the studio looks at texts. Choose another model."),
        ("rereads", {}, "the studio gives its decoder the second text. Choose the model without this head."),
    ],
)
def test_what_a_model_cannot_do_is_said_in_words_of_the_form(live, model, body, message):
    answer = ask(live, "look", model, **{"lenses": RAW, **body})
    assert answer.status == 400
    assert message in answer.error
    assert not re.search(r"\bhs\.|\w\(|from_pretrained|function", answer.error)


def test_a_prediction_of_each_token_is_nothing_to_compare(live):
    answer = ask(live, "predict", "tags", off=OFF)
    assert (answer.status, answer.error) == (
        400,
        "BertForTokenClassification predicts no class, word or number for a text as a whole, so there is nothing to "
        "compare.",
    )


# Models that cannot be used


def test_a_model_that_does_not_load_is_refused_with_a_sentence_and_the_studio_goes_on(live, folder):
    save_model(folder / "broken")
    (folder / "broken" / "model.safetensors").write_bytes(b"x" * 100)
    for _ in range(2):
        answer = ask(live, "look", "broken", lenses=RAW)
        assert answer.status == 400
        assert "holds no usable model" in answer.error
    assert look(live, "headless")
    live.until(lambda: live.studio.jobs.work == "")


@pytest.mark.parametrize("named", [5, "BertModel", [1], ["BertConfig"]])
def test_a_config_that_names_no_class_of_a_model_is_refused_with_a_sentence(live, folder, named):
    save_model(folder / "odd")
    config = json.loads((folder / "odd" / "config.json").read_text())
    (folder / "odd" / "config.json").write_text(json.dumps({**config, "architectures": named}))
    answer = ask(live, "look", "odd", lenses=RAW)
    assert answer.status == 400
    assert "architectures" in answer.error


def test_a_pickled_model_is_refused_with_a_sentence_and_not_read(live, folder):
    save_model(folder / "pickled")
    (folder / "pickled" / "model.safetensors").unlink()
    torch.save({"x": Evil(folder / "run")}, folder / "pickled" / "pytorch_model.bin")
    answer = ask(live, "look", "pickled", lenses=RAW)
    assert answer.status == 400
    assert answer.error == (
        "The weights of pickled are pickled (pytorch_model.bin), and reading them could run code. The studio reads "
        "safetensors: write them in Python with hs.save(hs.load(folder), new_folder)."
    )
    assert not (folder / "run").exists()


def test_the_library_reads_safetensors_only_where_it_is_told_so(folder, tmp_path, monkeypatch):
    """What jobs of a studio are told, and the studio itself: also a model of the hub is not unpickled."""
    from headscope.engine.load import load

    save_model(tmp_path / "pickled")
    (tmp_path / "pickled" / "model.safetensors").unlink()
    torch.save({"x": Evil(tmp_path / "run")}, tmp_path / "pickled" / "pytorch_model.bin")
    monkeypatch.setenv("HEADSCOPE_SAFETENSORS", "only")
    with pytest.raises(LoadError, match=r"no file named model\.safetensors"):
        load(tmp_path / "pickled")
    assert not (tmp_path / "run").exists()


class Evil:
    """What runs code when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (str(self.path), "w"))


@pytest.mark.parametrize("where", ["model", "tokenizer"])
def test_code_of_a_model_is_never_run(live, folder, where):
    name = f"remote-{where}"
    save_model(folder / name)
    path = folder / name / ("config.json" if where == "model" else "tokenizer_config.json")
    config = json.loads(path.read_text())
    classes = (
        {"AutoConfig": "evil.C", "AutoModel": "evil.M"} if where == "model" else {"AutoTokenizer": ["evil.T", None]}
    )
    change = {"model_type": "unheard"} if where == "model" else {"tokenizer_class": "Unheard"}
    path.write_text(json.dumps({**config, "auto_map": classes, **change}))
    (folder / name / "evil.py").write_text(f"open({str(folder / 'run')!r}, 'w')")
    ask(live, "look", name, lenses=RAW)
    assert not (folder / "run").exists()


def test_a_prediction_that_is_no_number_is_refused_with_a_sentence(live, folder):
    from safetensors.torch import load_file, save_file

    save_model(folder / "nan", "bert", transformers.BertForSequenceClassification)
    weights = load_file(folder / "nan" / "model.safetensors")
    weights["classifier.bias"].fill_(float("nan"))
    save_file(weights, folder / "nan" / "model.safetensors", metadata={"format": "pt"})
    answer = ask(live, "predict", "nan")
    assert answer.status == 400
    assert "predicts NaN for this text" in answer.error
    assert read_header(live, look(live, "nan")["view"])["sheets"][0]["prediction"] is None


def test_the_last_models_stay_loaded(folder, monkeypatch):
    loaded = []
    monkeypatch.setattr("headscope.engine.load.load", lambda source: loaded.append(source) or object())
    shelf = ModelShelf(StudioFolder.open(folder, Limits()), [])
    for name in "abacab":
        shelf.load(name, 2)
    assert loaded == ["a", "b", "c", "b"]
    assert list(shelf.loaded) == ["a", "b"]


def test_models_are_those_given_then_the_default_then_those_of_the_folder(folder):
    names = [choice.name for choice in ModelShelf(StudioFolder.open(folder, Limits()), ["some/model"]).list()]
    assert names[:2] == ["some/model", DEFAULT_NAME]
    assert {"headless", "classes", "masked", "causal"} <= set(names[2:])


# Views


class Still:
    """A source without maps."""

    def __init__(self, content=0):
        self.content = content

    def header(self):
        return {"content": self.content}

    def block(self, name):
        return b""


def test_the_view_that_was_not_used_for_longest_goes_first():
    store = ViewStore(replace(Limits(), views=3))
    one, two, three = (store.add(Still(), 1).id for _ in range(3))
    store.find(one)
    four = store.add(Still(), 1).id
    assert [store.find(view).id for view in (one, three, four)] == [one, three, four]
    with pytest.raises(Refusal, match="This view is no longer kept") as refusal:
        store.find(two)
    assert refusal.value.status == 404


def test_views_leave_when_their_weights_are_too_many_but_the_newest_stays():
    store = ViewStore(replace(Limits(), view_weights=100))
    first, second = store.add(Still(), 60).id, store.add(Still(), 40).id
    assert list(store.views) == [first, second]
    third = store.add(Still(), 50).id
    assert list(store.views) == [second, third]
    huge = store.add(Still(), 1000).id
    assert list(store.views) == [huge]


def test_a_header_is_json_for_any_browser():
    store = ViewStore(Limits())
    assert store.add(Still("\udcff\u2028</script>"), 0).header.isascii()
    with pytest.raises(ValueError, match="not JSON compliant"):
        store.add(Still(float("nan")), 0)
    assert len(store.views) == 1


def test_a_view_that_is_gone_says_so(live):
    for path in ("header", "block?name=0/0/thumbs"):
        answer = live.ask(f"/api/views/0123456789abcdef/{path}")
        assert answer.status == 404
        assert answer.error.endswith("Look again.")


@pytest.mark.parametrize(
    "name", ["9/0/thumbs", "0/9/thumbs", "0/0/map/9/0", "0/0/map/0/-1", "0/0/map/0", "x", "0/0/graph/0"]
)
def test_a_block_that_is_not_there_says_so(live, name):
    view = look(live, "headless")["view"]
    answer = live.ask(f"/api/views/{view}/block?name={name}")
    assert (answer.status, answer.error) == (400, f"There is no block '{name}' in this view.")


# The worker


@pytest.fixture
def worker():
    worker = Worker("test", 3)
    yield worker
    worker.stop()
    assert not worker.thread.is_alive()


def test_a_worker_does_one_thing_after_the_other(worker):
    done = []
    futures = [worker.submit(lambda index=index: done.append(index) or index) for index in range(3)]
    assert [future.result(10) for future in futures] == done == [0, 1, 2]


def test_a_worker_refuses_what_is_too_much_and_has_room_again(worker):
    busy = threading.Event()
    futures = [worker.submit(busy.wait) for _ in range(3)]
    with pytest.raises(Refusal, match="3 requests wait already. Try again in a moment.") as refusal:
        worker.submit(busy.wait)
    assert refusal.value.status == 429
    busy.set()
    assert all(future.result(10) for future in futures)
    worker.stop()
    assert worker.pending == 0


def test_a_worker_survives_errors_and_gives_them_to_the_caller(worker):
    def fail():
        raise InputError("It failed.")

    with pytest.raises(InputError, match="It failed"):
        worker.submit(fail).result(10)
    with pytest.raises(SystemExit):
        worker.submit(lambda: exec("raise SystemExit")).result(10)
    assert worker.submit(lambda: 1).result(10) == 1


def test_what_has_not_begun_is_dropped_when_its_caller_leaves(worker):
    busy, done = threading.Event(), []

    async def leave():
        first = worker.submit(busy.wait)
        waiting = asyncio.ensure_future(worker.run(lambda: done.append(1)))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        busy.set()
        await asyncio.wrap_future(first)

    asyncio.run(leave())
    assert worker.submit(lambda: list(done)).result(10) == []
