"""Models that read sounds, series, objects in pictures, or any other tensors."""

import copy

import numpy as np
import pytest
import torch
import transformers
from scipy.io import wavfile

from headscope.core.errors import DataWarning, InputError
from headscope.core.lens import view
from headscope.engine.capture import capture, stream
from headscope.engine.images import check_reads_texts
from headscope.engine.load import load
from headscope.engine.positions import name_frames
from headscope.measuring.measure import measure
from tests.models import tiny, tokenizer

RATE = 16_000
SIZES = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}
WAVE = {
    **SIZES,
    "conv_dim": (8, 8),
    "conv_kernel": (10, 3),
    "conv_stride": (5, 2),
    "num_conv_pos_embeddings": 4,
    "num_conv_pos_embedding_groups": 2,
    "feat_extract_norm": "layer",
    "conv_bias": True,
}
WHISPER = {
    "d_model": 16,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 24,
    "decoder_ffn_dim": 24,
    "max_source_positions": 50,
    "num_mel_bins": 8,
    "vocab_size": 64,
    "pad_token_id": 0,
    "decoder_start_token_id": 1,
}
SPECTROGRAM = {**SIZES, "max_length": 40, "num_mel_bins": 16, "patch_size": 8, "frequency_stride": 8, "time_stride": 8}
SERIES = {
    "prediction_length": 4,
    "context_length": 8,
    "lags_sequence": [1, 2],
    "d_model": 16,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 24,
    "decoder_ffn_dim": 24,
}


def sound(seconds=0.02, seed=0):
    return np.random.default_rng(seed).normal(size=int(RATE * seconds)).astype(np.float32)


def write_wav(path, samples, rate=RATE):
    wavfile.write(path, rate, samples)
    return path


def build(kind, extractor=None, config=None, **sizes):
    torch.manual_seed(0)
    network = getattr(transformers, f"{kind}Model")(config or getattr(transformers, f"{kind}Config")(**sizes)).eval()
    for name, weight in network.named_parameters():
        if weight.ndim > 1 and "embed" not in name:
            weight.data.mul_(3)
    return load(network, processor=extractor)


def wave_extractor(**options):
    return transformers.Wav2Vec2FeatureExtractor(**{"return_attention_mask": True, **options})


def whisper_extractor():
    return transformers.WhisperFeatureExtractor(feature_size=8, chunk_length=1)


def ast_extractor():
    return transformers.ASTFeatureExtractor(num_mel_bins=16, max_length=40)


@pytest.fixture(scope="module")
def hears():
    return {
        "wav2vec2": build("Wav2Vec2", wave_extractor(), **WAVE),
        "hubert": build("Hubert", wave_extractor(), **WAVE),
        "whisper": build("Whisper", whisper_extractor(), **WHISPER),
        "ast": build("AST", ast_extractor(), **SPECTROGRAM),
    }


def run_eager(model, tensors):
    network = copy.deepcopy(model.network)
    network.set_attn_implementation("eager")
    with torch.no_grad():
        return network(**tensors, output_attentions=True)


def assert_exact(trace, theirs):
    for layer, weights in zip(trace.attention, theirs, strict=True):
        assert torch.allclose(layer, weights, atol=1e-6)
    for weights, values, context in zip(trace.attention, trace.values, trace.context, strict=True):
        assert torch.allclose(weights @ values, context, atol=1e-5)


@pytest.mark.parametrize("kind", ["wav2vec2", "hubert", "ast"])
def test_attention_to_sounds_is_that_of_the_model(hears, kind):
    model = hears[kind]
    inputs = model.processor(sound(), sampling_rate=RATE, return_tensors="pt")
    assert_exact(capture(model, sound()), run_eager(model, inputs).attentions)


@pytest.mark.parametrize(("site", "name"), [("encoder", "encoder"), ("decoder", "decoder"), ("cross", "cross")])
def test_whisper_is_captured_at_all_its_sites(hears, site, name):
    model = hears["whisper"]
    features = model.processor(sound(), sampling_rate=RATE, return_tensors="pt").input_features
    inputs = {"input_features": features, "decoder_input_ids": torch.tensor([[1, 7, 9]])}
    trace = capture(model, inputs, site=site)
    assert_exact(trace, run_eager(model, inputs)[f"{name}_attentions"])
    assert trace.keys.text[0][:2] == (["1", "7"] if site == "decoder" else ["0.00s", "0.02s"])
    assert trace.queries.text[0][:2] == (["0.00s", "0.02s"] if site == "encoder" else ["1", "7"])


def test_a_decoder_that_is_given_no_words_reads_its_start_token(hears):
    trace = capture(hears["whisper"], sound(), site="decoder")
    assert trace.keys.text == [["1"]]


