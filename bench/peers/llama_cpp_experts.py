"""Compares Quire with llama.cpp on GGUF files of mixtures of experts: the log probabilities of a
prompt's tokens, and greedy tokens. The files are written with the names and the quantization of the
`gguf` package, so that neither side's reader is compared with a writer of its own.

    pip install llama-cpp-python==0.3.36 gguf==0.19.0 numpy==2.4.6
    python bench/peers/llama_cpp_experts.py --quire build/quire --config default.config.json \\
        tests/golden/models/qwen3_moe

Or on one GGUF file, such as those of llama_cpp_models.py:

    python bench/peers/llama_cpp_experts.py qwen3.5-tiny-f32.gguf

A directory has config.json (or --config's) and model.safetensors, of Mixtral, Qwen3-MoE or DeepSeek-V2
or V3. llama.cpp loads a DeepSeek-V2 without q_lora_rank only if it has 26 or 27 layers, and chooses
the groups of DeepSeek-V2 by the two best experts instead of the best one. Inputs of its products are
rounded to the type of the weights or to 8 bits, which changes the experts of some tokens; so with
types other than F32 the median of the differences is what counts. Exits with 1 if the largest
difference with F32 exceeds --bound, or a median --median-bound.
"""

import argparse
import ctypes
import json
import struct
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import gguf
import numpy as np

sys.path = [path for path in sys.path if not path.endswith("bench/peers")]
import llama_cpp as lib  # noqa: E402  (the package, not a file of this folder)

ARCHITECTURES = {
    "MixtralForCausalLM": gguf.MODEL_ARCH.LLAMA,
    "Qwen3MoeForCausalLM": gguf.MODEL_ARCH.QWEN3MOE,
    "DeepseekV2ForCausalLM": gguf.MODEL_ARCH.DEEPSEEK2,
    "DeepseekV3ForCausalLM": gguf.MODEL_ARCH.DEEPSEEK2,
}
TYPES = {name: getattr(gguf.GGMLQuantizationType, name) for name in ("F32", "F16", "BF16", "Q8_0", "Q4_0")}
TOP = 20  # log probabilities per position


def read_safetensors(path: Path) -> dict[str, np.ndarray]:
    data = path.read_bytes()
    header_bytes = struct.unpack_from("<Q", data)[0]
    header = json.loads(data[8:8 + header_bytes])
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = (8 + header_bytes + offset for offset in entry["data_offsets"])
        if entry["dtype"] == "BF16":
            bits = np.frombuffer(data[begin:end], np.uint16).astype(np.uint32) << 16
            values = bits.view(np.float32)
        else:
            dtype = {"F32": np.float32, "F16": np.float16}[entry["dtype"]]
            values = np.frombuffer(data[begin:end], dtype).astype(np.float32)
        tensors[name] = values.reshape(entry["shape"])
    return tensors


