"""The models of the comparison: a config.json for Quire and a GGUF file for the peer of one shape."""

import importlib
import json
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable

import gguf
import numpy as np

LLAMA_1B: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 2048,
    "intermediate_size": 8192, "num_hidden_layers": 16, "num_attention_heads": 32,
    "num_key_value_heads": 8, "head_dim": 64, "vocab_size": 128256, "max_position_embeddings": 8192,
    "rms_norm_eps": 1e-5, "rope_theta": 500000.0, "rope_scaling": None, "hidden_act": "silu",
    "tie_word_embeddings": True, "bos_token_id": 128000, "eos_token_id": 128001,
    "attention_bias": False, "mlp_bias": False}
LLAMA_8B = LLAMA_1B | {"hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32, "head_dim": 128,
                        "tie_word_embeddings": False}
# Half of the layers of Qwen3.5-0.8B and a part of its vocabulary, with the 32 value heads of the sizes from 4B.
QWEN35: dict[str, Any] = {
    "architectures": ["Qwen3_5ForCausalLM"], "model_type": "qwen3_5_text", "hidden_size": 1024,
    "intermediate_size": 3584, "num_hidden_layers": 12, "num_attention_heads": 8, "num_key_value_heads": 2,
    "head_dim": 256, "vocab_size": 32768, "max_position_embeddings": 8192, "rms_norm_eps": 1e-6, "rope_theta": 1e7,
    "partial_rotary_factor": 0.25, "full_attention_interval": 4, "linear_num_key_heads": 16,
    "linear_num_value_heads": 32, "linear_key_head_dim": 128, "linear_value_head_dim": 128,
    "linear_conv_kernel_dim": 4, "hidden_act": "silu", "tie_word_embeddings": True, "bos_token_id": 0,
    "eos_token_id": 0}
# For exactness in F32.
QWEN35_TINY = QWEN35 | {"hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 8, "vocab_size": 4096,
                        "linear_num_key_heads": 2, "linear_num_value_heads": 6}
SHAPES = {"llama-1b": LLAMA_1B, "llama-8b": LLAMA_8B, "qwen3.5": QWEN35, "qwen3.5-tiny": QWEN35_TINY}
FILE_TYPES = {"f16": gguf.LlamaFileType.MOSTLY_F16, "bf16": gguf.LlamaFileType.MOSTLY_BF16,
              "f32": gguf.LlamaFileType.ALL_F32}
QUANTIZED = ["q8_0", "q6_k", "q5_k_m", "q4_k_m", "q4_0", "q4_1"]

Weights = Callable[[str, tuple[int, ...]], np.ndarray]  # HF's name and shape → F32 values


@dataclass(frozen=True)
class Model:
    name: str
    config: Path  # for Quire: config.json, or the GGUF file
    gguf: Path  # for the peer


def dummy_weights(seed: int) -> Weights:
    """Repeats values that are drawn once: the time of a dense product does not depend on them."""
    drawn = np.random.default_rng(seed).normal(0.0, 0.02, 1 << 24).astype(np.float32)

    def weights(name: str, shape: tuple[int, ...]) -> np.ndarray:
        if name.endswith("norm.weight"):
            return np.ones(shape, np.float32)
        if name.endswith("ssm_a"):  # -exp(A_log)
            return -np.linspace(1, 16, shape[0], dtype=np.float32)
        if "conv1d" in name:
            return 20 * np.resize(drawn, int(np.prod(shape))).reshape(shape)
        return np.resize(drawn, int(np.prod(shape))).reshape(shape)

    return weights


def safetensors_weights(path: Path) -> Weights:
    data = path.read_bytes()
    header_bytes = struct.unpack_from("<Q", data)[0]
    header = json.loads(data[8:8 + header_bytes])

    def weights(name: str, shape: tuple[int, ...]) -> np.ndarray:
        entry = header[name]
        assert entry["dtype"] == "F32" and tuple(entry["shape"]) == shape, (name, entry)
        begin, end = (8 + header_bytes + offset for offset in entry["data_offsets"])
        return np.frombuffer(data[begin:end], np.float32).reshape(shape)

    return weights