def test_frames_are_named_by_the_second_at_which_they_begin(hears):
    trace = capture(hears["wav2vec2"], sound())
    stride = 10 / RATE
    assert trace.keys.text == [name_frames(trace.keys.real.shape[1], stride)]
    assert trace.keys.text[0][:3] == ["0.0000s", "0.0006s", "0.0013s"]
    bare = load(hears["wav2vec2"].network)
    assert capture(bare, {"input_values": torch.randn(1, 320)}).keys.text[0][:2] == ["#0", "#1"]


def test_patches_of_a_spectrogram_are_named_by_band_and_time(hears):
    names = capture(hears["ast"], sound()).keys.text[0]
    assert names[:4] == ["[CLS]", "[DIST]", "0,0", "0,1"]
    assert names[-1] == "1,4"


@pytest.mark.parametrize("kind", ["wav2vec2", "hubert"])
def test_a_sound_in_a_batch_is_what_it_is_alone(hears, kind):
    model, clips = hears[kind], [sound(0.02, 1), sound(0.013, 2)]
    together, alone = capture(model, clips), capture(model, clips[1])
    count = alone.keys.real.shape[1]
    assert together.keys.counts.tolist() == [capture(model, clips[0]).keys.real.shape[1], count]
    assert together.keys.text[1] == alone.keys.text[0]
    for batch, single in zip(together.attention, alone.attention, strict=True):
        assert torch.allclose(batch[1, :, :count, :count], single[0], atol=1e-5)
        assert not batch[1, :, count:].any()
        assert not batch[1, :, :, count:].any()


def test_sounds_of_two_lengths_without_a_mask_are_an_error(hears):
    model = load(hears["wav2vec2"].network, processor=wave_extractor(return_attention_mask=False))
    with pytest.raises(InputError, match=r"The sounds have 208 and 320 samples.*gives no attention_mask.*batch_size=1"):
        capture(model, [sound(0.02), sound(0.013)])
    assert [len(trace.examples) for trace in stream(model, [sound(0.02), sound(0.013)], batch_size=1)] == [1, 1]
    assert len(capture(model, [sound(0.02, 1), sound(0.02, 2)]).examples) == 2


def test_padding_that_nothing_places_is_said(hears):
    mask = torch.ones(2, 100, dtype=torch.long)
    mask[1, 50:] = 0
    features = torch.randn(2, 8, 100)
    with pytest.warns(DataWarning, match=r"has padding \(attention_mask\), but nothing says which of the 50 positions"):
        trace = capture(hears["whisper"], {"input_features": features, "attention_mask": mask})
    assert trace.keys.real.all()


def test_files_arrays_and_samples_with_their_rate_are_the_same(hears, tmp_path):
    model = hears["wav2vec2"]
    samples = (sound() * 3000).astype(np.int16)
    floats = samples.astype(np.float32) / 32768
    stereo = np.stack([samples, samples], axis=1)
    (tmp_path / "clips").mkdir()
    path = write_wav(tmp_path / "clips" / "a.wav", samples)
    sources = [
        str(path),
        path,
        tmp_path / "clips",
        write_wav(tmp_path / "stereo.wav", stereo),
        write_wav(tmp_path / "float.wav", floats),
        floats,
        torch.tensor(floats),
        floats.tolist(),
        (floats, RATE),
        (RATE, floats),
        {"array": floats, "sampling_rate": RATE},
        [floats],
    ]
    expected = capture(model, sources[0])
    assert expected.examples[0].text == "a.wav"
    for source in sources[1:]:
        assert torch.allclose(capture(model, source).attention[1], expected.attention[1], atol=1e-6), source


def test_eight_bit_files_have_silence_in_their_middle(hears, tmp_path):
    samples = (sound() * 20 + 128).clip(0, 255).astype(np.uint8)
    path = write_wav(tmp_path / "a.wav", samples)
    floats = (samples.astype(np.float32) - 128) / 128
    model = hears["hubert"]
    assert torch.allclose(capture(model, path).attention[0], capture(model, floats).attention[0], atol=1e-6)


@pytest.mark.parametrize("at", ["file", "pair", "dict"])
def test_another_rate_is_an_error_and_nothing_is_resampled(hears, tmp_path, at):
    source = {
        "file": write_wav(tmp_path / "a.wav", sound(), rate=8000),
        "pair": (sound(), 8000),
        "dict": {"array": sound(), "sampling_rate": 8000},
    }[at]
    match = r"The model hears 16,000 samples a second, but (a\.wav|sound) has 8,000\. Resample it first, .*16000, 8000"
    with pytest.raises(InputError, match=match):
        capture(hears["wav2vec2"], source)


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        (
            "The cat sat.",
            r"There is no sound The cat sat\.\. The model reads sounds: give the path of a WAV file or an",
        ),
        (["One text.", "Two."], r"There is no sound One text\."),
        (__file__, r"test_main_inputs\.py is not a WAV file that scipy can read\. Convert it to one \(ffmpeg"),
        ([], r"There is no sound: the list is empty"),
        ([None], r"Cannot hear item 0, a NoneType: it must be the path of a WAV file, an array of samples, or \(sam"),
        (np.zeros((2, 400), dtype=np.float32), r"Item 0 is an array of shape \[2, 400\], but a sound is one row"),
        (np.zeros(400, dtype=np.int16), r"Item 0 holds samples of type int16, but models hear numbers from −1 to 1"),
    ],
)
def test_what_is_no_sound_is_an_error(hears, source, sentence):
    with pytest.raises(InputError, match=sentence):
        capture(hears["wav2vec2"], source)


