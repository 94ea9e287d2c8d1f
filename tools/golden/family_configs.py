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
    transposed: str = ""  # tensors whose last two dimensions published checkpoints swap
    # Tensors of published checkpoints that transformers does not load, for example of draft layers.
    extra: dict[str, list[int]] = field(default_factory=dict)
    # Patterns of tensors whose numbers are larger by a factor than those of others.
    enlarged: dict[str, float] = field(default_factory=dict)
    mxfp4: bool = False  # published checkpoints have the experts in MXFP4
    # Tensors that do not show in the logits: those of towers, and the factor of Gemma 4's last
    # layer, which the norm behind it undoes.
    silent: str = r"vision|visual|multi_modal_projector|mm_projector|audio|layers.3.layer_scalar"
    max_model_len: int = 80

    @property
    def vocab_size(self) -> int:
        return int(self.config.get("text_config", self.config)["vocab_size"])


# The epsilon is so large that it shows. Where embeddings are scaled up, it is larger still.
COMMON: Config = {
    "vocab_size": 67, "hidden_size": 32, "intermediate_size": 40, "num_hidden_layers": 3,
    "num_attention_heads": 4, "num_key_value_heads": 2, "hidden_act": "silu",
    "rms_norm_eps": 1e-3, "max_position_embeddings": 256, "tie_word_embeddings": False,
    "bos_token_id": 1, "eos_token_id": 2, "torch_dtype": "bfloat16",
}


def causal(model_type: str, architecture: str, values: Config) -> Config:
    return {"architectures": [architecture], "model_type": model_type} | COMMON | values


LLAMA3 = {"rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 64}
# The epsilon of the latents' norms is 1e-6 whatever the configuration says, so the epsilon of the
# other norms is near it, as in published models.
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
    "attention_bias": False, "rms_norm_eps": 0.05,
}



def conditional(model_type: str, architecture: str, text: Config, vision: Config,
                values: Config | None = None) -> Config:
    """A checkpoint with a tower for images, of which text uses only the text model."""
    return {"architectures": [architecture], "model_type": model_type, "dtype": "bfloat16",
            "tie_word_embeddings": False, "text_config": COMMON | text,
            "vision_config": vision} | (values or {})


MROPE = {"mrope_interleaved": True, "mrope_section": [3, 3, 2], "rope_type": "default"}
QWEN_VISION: Config = {
    "depth": 1, "hidden_size": 8, "intermediate_size": 8, "num_heads": 1, "in_channels": 3,
    "patch_size": 2, "spatial_merge_size": 2, "temporal_patch_size": 2, "out_hidden_size": 32,
    "num_position_embeddings": 4,
}
QWEN3_VL_MOE = conditional("qwen3_vl_moe", "Qwen3VLMoeForConditionalGeneration", {
    "model_type": "qwen3_vl_moe_text", "head_dim": 16, "attention_bias": False, "num_experts": 6,
    "num_experts_per_tok": 2, "moe_intermediate_size": 12, "norm_topk_prob": True,
    "decoder_sparse_step": 1, "mlp_only_layers": [1], "rope_theta": 5000000.0,
    "rope_scaling": MROPE}, QWEN_VISION | {
        "model_type": "qwen3_vl_moe", "deepstack_visual_indexes": [0]})
PIXTRAL: Config = {
    "model_type": "pixtral", "hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1,
    "num_attention_heads": 1, "head_dim": 8, "image_size": 8, "patch_size": 4, "num_channels": 3,
    "hidden_act": "silu", "rope_theta": 10000.0,
}
MISTRAL3: Config = {
    "image_token_index": 1000, "multimodal_projector_bias": False, "projector_hidden_act": "gelu",
    "spatial_merge_size": 2, "vision_feature_layer": -1,
}
# Queries after position 16 are scaled, in steps of 16 positions. All bounds of YaRN are so low that
# they fall between the few frequencies.
MISTRAL_YARN = {"rope_type": "yarn", "type": "yarn", "rope_theta": 100.0, "factor": 16.0,
                "original_max_position_embeddings": 16, "beta_fast": 0.5, "beta_slow": 0.05,
                "mscale": 1.0, "mscale_all_dim": 1.0, "llama_4_scaling_beta": 0.1}