def to_bf16(values: np.ndarray) -> np.ndarray:
    """Returns the bytes in the form that gguf expects for the type, rounded to nearest even."""
    bits = values.astype(np.float32).view(np.uint32)
    rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    return rounded.view(np.uint8)


def interleave_rope(weight: np.ndarray, num_heads: int) -> np.ndarray:
    """Reorders rows, because GGUF's Llama rotates neighbours and HF's rotates halves."""
    head_dim = weight.shape[0] // num_heads
    halves = weight.reshape(num_heads, 2, head_dim // 2, -1)
    return np.ascontiguousarray(halves.swapaxes(1, 2)).reshape(weight.shape)


def layer_tensors(config: dict[str, Any], layer: int) -> list[tuple[str, str, tuple[int, ...], int]]:
    """GGUF's name, HF's name, shape, and the number of rotated heads (0: none)."""
    hidden, inner = config["hidden_size"], config["intermediate_size"]
    heads, kv_heads = config["num_attention_heads"], config["num_key_value_heads"]
    head_dim = config.get("head_dim", hidden // heads)
    parts = [("attn_norm", "input_layernorm", (hidden,), 0),
             ("attn_q", "self_attn.q_proj", (heads * head_dim, hidden), heads),
             ("attn_k", "self_attn.k_proj", (kv_heads * head_dim, hidden), kv_heads),
             ("attn_v", "self_attn.v_proj", (kv_heads * head_dim, hidden), 0),
             ("attn_output", "self_attn.o_proj", (hidden, heads * head_dim), 0),
             ("ffn_norm", "post_attention_layernorm", (hidden,), 0),
             ("ffn_gate", "mlp.gate_proj", (inner, hidden), 0),
             ("ffn_up", "mlp.up_proj", (inner, hidden), 0),
             ("ffn_down", "mlp.down_proj", (hidden, inner), 0)]
    return [(f"blk.{layer}.{ours}.weight", f"model.layers.{layer}.{theirs}.weight", shape, rotated)
            for ours, theirs, shape, rotated in parts]


def delta_tensors(config: dict[str, Any], layer: int) -> list[tuple[str, str, tuple[int, ...], int]]:
    """Like layer_tensors, of Qwen3.5. The value heads are in the order of the file, whose names the weights have."""
    hidden, inner = config["hidden_size"], config["intermediate_size"]
    keys = config["linear_num_key_heads"] * config["linear_key_head_dim"]
    v_heads = config["linear_num_value_heads"]
    values = v_heads * config["linear_value_head_dim"]
    if (layer + 1) % config["full_attention_interval"] == 0:
        q, kv = (config[name] * config["head_dim"] for name in ("num_attention_heads", "num_key_value_heads"))
        parts = {"attn_q.weight": (2 * q, hidden), "attn_k.weight": (kv, hidden), "attn_v.weight": (kv, hidden),
                 "attn_output.weight": (hidden, q), "attn_q_norm.weight": (config["head_dim"],),
                 "attn_k_norm.weight": (config["head_dim"],)}
    else:
        parts = {"attn_qkv.weight": (2 * keys + values, hidden), "attn_gate.weight": (values, hidden),
                 "ssm_beta.weight": (v_heads, hidden), "ssm_alpha.weight": (v_heads, hidden),
                 "ssm_conv1d.weight": (2 * keys + values, config["linear_conv_kernel_dim"]), "ssm_a": (v_heads,),
                 "ssm_dt.bias": (v_heads,), "ssm_norm.weight": (config["linear_value_head_dim"],),
                 "ssm_out.weight": (hidden, values)}
    parts |= {"attn_norm.weight": (hidden,), "post_attention_norm.weight": (hidden,),
              "ffn_gate.weight": (inner, hidden), "ffn_up.weight": (inner, hidden), "ffn_down.weight": (hidden, inner)}
    return [(f"blk.{layer}.{name}", f"blk.{layer}.{name}", shape, 0) for name, shape in parts.items()]


def add_delta_fields(writer: gguf.GGUFWriter, config: dict[str, Any]) -> None:
    writer.add_key_length(config["head_dim"])
    writer.add_value_length(config["head_dim"])
    writer.add_rope_dimension_sections([11, 11, 10, 0])
    writer.add_ssm_conv_kernel(config["linear_conv_kernel_dim"])
    writer.add_ssm_state_size(config["linear_key_head_dim"])
    writer.add_ssm_group_count(config["linear_num_key_heads"])
    writer.add_ssm_time_step_rank(config["linear_num_value_heads"])
    writer.add_ssm_inner_size(config["linear_num_value_heads"] * config["linear_value_head_dim"])
    writer.add_full_attention_interval(config["full_attention_interval"])


def write_gguf(path: Path, config: dict[str, Any], dtype: str, weights: Weights, context: int) -> None:
    has_deltas = "full_attention_interval" in config
    writer = gguf.GGUFWriter(path, "qwen35" if has_deltas else "llama")
    if has_deltas:
        add_delta_fields(writer, config)
    heads = config["num_attention_heads"]
    head_dim = config.get("head_dim", config["hidden_size"] // heads)
    writer.add_file_type(FILE_TYPES[dtype])
    writer.add_context_length(context)
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(heads)
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_rope_dimension_count(int(head_dim * config.get("partial_rotary_factor", 1)))
    writer.add_rope_freq_base(config["rope_theta"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_vocab_size(config["vocab_size"])
    writer.add_tokenizer_model("no_vocab")
    tensors = [("token_embd.weight", "model.embed_tokens.weight",
                (config["vocab_size"], config["hidden_size"]), 0),
               ("output_norm.weight", "model.norm.weight", (config["hidden_size"],), 0)]
    if not config["tie_word_embeddings"]:
        tensors.append(("output.weight", "lm_head.weight", (config["vocab_size"], config["hidden_size"]), 0))
    for layer in range(config["num_hidden_layers"]):
        tensors += (delta_tensors if has_deltas else layer_tensors)(config, layer)
    for name, source, shape, rotated in tensors:
        values = weights(source, shape)
        if rotated:
            values = interleave_rope(values, rotated)
        if len(shape) == 1 or "conv1d" in name or dtype == "f32":
            writer.add_tensor(name, values)
        elif dtype == "f16":
            writer.add_tensor(name, values.astype(np.float16))
        else:
            writer.add_tensor(name, to_bf16(values), raw_dtype=gguf.GGMLQuantizationType.BF16)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def quantize(peer: str, plain: Path, out: Path, dtype: str) -> None:
    """Quantizes a GGUF file by the tool of the peer's package."""
    if peer == "ik_llama_cpp":
        importlib.import_module("ik_llama_cpp.quantize").quantize(plain, out, dtype.upper())
        return
    llama_cpp = importlib.import_module("llama_cpp")
    params = llama_cpp.llama_model_quantize_default_params()
    params.ftype = getattr(llama_cpp, f"LLAMA_FTYPE_MOSTLY_{dtype.upper()}")
    status = llama_cpp.llama_model_quantize(str(plain).encode(), str(out).encode(), params)
    if status != 0:
        raise RuntimeError(f"llama_model_quantize failed with {status}")


def make_model(name: str, dtype: str, work: Path, stories15m: Path | None, context: int, peer: str) -> Model:
    """Writes the missing files of one model. The GGUF has tied embeddings once."""
    work.mkdir(parents=True, exist_ok=True)
    file = work / f"{name}-{dtype}.gguf"
    partial = file.with_suffix(".partial")
    if dtype in QUANTIZED:
        if not file.exists():
            quantize(peer, make_model(name, "f16", work, stories15m, context, peer).gguf, partial, dtype)
            partial.rename(file)
        return Model(name, file, file)
    if stories15m is not None and name == "stories15M":
        config = json.loads((stories15m / "config.json").read_text())
        weights = safetensors_weights(stories15m / "model.safetensors")
    else:
        config, weights = SHAPES[name], dummy_weights(0)
    model = Model(name, work / f"{name}.json", file)
    model.config.write_text(json.dumps(config, indent=2))
    if not file.exists():
        write_gguf(partial, config, dtype, weights, context)
        partial.rename(file)
    return model