def test_options_of_texts_with_sounds_are_an_error(hears):
    with pytest.raises(InputError, match=r"A sound goes in whole and alone: leave out pair.*decoder_input_ids"):
        capture(hears["whisper"], sound(), "What was said.")
    with pytest.raises(InputError, match="A sound goes in whole: leave out max_length, pad_to and pad_positions"):
        stream(hears["whisper"], [sound()], pad_to=9)


@pytest.mark.parametrize("source", ["speech.wav", ["A text.", "speech.mp3"], np.zeros(9), (np.zeros(9), RATE)])
def test_a_sound_for_a_language_model_is_an_error(source):
    with pytest.raises(
        InputError, match=r"BertModel reads texts, but ('speech\.(wav|mp3)'|this \w+) is a sound\. Give"
    ):
        capture(tiny("bert"), source)


def test_a_text_that_mentions_a_file_is_a_text():
    assert capture(tiny("bert"), "the cat speech.wav").examples[0].text == "the cat speech.wav"


def test_without_a_feature_extractor_only_processed_sounds_can_be_read(hears):
    bare = load(hears["wav2vec2"].network)
    with pytest.raises(
        InputError, match=r"Wav2Vec2Model has no feature extractor\. Give one to hs\.load.*input_values"
    ):
        capture(bare, sound())
    with pytest.raises(
        InputError, match=r"A processed batch holds input_values, but this one holds labels\. Give the p"
    ):
        capture(bare, {"labels": torch.ones(1, 3, dtype=torch.long)})


def test_a_sound_longer_than_the_model_hears_is_said(hears):
    with pytest.warns(DataWarning, match=r"sound lasts 1\.5 s, but the model hears 1\.0 s of it: the rest was cut off"):
        capture(hears["whisper"], sound(1.5))
    with pytest.warns(DataWarning, match=r"sound lasts 0\.5 s, but the model hears 0\.4 s"):
        capture(hears["ast"], sound(0.5))


def test_the_feature_extractor_and_the_tokenizer_are_loaded_from_the_folder(hears, tmp_path):
    for kind in ("wav2vec2", "whisper"):
        folder = tmp_path / kind
        hears[kind].network.save_pretrained(folder)
        hears[kind].processor.save_pretrained(folder)
        tokenizer().save_pretrained(folder)
        model = load(folder, device="cpu")
        assert (model.tokenizer is None) == (kind == "wav2vec2")
        assert torch.allclose(capture(model, sound()).attention[0], capture(hears[kind], sound()).attention[0])


def test_many_sounds_are_measured(hears, tmp_path):
    for seed in range(3):
        write_wav(tmp_path / f"{seed}.wav", sound(0.02 + 0.001 * seed, seed))
    result = measure(hears["hubert"], tmp_path, statistics="entropy")
    assert int(result["entropy_n"].max()) == 3
    with pytest.raises(InputError, match=r"HubertModel reads sounds, but words are parts of texts.*'a\.wav'"):
        check_reads_texts(hears["hubert"], "words are parts of texts")


def test_sounds_are_viewed_through_a_lens(hears):
    maps = view(capture(hears["wav2vec2"], sound()), "effective")
    assert maps.weights.shape[1:3] == (2, 2)


def series_inputs():
    generator = torch.Generator().manual_seed(0)
    past = {"past_values": (2, 10), "past_time_features": (2, 10, 1), "past_observed_mask": (2, 10)}
    future = {"future_values": (2, 4), "future_time_features": (2, 4, 1)}
    tensors = {name: torch.randn(shape, generator=generator) for name, shape in (past | future).items()}
    return {**tensors, "past_observed_mask": torch.ones(2, 10)}


@pytest.mark.parametrize(("site", "counts"), [("encoder", (8, 8)), ("decoder", (4, 4)), ("cross", (4, 8))])
def test_a_model_of_series_is_captured_at_all_its_sites(site, counts):
    model = build("TimeSeriesTransformer", num_time_features=1, **SERIES)
    trace = capture(model, series_inputs(), site=site)
    assert_exact(trace, run_eager(model, series_inputs())[f"{site}_attentions"])
    assert (trace.queries.real.shape[1], trace.keys.real.shape[1]) == counts
    assert trace.keys.text[0][:2] == ["#0", "#1"]
    assert [example.text for example in trace.examples] == ["past_values", "past_values"]


