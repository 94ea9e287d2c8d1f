"""The tiny configurations of families.py, in the fields of published checkpoints.

Each has all traits of its family on, and so many layers that every kind of layer occurs.
"""

from dataclasses import dataclass, field
from typing import Any

Config = dict[str, Any]


@dataclass
class Family:
    name: str
    config: Config
    # What transformers has to read instead, where it does not know the published configuration.
    differences: Config = field(default_factory=dict)
    # Patterns and replacements from the tensors' names as transformers saves them to those of
    # published checkpoints.
    renames: list[tuple[str, str]] = field(default_factory=list)
    ignored: str = r"vision|visual|multi_modal_projector|audio"  # tensors that text does not use
    max_model_len: int = 80
    first_seed: int = 1

    @property
    def vocab_size(self) -> int:
        text = self.config.get("text_config", self.config)
        return text["vocab_size"]


COMMON: Config = {
    "vocab_size": 67, "hidden_size": 32, "intermediate_size": 40, "num_hidden_layers": 3,
    "num_attention_heads": 4, "num_key_value_heads": 2, "hidden_act": "silu",
    "rms_norm_eps": 1e-5, "max_position_embeddings": 256, "tie_word_embeddings": False,
    "bos_token_id": 1, "eos_token_id": 2, "torch_dtype": "bfloat16",
}


def causal(model_type: str, architecture: str, values: Config) -> Config:
    return {"architectures": [architecture], "model_type": model_type} | COMMON | values


LLAMA3 = {"rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 64}
DEEPSEEK: Config = {
    "num_key_value_heads": 4, "kv_lora_rank": 32, "q_lora_rank": 20, "qk_nope_head_dim": 16,
    "qk_rope_head_dim": 8, "v_head_dim": 24, "attention_bias": False, "moe_intermediate_size": 12,
    "n_routed_experts": 8, "num_experts_per_tok": 3, "first_k_dense_replace": 1,
    "moe_layer_freq": 1, "rms_norm_eps": 1e-6, "rope_theta": 100.0,
}
DEEPSEEK_YARN = {"type": "yarn", "factor": 4, "original_max_position_embeddings": 64,
                 "beta_fast": 4, "beta_slow": 1, "mscale": 0.707, "mscale_all_dim": 0.707}
GEMMA: Config = {
    "num_key_value_heads": 2, "head_dim": 16, "hidden_activation": "gelu_pytorch_tanh",
    "query_pre_attn_scalar": 12, "sliding_window": 8, "tie_word_embeddings": True,
    "attention_bias": False, "rms_norm_eps": 1e-6,
}

FAMILIES = [
    Family("llama", causal("llama", "LlamaForCausalLM", {
        "attention_bias": True, "mlp_bias": True, "head_dim": 16, "rope_theta": 100.0,
        "rope_scaling": LLAMA3})),
    Family("mistral", causal("mistral", "MistralForCausalLM", {
        "head_dim": 16, "sliding_window": 8, "rope_theta": 10000.0})),
    Family("qwen2", causal("qwen2", "Qwen2ForCausalLM", {
        "use_sliding_window": True, "sliding_window": 8, "max_window_layers": 1,
        "rope_theta": 1000000.0})),
    Family("qwen3", causal("qwen3", "Qwen3ForCausalLM", {
        "head_dim": 16, "attention_bias": True, "tie_word_embeddings": True,
        "use_sliding_window": True, "sliding_window": 8, "max_window_layers": 2,
        "rope_theta": 1000000.0})),
    Family("qwen3_moe", causal("qwen3_moe", "Qwen3MoeForCausalLM", {
        "head_dim": 16, "num_experts": 6, "num_experts_per_tok": 2, "moe_intermediate_size": 12,
        "norm_topk_prob": True, "decoder_sparse_step": 1, "mlp_only_layers": [1],
        "attention_bias": False, "rope_theta": 1000000.0})),
    Family("mixtral", causal("mixtral", "MixtralForCausalLM", {
        "num_local_experts": 5, "num_experts_per_tok": 2, "sliding_window": None,
        "intermediate_size": 20, "rope_theta": 1000000.0})),
    Family("deepseek_v2", causal("deepseek_v2", "DeepseekV2ForCausalLM", DEEPSEEK | {
        "n_shared_experts": 2, "scoring_func": "softmax", "topk_method": "group_limited_greedy",
        "n_group": 4, "topk_group": 2, "norm_topk_prob": False, "routed_scaling_factor": 1.7,
        "rope_scaling": DEEPSEEK_YARN})),
    Family("deepseek_v3", causal("deepseek_v3", "DeepseekV3ForCausalLM", DEEPSEEK | {
        "n_shared_experts": 1, "scoring_func": "sigmoid", "topk_method": "noaux_tc", "n_group": 4,
        "topk_group": 2, "norm_topk_prob": True, "routed_scaling_factor": 2.5,
        "num_nextn_predict_layers": 0, "rope_scaling": DEEPSEEK_YARN | {
            "mscale": 1.0, "mscale_all_dim": 1.0}})),
    Family("gemma2", causal("gemma2", "Gemma2ForCausalLM", GEMMA | {
        "attn_logit_softcapping": 4.0, "final_logit_softcapping": 20.0, "rope_theta": 10000.0})),
    Family("gemma3", causal("gemma3_text", "Gemma3ForCausalLM", GEMMA | {
        "rope_theta": 1000000.0, "rope_local_base_freq": 100.0, "sliding_window_pattern": 3,
        "rope_scaling": {"rope_type": "linear", "factor": 8.0}})),
]
