"""A folder with everything that the pages of the docs name: models, pictures and data, small, and without a network."""

import json
from functools import cache
from pathlib import Path

import numpy as np
import torch
import transformers
from PIL import Image
from scipy.io import wavfile

from headscope.data.bundled.files import bundled_file
from headscope.data.reading.read import read
from headscope.engine.load import load
from tests.engine.test_images import processor
from tests.models import network

TEXT_MODELS = ("bert-base-uncased", "path/to/my-model", "path/to/tuned", "my-model", "MODEL")
OTHERS = {
    "HuggingFaceTB/SmolLM2-135M-Instruct": "writer",
    "google/vit-base-patch16-224": "viewer",
    "openai/clip-vit-base-patch32": "clip",
    "path/to/classifier": "classifier",
    "microsoft/swin-tiny-patch4-window7-224": "windows",
    "llava-hf/llava-1.5-7b-hf": "speaker",
    "facebook/wav2vec2-large-960h-lv60-self": "hearer",
}
TEXTS = ("A fine film.", "Warm and witty.", "I loved it.", "A dull film.", "Cold and clumsy.", "I hated it.")


@cache
def models(root: Path) -> Path:
    """Return a folder with the models, saved once."""
    default = load()
    default.network.save_pretrained(root / "text")
    default.tokenizer.save_pretrained(root / "text")
    config = transformers.GPT2Config(
        vocab_size=30522, n_embd=32, n_layer=2, n_head=4, bos_token_id=101, eos_token_id=102
    )
    torch.manual_seed(0)
    transformers.GPT2LMHeadModel(config).save_pretrained(root / "writer")
    tokenizer = load().tokenizer
    tokenizer.chat_template = "{% for message in messages %}{{ message['content'] }}{% endfor %}"
    tokenizer.save_pretrained(root / "writer")
    small = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 32}
    classes = {"id2label": {0: "negative", 1: "positive"}, "label2id": {"negative": 0, "positive": 1}}
    classifier = transformers.BertForSequenceClassification(transformers.BertConfig(**small, **classes))
    classifier.save_pretrained(root / "classifier")
    load().tokenizer.save_pretrained(root / "classifier")
    part = {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
    text = {**part, "vocab_size": 30522, "bos_token_id": 101, "eos_token_id": 102, "pad_token_id": 0}
    both = transformers.CLIPConfig(text_config=text, vision_config={**part, "image_size": 24, "patch_size": 8})
    transformers.CLIPModel(both).save_pretrained(root / "clip")
    images = transformers.CLIPImageProcessorPil(size={"shortest_edge": 24}, crop_size={"height": 24, "width": 24})
    transformers.CLIPProcessor(image_processor=images, tokenizer=tokenizer).save_pretrained(root / "clip")
    network("vit").save_pretrained(root / "viewer")
    processor().save_pretrained(root / "viewer")
    stages = {
        "depths": [2, 2],
        "num_heads": [2, 4],
        "embed_dim": 16,
        "window_size": 3,
        "image_size": 12,
        "patch_size": 2,
    }
    transformers.SwinModel(transformers.SwinConfig(**stages)).save_pretrained(root / "windows")
    processor().save_pretrained(root / "windows")
    words = load().tokenizer
    words.add_special_tokens({"additional_special_tokens": ["<image>"]})
    patches = {"model_type": "clip_vision_model", **part, "image_size": 24, "patch_size": 8}
    language = {"model_type": "llama", **part, "vocab_size": len(words)}
    spoken = transformers.LlavaConfig(
        text_config=language, vision_config=patches, image_token_index=words.convert_tokens_to_ids("<image>")
    )
    transformers.LlavaForConditionalGeneration(spoken).save_pretrained(root / "speaker")
    transformers.LlavaProcessor(
        images,
        words,
        patch_size=8,
        vision_feature_select_strategy="default",
        image_token="<image>",
        num_additional_image_tokens=1,
    ).save_pretrained(root / "speaker")
    heard = transformers.Wav2Vec2Config(**part, conv_dim=(8, 8), conv_stride=(16, 20), conv_kernel=(20, 25))
    transformers.Wav2Vec2Model(heard).save_pretrained(root / "hearer")
    transformers.Wav2Vec2FeatureExtractor(return_attention_mask=True).save_pretrained(root / "hearer")
    return root


def prepare(folder: Path, root: Path) -> None:
    """Put models and data into a folder, under the names that the pages use."""
    saved = models(root)
    for name, kind in (dict.fromkeys(TEXT_MODELS, "text") | OTHERS).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).symlink_to(saved / kind, target_is_directory=True)
    pixels = np.random.default_rng(0).integers(0, 256, (24, 24, 3), dtype=np.uint8)
    (folder / "photos").mkdir()
    for name in ("cat.jpg", "photos/cat.jpg", "photos/dog.png"):
        Image.fromarray(pixels).save(folder / name)
    for name in ("speech.wav", "again.wav"):
        wavfile.write(folder / name, 16_000, np.random.default_rng(0).normal(size=8_000).astype(np.float32))
    rows = [json.dumps({"text": text, "label": int(row < 3)}) for row, text in enumerate(TEXTS)]
    for name in ("reviews.jsonl", "my.jsonl", "more.jsonl"):
        (folder / name).write_text("\n".join(rows), encoding="utf-8")
    claims = sorted({example.columns["claim"] for example in read("arct:dev")})
    table = ["original\tnegated", *(f"{claim}\tNot so: {claim}" for claim in claims)]
    (folder / "claim_map.tsv").write_text("\n".join(table), encoding="utf-8")
    trees = bundled_file("ewt_sample.conllu").read_text(encoding="utf-8").split("\n\n")
    (folder / "trees.conllu").write_text("\n\n".join(trees[:4]) + "\n\n", encoding="utf-8")
    pairs = ["text\tword_i\tword_j\trelation", *(f"{text}\t0\t1\tfirst" for text in TEXTS)]
    (folder / "pairs.tsv").write_text("\n".join(pairs), encoding="utf-8")
    table = ["a\tb\ty", *(f"text {row}\tanother\t{row % 2}" for row in range(8))]
    (folder / "my.tsv").write_text("\n".join(table), encoding="utf-8")
    (folder / "ARCT").mkdir()  # commands of studies are parsed, and not run
    translations = ["text\tpair", *(f"{text}\t{text.lower()}" for text in TEXTS)]
    for part in ("train", "dev", "test"):
        (folder / f"{part}.tsv").write_text("\n".join(translations), encoding="utf-8")
    sizes = {"d_model": 16, "encoder_ffn_dim": 16, "decoder_ffn_dim": 16, "max_position_embeddings": 128}
    layers = {f"{part}_layers": 3 for part in ("encoder", "decoder")}
    layers |= {f"{part}_attention_heads": 2 for part in ("encoder", "decoder")}
    (folder / "bart.json").write_text(json.dumps({"model_type": "bart", **sizes, **layers}), encoding="utf-8")
    (folder / "GLUE" / "MRPC").mkdir(parents=True)
    pairs = [f"{row % 2}\t1\t2\t{text}\t{TEXTS[row - 1]}" for row, text in enumerate(TEXTS)]
    for part in ("train", "dev"):
        lines = ["Quality\t#1 ID\t#2 ID\t#1 String\t#2 String", *pairs]
        (folder / "GLUE" / "MRPC" / f"{part}.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
