"""Writes tiny random checkpoints of every model family and transformers' logits for them.

    pip install torch transformers safetensors
    python tools/golden/models.py --output tests/golden/models
    python tools/golden/models.py --output tests/golden/models --only mixtral qwen3_moe

The output is committed; tests/parity compares Quire's logits with it. Everything is seeded, and the
manifest (cases.json) names the versions that made each weight set and rope.json. With `--only`, the
named sets are written and all other files stay as they are.
"""

import argparse
import copy
import json
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import transformers
from safetensors.torch import save_file
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

NUM_TOKENS = 40
VOCAB_SIZE = 67  # no multiple of any vector width
Config = dict[str, Any]
VERSIONS: Config = {"torch": torch.__version__, "transformers": transformers.__version__}


@dataclass
class WeightSet:
    """One checkpoint, and the configurations (differences from `config`) it is run with."""

    name: str
    seed: int
    config: Config
    cases: dict[str, Config] = field(default_factory=lambda: {"default": {}})
    dtype: torch.dtype = torch.float32
    max_shard_size: str = "1GB"


COMMON: Config = {
    "vocab_size": VOCAB_SIZE, "num_hidden_layers": 2, "hidden_act": "silu", "rms_norm_eps": 1e-5,
    "max_position_embeddings": 128, "bos_token_id": 1, "eos_token_id": 2,
    "tie_word_embeddings": False, "rope_theta": 10000.0,
}
SMALL: Config = COMMON | {"hidden_size": 24, "intermediate_size": 20}
LLAMA: Config = COMMON | {
    "model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 32,
    "intermediate_size": 28, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 16,
    "rope_theta": 100.0,
}
YARN: Config = {"rope_type": "yarn", "factor": 2.0, "original_max_position_embeddings": 64,
                "beta_fast": 4.0, "beta_slow": 1.0}
LLAMA3: Config = {"rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0,
                  "high_freq_factor": 4.0, "original_max_position_embeddings": 64}
GEMMA: Config = COMMON | {
    "hidden_size": 24, "intermediate_size": 20, "num_attention_heads": 4, "num_key_value_heads": 2,
    "head_dim": 8, "hidden_activation": "gelu_pytorch_tanh", "query_pre_attn_scalar": 6,
    "sliding_window": 12, "tie_word_embeddings": True, "num_hidden_layers": 3,
}
GEMMA3: Config = GEMMA | {
    "model_type": "gemma3_text", "architectures": ["Gemma3ForCausalLM"], "rope_theta": 1000000.0,
    "rope_local_base_freq": 100.0,
    "layer_types": ["sliding_attention", "sliding_attention", "full_attention"],
}
BIASED: Config = SMALL | {"model_type": "llama", "architectures": ["LlamaForCausalLM"],
                          "num_attention_heads": 3, "num_key_value_heads": 3,
                          "tie_word_embeddings": True, "attention_bias": True, "mlp_bias": True}
QWEN3_MOE: Config = SMALL | {
    "model_type": "qwen3_moe", "architectures": ["Qwen3MoeForCausalLM"], "head_dim": 8,
    "num_attention_heads": 4, "num_key_value_heads": 2, "num_experts": 6, "num_experts_per_tok": 2,
    "moe_intermediate_size": 12, "norm_topk_prob": True, "decoder_sparse_step": 1,
    "mlp_only_layers": [], "rope_theta": 1000000.0,
}
# rms_norm_eps is that of the published models. Only there do all implementations agree: some use
# 1e-6 for the norms of the latents, whatever the configuration says.
DEEPSEEK: Config = COMMON | {
    "hidden_size": 12, "intermediate_size": 20, "moe_intermediate_size": 8, "rms_norm_eps": 1e-6,
    "num_attention_heads": 3, "num_key_value_heads": 3, "kv_lora_rank": 32, "q_lora_rank": None,
    "qk_nope_head_dim": 16, "qk_rope_head_dim": 8, "v_head_dim": 24, "attention_bias": False,
    "first_k_dense_replace": 1, "moe_layer_freq": 1, "rope_theta": 100.0, "rope_scaling": None,
}
DEEPSEEK_V2: Config = DEEPSEEK | {
    "model_type": "deepseek_v2", "architectures": ["DeepseekV2ForCausalLM"],
    "num_hidden_layers": 3, "n_routed_experts": 6, "num_experts_per_tok": 3,
    "n_shared_experts": 2, "scoring_func": "softmax", "topk_method": "greedy", "n_group": 1,
    "topk_group": 1, "norm_topk_prob": False, "routed_scaling_factor": 1.0,
}
DEEPSEEK_YARN: Config = {
    # The ratio of the maximum positions is the factor: some versions of transformers use the ratio.
    "max_position_embeddings": 40 * 64,
    "rope_scaling": {"type": "yarn", "factor": 40, "original_max_position_embeddings": 64,
                     "beta_fast": 4, "beta_slow": 1, "mscale": 0.707, "mscale_all_dim": 0.707},
}