def write_config(writer: gguf.GGUFWriter, config: dict[str, Any]) -> None:
    is_deepseek = "kv_lora_rank" in config
    heads = config["num_attention_heads"]
    writer.add_vocab_size(config["vocab_size"])
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(heads)
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_rope_freq_base(config["rope_theta"])
    experts = [config[key] for key in ("num_local_experts", "num_experts", "n_routed_experts") if key in config]
    writer.add_expert_count(experts[0])
    writer.add_expert_used_count(config["num_experts_per_tok"])
    if "moe_intermediate_size" in config:
        writer.add_expert_feed_forward_length(config["moe_intermediate_size"])
    if not is_deepseek:
        head_dim = config.get("head_dim", config["hidden_size"] // heads)
        writer.add_head_count_kv(config["num_key_value_heads"])
        writer.add_key_length(head_dim)
        writer.add_value_length(head_dim)
        writer.add_rope_dimension_count(head_dim)
        return
    rope_dim = config["qk_rope_head_dim"]
    writer.add_head_count_kv(1)
    writer.add_leading_dense_block_count(config["first_k_dense_replace"])
    if config.get("q_lora_rank"):
        writer.add_q_lora_rank(config["q_lora_rank"])
    writer.add_kv_lora_rank(config["kv_lora_rank"])
    writer.add_key_length(config["kv_lora_rank"] + rope_dim)
    writer.add_value_length(config["kv_lora_rank"])
    writer.add_key_length_mla(config["qk_nope_head_dim"] + rope_dim)
    writer.add_value_length_mla(config["v_head_dim"])
    writer.add_rope_dimension_count(rope_dim)
    writer.add_expert_shared_count(config["n_shared_experts"])
    writer.add_expert_weights_scale(config["routed_scaling_factor"])
    writer.add_expert_weights_norm(config["norm_topk_prob"])
    writer.add_expert_group_count(config["n_group"])
    writer.add_expert_group_used_count(config["topk_group"])
    is_sigmoid = config["scoring_func"] == "sigmoid"
    writer.add_expert_gating_func(gguf.ExpertGatingFuncType.SIGMOID if is_sigmoid
                                  else gguf.ExpertGatingFuncType.SOFTMAX)
    yarn = config.get("rope_scaling")
    if yarn:
        writer.add_rope_scaling_type(gguf.RopeScalingType.YARN)
        writer.add_rope_scaling_factor(yarn["factor"])
        writer.add_rope_scaling_orig_ctx_len(yarn["original_max_position_embeddings"])
        writer.add_rope_scaling_yarn_beta_fast(yarn["beta_fast"])
        writer.add_rope_scaling_yarn_beta_slow(yarn["beta_slow"])
        writer.add_rope_scaling_yarn_log_mul(0.1 * yarn["mscale_all_dim"])


def interleave_rope(weight: np.ndarray, num_heads: int) -> np.ndarray:
    """Reorders rows, because GGUF's Llama rotates neighbours and HF's rotates halves."""
    head_dim = weight.shape[0] // num_heads
    halves = weight.reshape(num_heads, 2, head_dim // 2, -1)
    return np.ascontiguousarray(halves.swapaxes(1, 2)).reshape(weight.shape)


def file_tensors(config: dict[str, Any], tensors: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The tensors as llama.cpp's converter hands them to the name map."""
    result: dict[str, np.ndarray] = {}
    stacks: dict[str, dict[int, np.ndarray]] = {}
    is_llama = config["architectures"][0] == "MixtralForCausalLM"
    for name, values in tensors.items():
        if ".experts." in name:
            before, after = name.split(".experts.")
            expert, matrix = after.split(".", 1)
            stacks.setdefault(f"{before}.experts.{matrix}", {})[int(expert)] = values
            continue
        if is_llama and "q_proj" in name:
            values = interleave_rope(values, config["num_attention_heads"])
        if is_llama and "k_proj" in name:
            values = interleave_rope(values, config["num_key_value_heads"])
        if name.endswith("kv_b_proj.weight"):
            key_rows, value_rows = config["qk_nope_head_dim"], config["v_head_dim"]
            by_head = values.reshape(config["num_attention_heads"], key_rows + value_rows, -1)
            result[name.replace("kv_b_proj", "k_b_proj")] = by_head[:, :key_rows].transpose(0, 2, 1)
            result[name.replace("kv_b_proj", "v_b_proj")] = by_head[:, key_rows:]
            continue
        result[name.replace("e_score_correction_bias", "e_score_correction.bias")] = values
    for name, experts in stacks.items():
        result[name] = np.stack([experts[i] for i in range(len(experts))])
    return result


def write_gguf(path: Path, config: dict[str, Any], tensors: dict[str, np.ndarray], type_name: str) -> None:
    architecture = ARCHITECTURES[config["architectures"][0]]
    names = gguf.get_tensor_name_map(architecture, config["num_hidden_layers"])
    writer = gguf.GGUFWriter(path, gguf.MODEL_ARCH_NAMES[architecture])
    write_config(writer, config)
    writer.add_tokenizer_model("none")
    writer.add_bos_token_id(config["bos_token_id"])
    writer.add_eos_token_id(config["eos_token_id"])
    for name, values in file_tensors(config, tensors).items():
        to = names.get_name(name, try_suffixes=(".weight", ".bias"))
        assert to is not None, name
        values = np.ascontiguousarray(values, np.float32)
        is_plain = values.ndim == 1 or "ffn_gate_inp" in to
        kind = TYPES["F32"] if is_plain else TYPES[type_name]
        if kind in (TYPES["Q8_0"], TYPES["Q4_0"]) and values.shape[-1] % 32 != 0:
            kind = TYPES["F16"]
        writer.add_tensor(to, gguf.quants.quantize(values, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


class LlamaCpp:
    def __init__(self, path: Path, num_positions: int) -> None:
        lib.llama_backend_init()
        self.quiet = lib.llama_log_callback(lambda level, text, data: None)
        lib.llama_log_set(self.quiet, None)
        self.model = lib.llama_model_load_from_file(str(path).encode(), lib.llama_model_default_params())
        if not self.model:
            raise RuntimeError(f"llama.cpp cannot load {path}")
        params = lib.llama_context_default_params()
        params.n_ctx = params.n_batch = params.n_ubatch = num_positions
        params.n_threads = params.n_threads_batch = 2
        params.type_k = params.type_v = 0  # F32
        params.flash_attn_type = 0  # disabled
        self.context = lib.llama_init_from_model(self.model, params)
        self.vocab_size = lib.llama_vocab_n_tokens(lib.llama_model_get_vocab(self.model))
        self.num_positions = num_positions

    def logprobs(self, ids: list[int]) -> np.ndarray:
        """[len(ids), vocab_size], computed from an empty cache."""
        lib.llama_memory_clear(lib.llama_get_memory(self.context), True)
        batch = lib.llama_batch_init(self.num_positions, 0, 1)
        batch.n_tokens = len(ids)
        for i, token in enumerate(ids):
            batch.token[i], batch.pos[i], batch.n_seq_id[i], batch.logits[i] = token, i, 1, True
            batch.seq_id[i][0] = 0
        if lib.llama_decode(self.context, batch) != 0:
            raise RuntimeError("llama_decode failed")
        address = ctypes.addressof(lib.llama_get_logits(self.context).contents)
        size = len(ids) * self.vocab_size
        logits = np.frombuffer((ctypes.c_float * size).from_address(address), np.float32).copy()
        lib.llama_batch_free(batch)
        logits = logits.reshape(len(ids), self.vocab_size).astype(np.float64)
        logits -= logits.max(axis=1, keepdims=True)
        return logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))


def quire_output(quire: str, path: Path, ids: list[int], num_tokens: int) -> dict[str, Any]:
    command = [quire, "generate", "--model", str(path), "--device", "cpu", "--format", "json",
               "--prompt-ids", ",".join(map(str, ids)), "--prompt-logprobs", str(TOP), "--temperature", "0",
               "--max-tokens", str(num_tokens), "--ignore-eos", "--kv-cache-dtype", "f32"]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return json.loads(output.splitlines()[0])


def compare(quire: str, path: Path, num_prompt: int, num_tokens: int) -> tuple[np.ndarray, int]:
    """The differences of the prompt's log probabilities, and the number of equal greedy tokens."""
    random = np.random.default_rng(3)
    peer = LlamaCpp(path, num_prompt + num_tokens)
    ids = [int(i) for i in random.integers(3, peer.vocab_size, num_prompt)]
    got = quire_output(quire, path, ids, num_tokens)
    expected = peer.logprobs(ids + got["token_ids"])
    differences = []
    for position, entry in enumerate(got["prompt_logprobs"]):
        for token in entry or []:  # the first token has none
            differences.append(abs(token["logprob"] - expected[position - 1, token["token_id"]]))
    greedy = expected[num_prompt - 1:-1].argmax(axis=1)
    return np.array(differences), int((greedy == np.array(got["token_ids"])).sum())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--config", default="config.json")
    parser.add_argument("--quire", default="build/quire")
    parser.add_argument("--types", nargs="+", default=list(TYPES), choices=list(TYPES))
    parser.add_argument("--prompt", type=int, default=100)
    parser.add_argument("--tokens", type=int, default=20)
    parser.add_argument("--bound", type=float, default=1e-3)
    parser.add_argument("--median-bound", type=float, default=0.05)
    args = parser.parse_args()
    is_file = args.model.suffix == ".gguf"
    if not is_file:
        config = json.loads((args.model / args.config).read_text())
        tensors = read_safetensors(args.model / "model.safetensors")
    is_good = True
    with tempfile.TemporaryDirectory() as scratch:
        for name in ["file"] if is_file else args.types:
            path = args.model if is_file else Path(scratch) / f"{name}.gguf"
            if not is_file:
                write_gguf(path, config, tensors, name)
            differences, num_equal = compare(args.quire, path, args.prompt, args.tokens)
            median, largest = float(np.median(differences)), float(differences.max())
            is_good &= median <= args.median_bound and (name != "F32" or largest <= args.bound)
            print(f"{args.model.name:24} {name:5} differences of the log probabilities: median {median:.1e}, "
                  f"mean {differences.mean():.1e}, largest {largest:.1e}; greedy tokens {num_equal} of {args.tokens} "
                  f"equal", flush=True)
    sys.exit(0 if is_good else 1)


if __name__ == "__main__":
    main()
