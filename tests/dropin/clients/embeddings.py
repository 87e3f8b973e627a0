"""Vectors of texts, made by fastembed with a small model of one layer of attention."""

import json

import sine_models
from fastembed import TextEmbedding
from fastembed.common.model_description import ModelSource, PoolingType
from tokenizers import Tokenizer, models, pre_tokenizers

WORDS = "[PAD] [UNK] a loop runs over all of its words".split()
MODEL = f"""g (int64[B, T] input_ids, int64[B, T] attention_mask) => (float[B, T, 24] hidden) {{
  {sine_models.weights("table", 16, 24)}
  {sine_models.weights("q", 24, 24)}
  {sine_models.weights("k", 24, 24)}
  x = Gather (table, input_ids)
  a = MatMul (x, q)
  b = MatMul (x, k)
  columns = Transpose <perm = [0, 2, 1]> (b)
  scores = MatMul (a, columns)
  no = Constant <value_float = -10000.0> ()
  one = Constant <value_float = 1.0> ()
  mask = Cast <to = 1> (attention_mask)
  left_out = Sub (one, mask)
  penalty = Mul (left_out, no)
  axis = Constant <value_ints = [1]> ()
  row = Unsqueeze (penalty, axis)
  masked = Add (scores, row)
  p = Softmax <axis = -1> (masked)
  mixed = MatMul (p, x)
  hidden = Add (mixed, x)
}}"""


def embed() -> list:
    folder = sine_models.write("model.onnx", MODEL).parent
    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    files = {
        "config.json": {"pad_token_id": 0},
        "tokenizer_config.json": {"model_max_length": 64, "pad_token": "[PAD]"},
        "special_tokens_map.json": {"pad_token": "[PAD]", "unk_token": "[UNK]"},
    }
    for name, contents in files.items():
        (folder / name).write_text(json.dumps(contents))
    TextEmbedding.add_custom_model(
        model="mine",
        pooling=PoolingType.MEAN,
        normalization=True,
        sources=ModelSource(hf="mine/mine"),
        dim=24,
        model_file="model.onnx",
    )
    texts = ["a loop runs", "words of all", "over its own words runs a loop"]
    return [vector.tolist() for vector in TextEmbedding("mine", specific_model_path=str(folder)).embed(texts)]