WEIGHT_SETS = [
    WeightSet("llama", 1, LLAMA, {
        "default": {},
        "linear": {"rope_scaling": {"type": "linear", "factor": 4.0}},
        # The sequence is longer than the model: the base is scaled.
        "dynamic": {"max_position_embeddings": 16,
                    "rope_scaling": {"type": "dynamic", "factor": 2.0}},
        "llama3": {"rope_scaling": LLAMA3},
        "yarn": {"rope_scaling": YARN},
        "yarn_mscale": {"rope_scaling": YARN | {"mscale": 1.0, "mscale_all_dim": 0.5,
                                                "truncate": False}},
        "yarn_attention_factor": {"rope_scaling": YARN | {"attention_factor": 1.3}},
    }),
    WeightSet("llama_tied_biased", 2, BIASED),
    WeightSet("llama_bf16", 3, BIASED | {"tie_word_embeddings": False}, dtype=torch.bfloat16),
    WeightSet("llama_f16", 4, BIASED | {"num_key_value_heads": 1}, dtype=torch.float16),
    WeightSet("mistral_sharded", 5, SMALL | {
        "model_type": "mistral", "architectures": ["MistralForCausalLM"],
        "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8, "sliding_window": 12,
    }, max_shard_size="16KB"),
    WeightSet("qwen2", 6, SMALL | {
        "model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"],
        "num_attention_heads": 3, "num_key_value_heads": 1,
    }, {
        "default": {},
        "sliding": {"use_sliding_window": True, "sliding_window": 12, "max_window_layers": 1},
    }),
    WeightSet("qwen3", 7, SMALL | {
        "model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"], "head_dim": 8,
        "num_attention_heads": 8, "num_key_value_heads": 2, "tie_word_embeddings": True,
        "rope_theta": 1000000.0,
    }),
    WeightSet("gemma2", 8, GEMMA | {
        "model_type": "gemma2", "architectures": ["Gemma2ForCausalLM"],
        "attn_logit_softcapping": 4.0, "final_logit_softcapping": 20.0,
    }, {
        "default": {},
        "uncapped": {"attn_logit_softcapping": None, "final_logit_softcapping": None},
    }),
    WeightSet("gemma2_bf16", 9, GEMMA | {
        "model_type": "gemma2", "architectures": ["Gemma2ForCausalLM"], "attention_bias": True,
    }, dtype=torch.bfloat16),
    WeightSet("gemma3", 10, GEMMA3, {
        "default": {},
        "linear": {"rope_scaling": {"rope_type": "linear", "factor": 8.0}},
        "pattern": {"layer_types": None, "sliding_window_pattern": 2},
    }),
    # The text model of a checkpoint with a vision tower.
    WeightSet("gemma3_vision", 11, {
        "model_type": "gemma3", "architectures": ["Gemma3ForConditionalGeneration"],
        "text_config": GEMMA3 | {"architectures": None}, "vision_config": {
            "hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1,
            "num_attention_heads": 1, "image_size": 28, "patch_size": 14},
        "mm_tokens_per_image": 4, "image_token_index": 66, "boi_token_index": 64,
        "eoi_token_index": 65, "bos_token_id": 1, "eos_token_id": 2,
    }),
    WeightSet("mixtral", 12, SMALL | {
        "model_type": "mixtral", "architectures": ["MixtralForCausalLM"], "num_attention_heads": 3,
        "num_key_value_heads": 1, "num_local_experts": 5, "num_experts_per_tok": 2,
        "sliding_window": None,
    }),
    WeightSet("qwen3_moe", 13, QWEN3_MOE, {
        "default": {},
        "unnormalized": {"norm_topk_prob": False},
    }),
    # Layers 0 and 2 are dense because of the step, layer 1 because it is named; layer 3 is sparse.
    WeightSet("qwen3_moe_mixed", 14, QWEN3_MOE | {
        "num_hidden_layers": 4, "decoder_sparse_step": 2, "mlp_only_layers": [1],
    }),
    # No case has norm_topk_prob: transformers ignores it in DeepSeek-V2, the published code then
    # leaves out routed_scaling_factor, and no published model sets it.
    WeightSet("deepseek_v2", 16, DEEPSEEK_V2, {
        "default": {},
        "scaled": {"routed_scaling_factor": 2.5},
        "yarn": DEEPSEEK_YARN,
        # Here, cos and sin have a factor other than 1, too.
        "yarn_mscale": DEEPSEEK_YARN | {
            "rope_scaling": DEEPSEEK_YARN["rope_scaling"] | {"mscale": 0.3}},
    }),
    WeightSet("deepseek_v2_q_lora", 15, DEEPSEEK_V2 | {
        "num_hidden_layers": 2, "q_lora_rank": 20, "n_routed_experts": 8, "n_shared_experts": 1,
        "topk_method": "group_limited_greedy", "n_group": 4, "topk_group": 2,
        "routed_scaling_factor": 1.7,
    }),
    WeightSet("deepseek_v3", 17, DEEPSEEK | {
        "model_type": "deepseek_v3", "architectures": ["DeepseekV3ForCausalLM"],
        "num_hidden_layers": 3, "q_lora_rank": 20, "v_head_dim": 12, "n_routed_experts": 8,
        "num_experts_per_tok": 3, "n_shared_experts": 1, "scoring_func": "sigmoid",
        "topk_method": "noaux_tc", "n_group": 4, "topk_group": 2, "norm_topk_prob": True,
        "routed_scaling_factor": 2.5, "num_nextn_predict_layers": 0,
    }, {
        "default": {},
        "yarn": DEEPSEEK_YARN | {"rope_scaling": DEEPSEEK_YARN["rope_scaling"] | {
            "mscale": 1.0, "mscale_all_dim": 1.0}},
    }),
]


