#include "model/family_readers.h"

#include <cmath>
#include <string_view>

#include "model/config_fields.h"

namespace quire {
namespace {

// A null field turns the cap off; an absent field means the default.
float read_softcap(ConfigFields& fields, std::string_view key, double fallback) {
  const double absent = fields.mentions(key) ? 0.0 : fallback;
  return static_cast<float>(fields.optional_number(key, 1e-3, 1e6).value_or(absent));
}

// The soft caps have defaults, 0: none.
void read_gemma(ConfigFields& fields, double attention_softcap, double logits_softcap,
                const ModelConfig& config, DecoderConfig& decoder) {
  const double scale = fields.number("query_pre_attn_scalar", 1e-3, 1e6, 256.0);
  decoder.attention_scale = static_cast<float>(1.0 / std::sqrt(scale));
  decoder.attention_softcap = read_softcap(fields, "attn_logit_softcapping", attention_softcap);
  decoder.logits_softcap = read_softcap(fields, "final_logit_softcapping", logits_softcap);
  decoder.embedding_scale = std::sqrt(static_cast<double>(config.hidden_size));
  decoder.rounds_embedding_scale = true;
}

}  // namespace

void read_gemma2(ConfigFields& fields, ModelConfig& config, DecoderConfig& decoder) {
  read_gemma(fields, 50.0, 30.0, config, decoder);
}

void read_ministral3(ConfigFields& fields, ModelConfig& /*config*/, DecoderConfig& /*decoder*/) {
  if (fields.has("rope_parameters") || fields.has("rope_scaling")) return;
  fields.fail("rope_parameters", "nothing", "an object");
}

// The architecture has these fields, and transformers computes nothing for other values.
void read_phi3(ConfigFields& fields, ModelConfig& /*config*/, DecoderConfig& /*decoder*/) {
  for (const char* key : {"attention_bias", "mlp_bias", "lm_head_bias"}) {
    require_switch(fields, key, false);
  }
}

void read_hunyuan_dense(ConfigFields& fields, ModelConfig& /*config*/, DecoderConfig& /*decoder*/) {
  require_switch(fields, "use_qk_norm", true);
  require_switch(fields, "use_cla", false);
  require_switch(fields, "mlp_bias", false);
}

// No published model has windows, which would replace the missing rotations.
void read_smollm3(ConfigFields& fields, ModelConfig& /*config*/, DecoderConfig& /*decoder*/) {
  require_switch(fields, "use_sliding_window", false);
}

void read_gemma3(ConfigFields& fields, ModelConfig& config, DecoderConfig& decoder) {
  if (fields.boolean("use_bidirectional_attention", false)) {
    fields.fail("use_bidirectional_attention", "true",
                "false: text generation needs causal attention");
  }
  read_gemma(fields, 0.0, 0.0, config, decoder);
}

}  // namespace quire