def test_each_channel_of_a_series_is_a_row_of_its_own():
    sizes = {"d_model": 16, "num_attention_heads": 2, "num_hidden_layers": 2, "ffn_dim": 24, "norm_type": "layernorm"}
    sizes |= {"context_length": 24, "patch_length": 4, "patch_stride": 4, "num_input_channels": 3}
    model = build("PatchTST", **sizes)
    values = torch.randn(2, 24, 3, generator=torch.Generator().manual_seed(0))
    together, alone = (capture(model, {"past_values": part}) for part in (values, values[1:]))
    assert [example.id for example in together.examples] == ["0.0", "0.1", "0.2", "1.0", "1.1", "1.2"]
    assert together.examples[4].text == "past_values, channel 1"
    assert torch.allclose(together.attention[1][3:], alone.attention[1], atol=1e-6)


def test_series_are_given_as_a_processed_batch():
    model = build("TimeSeriesTransformer", num_time_features=1, **SERIES)
    with pytest.raises(
        InputError, match=r"TimeSeriesTransformerModel reads past_values, not texts\. Give them as a pro"
    ):
        capture(model, "A text.")
    with pytest.raises(InputError, match=r"reads past_values, but scores .* hs\.capture\(model, \{'past_values': …"):
        check_reads_texts(model, "scores are of texts")


def test_queries_for_objects_are_numbered():
    backbone = transformers.ResNetConfig(
        embedding_size=8, hidden_sizes=[8, 8], depths=[1, 1], out_features=["stage2"], layer_type="basic"
    )
    config = transformers.DetrConfig(
        use_timm_backbone=False,
        backbone=None,
        use_pretrained_backbone=False,
        backbone_config=backbone,
        num_queries=5,
        d_model=16,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=24,
        decoder_ffn_dim=24,
    )
    model = build("Detr", config=config)
    pixels = {"pixel_values": torch.randn(2, 3, 32, 32, generator=torch.Generator().manual_seed(0))}
    theirs = run_eager(model, pixels)
    assert_exact(capture(model, pixels), theirs.encoder_attentions)
    cross = capture(model, pixels, site="cross")
    assert_exact(cross, theirs.cross_attentions)
    assert cross.queries.text[0] == ["#0", "#1", "#2", "#3", "#4"]
    assert cross.keys.real.shape[1] == 16


def test_patches_that_come_flat_are_named_by_row_and_column():
    network = transformers.Pix2StructVisionModel(
        transformers.Pix2StructVisionConfig(
            hidden_size=16,
            patch_embed_hidden_size=12,
            d_ff=24,
            d_kv=8,
            num_hidden_layers=2,
            num_attention_heads=2,
            seq_len=9,
        )
    ).eval()
    patches = torch.randn(1, 4, 14)
    patches[0, :, :2] = torch.tensor([[1, 1], [1, 2], [2, 1], [0, 0]])
    mask = torch.tensor([[1, 1, 1, 0]])
    trace = capture(load(network), {"flattened_patches": patches, "attention_mask": mask})
    assert trace.keys.text == [["0,0", "0,1", "1,0"]]
    assert not trace.attention[0][..., 3].any()


def test_a_picture_given_as_a_list_of_patches_is_one_example():
    config = transformers.Glm4vVisionConfig(
        hidden_size=16, depth=2, num_heads=2, intermediate_size=24, out_hidden_size=16, patch_size=4, image_size=16
    )
    network = transformers.Glm4vVisionModel(config).eval()
    patches = {"hidden_states": torch.randn(16, 96), "grid_thw": torch.tensor([[1, 4, 4]])}
    trace = capture(load(network), patches)
    assert [example.text for example in trace.examples] == ["image"]
    assert trace.keys.text[0][:2] == ["#0", "#1"]


def test_embedded_texts_are_numbered_and_their_padding_is_known():
    embeddings = torch.randn(2, 5, tiny("bert").network.config.hidden_size)
    mask = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]])
    trace = capture(tiny("bert"), {"inputs_embeds": embeddings, "attention_mask": mask})
    assert trace.keys.text == [["#0", "#1", "#2", "#3", "#4"], ["#0", "#1", "#2"]]


def test_what_is_no_tensor_in_a_batch_is_an_error():
    with pytest.raises(
        InputError, match=r"'input_ids' of the batch is a list, which is no tensor.*return_tensors='pt'"
    ):
        capture(tiny("bert"), {"input_ids": [[1, 2], [3]]})