PHI3: Config = {
    "hidden_size": 64, "attention_bias": False, "mlp_bias": False, "lm_head_bias": False,
    "sliding_window": None, "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attention_dropout": 0.0,
    "full_attn_mod": 1, "interpolate_factor": 1, "rope_theta": 10000.0, "pad_token_id": 0,
}
LONGROPE = {"type": "longrope", "short_factor": [1.0, 1.1, 1.3, 1.6, 2.0, 2.5],
            "long_factor": [1.0, 1.5, 3.0, 7.0, 15.0, 30.0]}
GLM4_MOE: Config = {
    "head_dim": 16, "attention_bias": True, "use_qk_norm": True, "moe_intermediate_size": 12,
    "n_routed_experts": 8, "n_shared_experts": 1, "num_experts_per_tok": 3, "n_group": 4,
    "topk_group": 2, "norm_topk_prob": True, "routed_scaling_factor": 2.5,
    "first_k_dense_replace": 1, "partial_rotary_factor": 0.5, "rope_theta": 1000000.0,
    "rope_scaling": None, "num_nextn_predict_layers": 1,
}
# A draft layer, behind the layers of the model. Two tensors stand for all.
MTP: dict[str, list[int]] = {"model.layers.3.eh_proj.weight": [32, 64],
                             "model.layers.3.enorm.weight": [32]}
MTP_OF_QWEN: dict[str, list[int]] = {"mtp.fc.weight": [32, 64], "mtp.norm.weight": [32]}
KIMI = DEEPSEEK | {
    "rms_norm_eps": 1e-5, "n_shared_experts": 1, "scoring_func": "sigmoid",
    "topk_method": "noaux_tc", "n_group": 1, "topk_group": 1, "norm_topk_prob": True,
    "routed_scaling_factor": 2.827, "num_nextn_predict_layers": 0, "rope_theta": 100.0,
    "aux_loss_alpha": 0.001, "seq_aux": True, "ep_size": 1,
    "rope_scaling": {"type": "yarn", "factor": 32.0, "original_max_position_embeddings": 64,
                     "beta_fast": 1.0, "beta_slow": 1.0, "mscale": 1.0, "mscale_all_dim": 1.0},
}
QWEN2_5_VL: Config = {
    "architectures": ["Qwen2_5_VLForConditionalGeneration"], "model_type": "qwen2_5_vl",
    "max_window_layers": 3, "sliding_window": 32, "use_sliding_window": False,
    "rope_theta": 1000000.0, "rope_scaling": {"type": "mrope", "mrope_section": [2, 1, 1]},
    "vision_config": {
        "model_type": "qwen2_5_vl", "depth": 1, "hidden_size": 8, "intermediate_size": 8,
        "num_heads": 1, "in_chans": 3, "patch_size": 2, "spatial_merge_size": 2,
        "temporal_patch_size": 2, "out_hidden_size": 32, "window_size": 8,
        "fullatt_block_indexes": [0], "hidden_act": "silu"},
}
LAGUNA_ROPE = {
    "full_attention": {"rope_type": "yarn", "rope_theta": 1000.0, "partial_rotary_factor": 0.5,
                       "factor": 8.0, "original_max_position_embeddings": 32, "beta_fast": 0.5,
                       "beta_slow": 0.05, "attention_factor": 1.0},
    "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0,
                          "partial_rotary_factor": 1.0},
}
# Linear attention, then full attention.
QWEN3_NEXT: Config = {
    "num_hidden_layers": 4, "head_dim": 32, "attention_bias": False, "full_attention_interval": 2,
    "linear_conv_kernel_dim": 4, "linear_key_head_dim": 8, "linear_value_head_dim": 12,
    "linear_num_key_heads": 2, "linear_num_value_heads": 4,
}
QWEN3_5_ROPE = {"mrope_interleaved": True, "mrope_section": [2, 1, 1], "rope_type": "default",
                "rope_theta": 10000000.0, "partial_rotary_factor": 0.25}