# Frequencies of real shapes: name, head_dim, theta, max_position_embeddings, max_model_len,
# scaling.
ROPE_CASES: list[tuple[str, int, float, int, int, Config]] = [
    ("default", 128, 10000.0, 4096, 4096, {"rope_type": "default"}),
    ("linear", 128, 10000.0, 4096, 16384, {"rope_type": "linear", "factor": 4.0}),
    ("dynamic_within", 128, 10000.0, 4096, 4096, {"rope_type": "dynamic", "factor": 2.0}),
    ("dynamic_beyond", 128, 10000.0, 4096, 10000, {"rope_type": "dynamic", "factor": 2.0}),
    ("llama3_1", 128, 500000.0, 131072, 131072, LLAMA3 | {
        "factor": 8.0, "original_max_position_embeddings": 8192}),
    ("llama3_2", 64, 500000.0, 131072, 131072, LLAMA3 | {
        "factor": 32.0, "original_max_position_embeddings": 8192}),
    ("qwen2_5_yarn", 128, 1000000.0, 131072, 131072, {
        "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}),
    ("deepseek_yarn", 64, 10000.0, 163840, 163840, {
        "rope_type": "yarn", "factor": 40.0, "original_max_position_embeddings": 4096,
        "beta_fast": 32, "beta_slow": 1, "mscale": 1.0, "mscale_all_dim": 0.707}),
    ("yarn_untruncated", 128, 150000.0, 131072, 131072, {
        "rope_type": "yarn", "factor": 32.0, "original_max_position_embeddings": 4096,
        "beta_fast": 32.0, "beta_slow": 1.0, "truncate": False}),
]


def rope_case(name: str, head_dim: int, theta: float, max_position: int, max_model_len: int,
              scaling: Config) -> Config:
    values = LLAMA | {"head_dim": head_dim, "rope_theta": theta,
                      "max_position_embeddings": max_position, "rope_scaling": scaling}
    embedding = LlamaRotaryEmbedding(make_config(values))
    embedding(torch.zeros(1), torch.tensor([[max_model_len - 1]]))  # what `dynamic` looks at
    return {"name": name, "head_dim": head_dim, "max_model_len": max_model_len,
            "config": values, "inv_freq": embedding.inv_freq.tolist(),
            "attention_factor": embedding.attention_scaling}


def make_config(values: Config) -> transformers.PretrainedConfig:
    values = copy.deepcopy(values)  # transformers adds fields to rope_scaling
    return AutoConfig.for_model(values.pop("model_type"), **values)


def make_model(values: Config) -> torch.nn.Module:
    return AutoModelForCausalLM.from_config(make_config(values), attn_implementation="eager").eval()


def randomize(model: torch.nn.Module, seed: int) -> None:
    """Weights large enough that attention is peaked and every tensor shows in the logits."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            noise = torch.randn(weight.shape, generator=generator)
            if "norm" in name:
                weight.copy_(1.0 + 0.2 * noise)
            elif name.endswith("bias"):
                weight.copy_(0.3 * noise)
            elif "embed" in name:
                weight.copy_(noise)
            else:
                # The last dimension is the input, also where experts share one tensor.
                weight.copy_(noise * (1.5 / weight.shape[-1] ** 0.5))
        for name, buffer in model.named_buffers():
            if name.endswith("e_score_correction_bias"):
                # Positive, so that it does not matter whether the experts outside a token's groups
                # get 0 or minus infinity; implementations differ in that.
                buffer.copy_(0.05 + 0.4 * torch.rand(buffer.shape, generator=generator))


def logits_of(values: Config, state: dict[str, torch.Tensor], ids: torch.Tensor) -> torch.Tensor:
    model = make_model(values)
    model.load_state_dict(state)
    with torch.no_grad():
        return model(ids[None]).logits[0].float().contiguous()


def write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=1, sort_keys=True) + "\n")


def write_set(weights: WeightSet, ids: torch.Tensor, output: Path) -> list[Config]:
    folder = output / weights.name
    shutil.rmtree(folder, ignore_errors=True)
    model = make_model(weights.config)
    randomize(model, weights.seed)
    model = model.to(weights.dtype)
    model.save_pretrained(folder, max_shard_size=weights.max_shard_size)
    for unwanted in ("config.json", "generation_config.json"):
        (folder / unwanted).unlink(missing_ok=True)
    state = {name: tensor.float() for name, tensor in model.state_dict().items()}
    cases = []
    reference: torch.Tensor | None = None
    for name, difference in weights.cases.items():
        values = weights.config | difference
        logits = logits_of(values, state, ids)
        if reference is not None:
            # A case that cannot be told from the first one would test nothing.
            assert (logits - reference).abs().max() > 1e-2, (weights.name, name)
        reference = logits if reference is None else reference
        write_json(folder / f"{name}.config.json",
                   values | {"torch_dtype": str(weights.dtype).removeprefix("torch.")})
        save_file({"logits": logits}, folder / f"{name}.logits.safetensors")
        cases.append({"name": f"{weights.name}.{name}", "weights": weights.name,
                      "config": f"{weights.name}/{name}.config.json",
                      "logits": f"{weights.name}/{name}.logits.safetensors"})
    return cases


def write_sets(names: set[str], ids: torch.Tensor, output: Path, manifest: Config) -> None:
    """Writes the named weight sets; the manifest keeps the entries of all others."""
    cases = []
    for weights in WEIGHT_SETS:
        if weights.name in names:
            cases += write_set(weights, ids, output)
            manifest["made_with"][weights.name] = VERSIONS
        else:
            cases += [case for case in manifest["cases"] if case["weights"] == weights.name]
    manifest["cases"] = cases


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    all_names = [weights.name for weights in WEIGHT_SETS]
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--only", nargs="+", choices=all_names, metavar="SET",
                        help="weight sets to write, in an output folder that has the others")
    parser.add_argument("--seed", type=int, default=0, help="of the input ids")
    args = parser.parse_args()
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(args.seed)
    ids = torch.randint(VOCAB_SIZE, (NUM_TOKENS,), generator=generator)
    manifest: Config = {"input_ids": ids.tolist(), "vocab_size": VOCAB_SIZE, "cases": [],
                        "made_with": {}}
    if args.only:
        manifest = json.loads((args.output / "cases.json").read_text())
        if manifest["input_ids"] != ids.tolist():
            parser.error("the input ids differ from those of the other sets: write all sets")
    else:
        shutil.rmtree(args.output, ignore_errors=True)
        args.output.mkdir(parents=True)
        write_json(args.output / "rope.json", [rope_case(*case) for case in ROPE_CASES])
        manifest["made_with"]["rope.json"] = VERSIONS
    write_sets(set(args.only or all_names), ids, args.output, manifest)
    write_json(args.output / "cases.json", manifest)


if __name__ == "__main__":
    main()