LFM2: Config = {
    "num_hidden_layers": 4, "norm_eps": 1e-3, "conv_L_cache": 3, "conv_bias": False,
    "rope_theta": 1000000.0, "pad_token_id": 0,
}
GEMMA4: Config = {
    "model_type": "gemma4_text", "num_hidden_layers": 4, "head_dim": 16, "global_head_dim": 32,
    "hidden_activation": "gelu_pytorch_tanh", "rms_norm_eps": 0.05, "sliding_window": 8,
    "layer_types": ["sliding_attention", "full_attention"] * 2, "final_logit_softcapping": 20.0,
    "attention_bias": False, "pad_token_id": 0, "tie_word_embeddings": True, "rope_parameters": {
        "full_attention": {"partial_rotary_factor": 0.25, "rope_theta": 1000000.0,
                           "rope_type": "proportional"},
        "sliding_attention": {"rope_theta": 10000.0, "rope_type": "default"}},
}


def gemma4(text: Config) -> Config:
    return {"architectures": ["Gemma4ForConditionalGeneration"], "model_type": "gemma4",
            "dtype": "bfloat16", "tie_word_embeddings": True, "vision_config": None,
            "audio_config": None, "text_config": COMMON | GEMMA4 | text}


GPT_OSS: Config = {
    "head_dim": 16, "attention_bias": True, "num_local_experts": 4, "num_experts_per_tok": 2,
    "experts_per_token": 2, "swiglu_limit": 7.0, "sliding_window": 8,
    "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
    "rope_theta": 150000.0, "rope_scaling": {
        "rope_type": "yarn", "factor": 8.0, "beta_fast": 4.0, "beta_slow": 1.0,
        "truncate": False, "original_max_position_embeddings": 32},
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

    # Layers of equal positions in all three axes of the rotation are plain ones.
    Family("qwen3_vl", conditional("qwen3_vl", "Qwen3VLForConditionalGeneration", {
        "model_type": "qwen3_vl_text", "head_dim": 16, "attention_bias": False,
        "rope_theta": 5000000.0, "rope_scaling": MROPE}, QWEN_VISION | {
            "model_type": "qwen3_vl", "deepstack_visual_indexes": [0]})),
    Family("qwen3_vl_moe", QWEN3_VL_MOE, transposed=r"experts\.(gate_up|down)_proj"),
    # As this version of transformers saves it.
    Family("qwen3_vl_moe_saved", QWEN3_VL_MOE),
    Family("ministral3", conditional("mistral3", "Mistral3ForConditionalGeneration", {
        "model_type": "ministral3", "head_dim": 16, "sliding_window": None,
        "rope_parameters": MISTRAL_YARN}, PIXTRAL, MISTRAL3)),
    # A Mistral in the same wrapper; the head is tied.
    Family("mistral3", conditional("mistral3", "Mistral3ForConditionalGeneration", {
        "model_type": "mistral", "head_dim": 16, "sliding_window": None,
        "rope_theta": 1000000000.0}, PIXTRAL, MISTRAL3 | {"tie_word_embeddings": True})),
    Family("phi3", causal("phi3", "Phi3ForCausalLM", PHI3 | {"rope_scaling": None})),
    # The engine chooses the factors by its longest context, and transformers by the sequence: here
    # every sequence is within, or beyond, the original context.
    Family("phi3_short", causal("phi3", "Phi3ForCausalLM", PHI3 | {
        "original_max_position_embeddings": 128, "partial_rotary_factor": 0.75,
        "tie_word_embeddings": True, "sliding_window": 256, "rope_scaling": LONGROPE})),
    Family("phi3_long", causal("phi3", "Phi3ForCausalLM", PHI3 | {
        "original_max_position_embeddings": 4, "partial_rotary_factor": 0.75,
        "sliding_window": 8, "rope_scaling": LONGROPE})),
    Family("glm4_moe", causal("glm4_moe", "Glm4MoeForCausalLM", GLM4_MOE), extra=MTP),
    # GLM-4.5-Air has no norms of queries and keys.
    Family("glm4_moe_air", causal("glm4_moe", "Glm4MoeForCausalLM", GLM4_MOE | {
        "use_qk_norm": False, "routed_scaling_factor": 1.0, "n_group": 1, "topk_group": 1}),
        extra=MTP),
    Family("glm4_moe_lite", causal("glm4_moe_lite", "Glm4MoeLiteForCausalLM", DEEPSEEK | {
        "rms_norm_eps": 1e-5, "n_shared_experts": 1, "scoring_func": "sigmoid",
        "topk_method": "noaux_tc", "n_group": 1, "topk_group": 1, "norm_topk_prob": True,
        "routed_scaling_factor": 1.8, "partial_rotary_factor": 1.0, "rope_scaling": None,
        "rope_theta": 10000.0, "num_nextn_predict_layers": 1}), extra=MTP),
    Family("minimax_m2", causal("minimax_m2", "MiniMaxM2ForCausalLM", {
        "head_dim": 16, "intermediate_size": 12, "num_local_experts": 6, "num_experts_per_tok": 2,
        "rope_theta": 5000000.0, "rotary_dim": 8, "use_qk_norm": True, "qk_norm_type": "per_layer",
        "scoring_func": "sigmoid", "use_routing_bias": True, "attn_type_list": [1, 1, 1],
        "shared_intermediate_size": 0, "use_mtp": True, "num_mtp_modules": 3,
        "mtp_transformer_layers": 1, "mlp_intermediate_size": 24,
        "layernorm_full_attention_beta": 1.0, "layernorm_linear_attention_beta": 1.0,
        "layernorm_mlp_beta": 1.0, "router_jitter_noise": 0.0, "sliding_window": None,
        "output_router_logits": False, "router_aux_loss_coef": 0.001})),
    Family("olmo3", causal("olmo3", "Olmo3ForCausalLM", {
        "attention_bias": False, "sliding_window": 8, "rope_theta": 500000.0,
        "layer_types": ["sliding_attention", "sliding_attention", "full_attention"],
        "rope_scaling": {"rope_type": "yarn", "factor": 8.0, "beta_fast": 0.5, "beta_slow": 0.02,
                         "original_max_position_embeddings": 32,
                         "attention_factor": 1.2079441541679836}})),
    Family("olmo2", causal("olmo2", "Olmo2ForCausalLM", {
        "attention_bias": False, "rope_theta": 500000.0, "rope_scaling": None})),
    Family("smollm3", causal("smollm3", "SmolLM3ForCausalLM", {
        "pad_token_id": 0, "num_hidden_layers": 4, "no_rope_layers": [1, 1, 0, 1],
        "no_rope_layer_interval": 4,
        "layer_types": ["full_attention"] * 4, "use_sliding_window": False,
        "sliding_window": None, "max_window_layers": 28, "attention_bias": False,
        "mlp_bias": False, "tie_word_embeddings": True, "rope_theta": 5000000.0,
        "rope_scaling": None})),
    Family("seed_oss", causal("seed_oss", "SeedOssForCausalLM", {
        "head_dim": 16, "attention_bias": True, "attention_out_bias": True, "mlp_bias": True,
        "residual_dropout": 0.1, "rope_theta": 10000000.0,
        "rope_scaling": {"rope_type": "default"}})),
    Family("granite", causal("granite", "GraniteForCausalLM", {
        "attention_bias": False, "mlp_bias": False, "tie_word_embeddings": True,
        "rms_norm_eps": 0.05, "embedding_multiplier": 3.0, "attention_multiplier": 0.9,
        "residual_multiplier": 0.4,
        "logits_scaling": 5.0, "rope_theta": 10000.0, "rope_scaling": None})),
    Family("kimi_k2", causal("kimi_k2", "DeepseekV3ForCausalLM", KIMI),
           differences={"model_type": "deepseek_v3"}),
    Family("kimi_k25", {
        "architectures": ["KimiK25ForConditionalGeneration"], "model_type": "kimi_k25",
        "bos_token_id": 1, "eos_token_id": 2, "dtype": "bfloat16",
        "media_placeholder_token_id": 163605, "tie_word_embeddings": False,
        "text_config": causal("kimi_k2", "DeepseekV3ForCausalLM", KIMI), "vision_config": {
            "model_type": "kimi_k25_vision", "patch_size": 2, "pos_emb_height": 2,
            "pos_emb_width": 2, "pos_emb_time": 1, "num_attention_heads": 1,
            "num_hidden_layers": 1, "hidden_size": 8, "intermediate_size": 8}},
        differences={"architectures": ["Kimi_K25ForConditionalGeneration"],
                     "projection_hidden_size": 8},
        # The inverse of the tower's renaming is applied to the text model, too.
        renames=[(r"^language_model\.model\.blocks", "language_model.model.layers")]),
    Family("glm4", causal("glm4", "Glm4ForCausalLM", {
        "head_dim": 16, "attention_bias": True, "partial_rotary_factor": 0.5,
        "pad_token_id": 0, "rope_theta": 10000.0})),
    Family("hunyuan_v1_dense", causal("hunyuan_v1_dense", "HunYuanDenseV1ForCausalLM", {
        "head_dim": 16, "attention_head_dim": 16, "attention_bias": False, "mlp_bias": False,
        "use_qk_norm": True, "use_cla": False, "eod_token_id": 3, "tie_word_embeddings": True,
        "rope_theta": 100.0, "rope_scaling": {
            "alpha": 50.0, "beta_fast": 32, "beta_slow": 1, "factor": 1.0, "mscale": 1.0,
            "mscale_all_dim": 1.0, "type": "dynamic"}})),
    Family("hy_v3", causal("hy_v3", "HYV3ForCausalLM", {
        "head_dim": 16, "attention_bias": False, "num_experts": 6, "num_experts_per_tok": 2,
        "num_shared_experts": 1, "moe_intermediate_size": 12, "expert_hidden_dim": 12,
        "router_scaling_factor": 2.826, "enable_moe_fp32_combine": False,
        "first_k_dense_replace": 1, "route_norm": True, "moe_router_use_sigmoid": True,
        "moe_router_enable_expert_bias": True, "qk_norm": True, "enable_lm_head_fp32": True,
        "enable_attention_fp32_softmax": False, "num_nextn_predict_layers": 1,
        "rope_parameters": {"rope_theta": 11158840.0, "rope_type": "default"}}), extra=MTP),
    Family("ernie4_5", causal("ernie4_5", "Ernie4_5ForCausalLM", {
        "head_dim": 16, "use_bias": False, "tie_word_embeddings": True, "pad_token_id": 0,
        "rope_theta": 500000.0})),
    Family("ernie4_5_moe", causal("ernie4_5_moe", "Ernie4_5_MoeForCausalLM", {
        "use_bias": False, "tie_word_embeddings": True, "pad_token_id": 0, "moe_num_experts": 6,
        "moe_k": 2, "moe_intermediate_size": 12, "moe_num_shared_experts": 2,
        "moe_layer_start_index": 1, "moe_layer_end_index": 2, "moe_layer_interval": 1,
        "moe_norm_min": 1e-12, "rope_theta": 500000.0})),
    Family("exaone4", causal("exaone4", "Exaone4ForCausalLM", {
        "head_dim": 16, "sliding_window": 8, "sliding_window_pattern": "LLG",
        "layer_types": ["sliding_attention", "sliding_attention", "full_attention"],
        "reorder_and_qk_norm": True, "rope_theta": 1000000.0, "rope_scaling": LLAMA3})),
    # Without windows, every layer has a rotation.
    Family("exaone4_full", causal("exaone4", "Exaone4ForCausalLM", {
        "head_dim": 16, "sliding_window": None, "sliding_window_pattern": None,
        "layer_types": ["full_attention"] * 3, "tie_word_embeddings": True,
        "rope_theta": 1000000.0, "rope_scaling": LLAMA3})),
    Family("mistral4", conditional("mistral3", "Mistral3ForConditionalGeneration", DEEPSEEK | {
        "model_type": "mistral4", "n_shared_experts": 1, "n_group": 1, "topk_group": 1,
        "norm_topk_prob": True, "routed_scaling_factor": 1.0, "rope_interleave": True,
        "rope_parameters": MISTRAL_YARN}, PIXTRAL, MISTRAL3)),
    Family("qwen2_5_vl", COMMON | QWEN2_5_VL),
    Family("llama4", conditional("llama4", "Llama4ForConditionalGeneration", {
        "model_type": "llama4_text", "num_hidden_layers": 4, "head_dim": 16,
        "attention_bias": False, "intermediate_size": 20, "intermediate_size_mlp": 40,
        "num_local_experts": 4, "num_experts_per_tok": 1, "interleave_moe_layer_step": 2,
        "use_qk_norm": True, "attention_chunk_size": 8, "no_rope_layers": [1, 1, 0, 1],
        "attn_temperature_tuning": True, "floor_scale": 8, "attn_scale": 0.1,
        "rope_theta": 500000.0, "rope_scaling": LLAMA3}, {
            "model_type": "llama4_vision_model", "hidden_size": 8, "intermediate_size": 8,
            "num_hidden_layers": 1, "num_attention_heads": 1, "image_size": 8, "patch_size": 4,
            "vision_output_dim": 8, "projector_input_dim": 8, "projector_output_dim": 8})),
    Family("laguna", causal("laguna", "LagunaForCausalLM", {
        "head_dim": 16, "attention_bias": False, "gating": True, "sliding_window": 8,
        "layer_types": ["full_attention", "sliding_attention", "full_attention"],
        "num_attention_heads_per_layer": [4, 8, 4],
        "mlp_layer_types": ["dense", "sparse", "sparse"], "num_experts": 6,
        "num_experts_per_tok": 2, "moe_intermediate_size": 12,
        "shared_expert_intermediate_size": 20, "moe_routed_scaling_factor": 2.5,
        "moe_router_logit_softcapping": 0.0, "moe_apply_router_weight_on_input": False,
        "rope_parameters": LAGUNA_ROPE})),
    Family("muse_glimmer", conditional("muse_glimmer", "MuseGlimmerForConditionalGeneration", {
        "model_type": "muse_glimmer_text", "num_hidden_layers": 4, "head_dim": 16,
        "hidden_activation": "silu", "attention_bias": False, "sliding_window": 8,
        "post_norm_eps": 1e-8, "final_logit_softcapping": 20.0, "qk_scale_factor": 3.87,
        "output_multiplier": 0.4, "layer_types": ["sliding_attention"] * 3 + ["full_attention"],
        "layer_rope_theta": [10000.0, 10000.0, 10000.0, 0],
        "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"}}, {
            "model_type": "muse_glimmer_vision", "patch_size": 2, "pos_emb_height": 2,
            "pos_emb_width": 2, "num_attention_heads": 1, "num_hidden_layers": 1,
            "hidden_size": 8, "intermediate_size": 8}, {
                "out_hidden_size": 32, "projector_hidden_size": 8})),
    Family("mimo_v2", causal("mimo_v2_flash", "MiMoV2FlashForCausalLM", {
        "head_dim": 24, "v_head_dim": 16, "swa_num_attention_heads": 4,
        "swa_num_key_value_heads": 4, "swa_head_dim": 24, "swa_v_head_dim": 16,
        "hybrid_layer_pattern": [0, 1, 1], "moe_layer_freq": [0, 1, 1], "rope_theta": 5000000,
        "swa_rope_theta": 10000, "partial_rotary_factor": 0.334, "layernorm_epsilon": 1e-3,
        "sliding_window": 8, "sliding_window_size": 8, "add_swa_attention_sink_bias": True,
        "add_full_attention_sink_bias": False, "attention_bias": False,
        "attention_value_scale": 0.707, "moe_intermediate_size": 12, "n_routed_experts": 8,
        "num_experts_per_tok": 3, "n_shared_experts": None, "n_group": 1, "topk_group": 1,
        "norm_topk_prob": True, "routed_scaling_factor": None, "scoring_func": "sigmoid",
        "topk_method": "noaux_tc"})),
    Family("qwen3_next", causal("qwen3_next", "Qwen3NextForCausalLM", QWEN3_NEXT | {
        "num_experts": 6, "num_experts_per_tok": 2, "moe_intermediate_size": 12,
        "shared_expert_intermediate_size": 20, "norm_topk_prob": True, "decoder_sparse_step": 1,
        "mlp_only_layers": [2], "partial_rotary_factor": 0.25, "rope_theta": 10000000,
        "rope_scaling": None}), extra=MTP_OF_QWEN),
    Family("qwen3_5", conditional("qwen3_5", "Qwen3_5ForConditionalGeneration", QWEN3_NEXT | {
        "model_type": "qwen3_5_text", "attn_output_gate": True, "mtp_num_hidden_layers": 1,
        "layer_types": ["linear_attention", "full_attention"] * 2,
        "rope_parameters": QWEN3_5_ROPE}, QWEN_VISION | {"model_type": "qwen3_5"}),
        extra=MTP_OF_QWEN),
    Family("qwen3_5_moe", conditional(
        "qwen3_5_moe", "Qwen3_5MoeForConditionalGeneration", QWEN3_NEXT | {
            "model_type": "qwen3_5_moe_text", "attn_output_gate": True,
            "mtp_num_hidden_layers": 1, "num_experts": 4, "num_experts_per_tok": 2,
            "moe_intermediate_size": 12, "shared_expert_intermediate_size": 20,
            "layer_types": ["linear_attention", "full_attention"] * 2,
            "rope_parameters": QWEN3_5_ROPE}, QWEN_VISION | {"model_type": "qwen3_5_moe"}),
        extra=MTP_OF_QWEN),
    Family("lfm2", causal("lfm2", "Lfm2ForCausalLM", LFM2 | {
        "full_attn_idxs": [1, 3], "block_ff_dim": 40, "block_multiple_of": 8,
        "block_ffn_dim_multiplier": 1.0, "block_auto_adjust_ff_dim": True,
        "tie_embedding": True, "tie_word_embeddings": True})),
    Family("lfm2_moe", causal("lfm2_moe", "Lfm2MoeForCausalLM", LFM2 | {
        "layer_types": ["conv", "full_attention"] * 2, "num_dense_layers": 1, "num_experts": 6,
        "num_experts_per_tok": 2, "moe_intermediate_size": 12, "use_expert_bias": True,
        "routed_scaling_factor": 1.0, "norm_topk_prob": True, "tie_word_embeddings": True})),
    # Gates and ups are so large that their limits matter.
    Family("gpt_oss", causal("gpt_oss", "GptOssForCausalLM", GPT_OSS | {"intermediate_size": 12}),
           enlarged={r"gate_up_proj$": 3.0}),
    Family("gpt_oss_mxfp4", causal("gpt_oss", "GptOssForCausalLM", GPT_OSS | {
        "hidden_size": 96, "intermediate_size": 64, "quantization_config": {
            "quant_method": "mxfp4", "modules_to_not_convert": [
                "model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens",
                "lm_head"]}}), mxfp4=True),
    # Embeddings per layer, keys and values of earlier layers: the small ones.
    Family("gemma4_small", gemma4({
        "hidden_size_per_layer_input": 8, "vocab_size_per_layer_input": 67,
        "num_kv_shared_layers": 2, "use_double_wide_mlp": True})),
    # Values that are the keys of layers without a window: the large one.
    Family("gemma4_large", gemma4({
        "hidden_size_per_layer_input": 0, "attention_k_eq_v": True,
        "num_global_key_value_heads": 1})),
    Family("gemma4_moe", gemma4({
        "hidden_size_per_layer_input": 0, "attention_k_eq_v": True,
        "num_global_key_value_heads": 1, "enable_moe_block": True, "num_experts": 6,
        "top_k_experts": 2, "moe_intermediate_size": 12})),
    # 12B: without the fields that its configuration does not have.
    Family("gemma4_unified", gemma4({
        "model_type": "gemma4_unified_text", "attention_k_eq_v": True,
        "num_global_key_value_heads": 1, "use_bidirectional_attention": "vision"}) | {
            "architectures": ["Gemma4UnifiedForConditionalGeneration"],
            "model_type": "gemma4_unified"}),
]
