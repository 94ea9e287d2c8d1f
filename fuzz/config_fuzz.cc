// Parses config.json, also as the file of a draft head or a block drafter, generation_config.json,
// hf_quant_config.json, and the files of an embedding model. Accepted values are in range and
// usable.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "model/config.h"
#include "model/decoder.h"
#include "model/dflash/dflash.h"
#include "model/eagle3/eagle3.h"
#include "model/model_loader.h"
#include "model/mtp/mtp.h"
#include "model/packed_integers.h"
#include "start/embedding_modules.h"

namespace quire {
namespace {

void check_error(const Status& status) {
  QUIRE_CHECK(!status.message().empty() && status.message().size() < 1000, status.message());
  QUIRE_CHECK(status.message().find('\n') == std::string::npos, status.message());
}

void check_rope(const RopeConfig& rope, const DecoderConfig& decoder) {
  for (const int max_model_len : {1, decoder.max_position_embeddings, 1 << 28}) {
    const RopeFrequencies frequencies =
        rope_frequencies(rope, decoder.head_dim, decoder.max_position_embeddings, max_model_len);
    QUIRE_CHECK(frequencies.inv_freq.size() * 2 == static_cast<size_t>(decoder.head_dim),
                "a pair each");
    for (const double frequency : frequencies.inv_freq) {
      QUIRE_CHECK(std::isfinite(frequency) && frequency >= 0.0, "frequencies are finite");
    }
    QUIRE_CHECK(std::isfinite(frequencies.attention_factor), "the attention factor is finite");
  }
}

void check_decoder(const ModelConfig& config) {
  const DecoderConfig& decoder = decoder_config(config);
  const auto num_layers = static_cast<size_t>(config.num_layers);
  QUIRE_CHECK(decoder.head_dim >= 2 && decoder.head_dim % 2 == 0, "head_dim is even");
  QUIRE_CHECK(decoder.num_heads % decoder.num_kv_heads == 0, "heads share keys evenly");
  QUIRE_CHECK(decoder.layer_windows.size() == num_layers, "windows");
  QUIRE_CHECK(decoder.layer_ropes.size() == num_layers, "rotations");
  for (const int rope : decoder.layer_ropes) {
    QUIRE_CHECK(rope >= 0 && static_cast<size_t>(rope) < decoder.ropes.size(), "rotations");
  }
  if (decoder.mla) {
    QUIRE_CHECK(decoder.head_dim == decoder.mla->rope_head_dim, "the rotated part");
    QUIRE_CHECK(decoder.mla->kv_lora_rank < 1 << 15 && decoder.mla->q_lora_rank < 1 << 15 &&
                    decoder.mla->q_head_dim() < 1 << 14 && decoder.mla->v_head_dim < 1 << 13,
                "products of sizes fit");
  }
  if (decoder.moe) {
    QUIRE_CHECK(is_valid(decoder.moe->routing), "every token has experts");
    QUIRE_CHECK(decoder.moe->layers.size() == num_layers, "mixtures of experts");
  }
  QUIRE_CHECK(config.longest_model_len > 0 && config.longest_model_len <= kMaxModelLen, "context");
  QUIRE_CHECK(std::isfinite(decoder.attention_scale), "the scale is finite");
  for (const RopeConfig& rope : decoder.ropes) check_rope(rope, decoder);
}

void check_head(const ModelConfig& head) {
  check_decoder(head);
  const auto& eagle = dynamic_cast<const Eagle3Config&>(*head.family);
  QUIRE_CHECK(head.vocab_size <= eagle.target_vocab_size, "drafts are the target's tokens");
  for (const TensorSpec& tensor : list_eagle3_tensors(head)) {
    QUIRE_CHECK(tensor.shape.num_elements() > 0, "the count does not overflow");
  }
  ModelConfig target;
  target.family = std::make_shared<DecoderConfig>();
  target.vocab_size = eagle.target_vocab_size;
  target.hidden_size = eagle.target_hidden_size;
  for (target.num_layers = 1; target.num_layers < 2000; target.num_layers *= 5) {
    const Status fits = check_eagle3(head, target);
    if (!fits.ok()) check_error(fits);
    if (fits.ok()) {
      QUIRE_CHECK(eagle3_tapped_layers(head, target).back() <= target.num_layers,
                  "taps are layers");
    }
  }
}

void check_block_drafter(const ModelConfig& drafter) {
  check_decoder(drafter);
  const DFlashConfig& config = dflash_config(drafter);
  QUIRE_CHECK(
      config.block.mask_token_id >= 0 && config.block.mask_token_id < config.target_vocab_size,
      "the mask is a token");
  QUIRE_CHECK(drafter.vocab_size <= config.target_vocab_size, "drafts are the target's tokens");
  QUIRE_CHECK(config.block.max_drafts() > 0, "a block has drafts");
  QUIRE_CHECK(config.tapped_layers.front() >= 0 && std::ranges::is_sorted(config.tapped_layers),
              "taps are layers in order");
  for (const TensorSpec& tensor : list_dflash_tensors(drafter)) {
    QUIRE_CHECK(tensor.shape.num_elements() > 0, "the count does not overflow");
  }
  ModelConfig target;
  target.family = std::make_shared<DecoderConfig>();
  target.vocab_size = config.target_vocab_size;
  target.hidden_size = config.target_hidden_size;
  target.num_layers = config.num_target_layers.value_or(config.tapped_layers.back());
  const Status fits = check_dflash(drafter, target);
  if (!fits.ok()) check_error(fits);
}

void check_modules(std::string_view text) {
  const auto list = parse_modules(text, "input");
  if (!list.ok()) {
    check_error(list.status());
  } else if (*list) {
    const std::filesystem::path& folder = (*list)->pooling;
    QUIRE_CHECK(!folder.is_absolute() && std::ranges::find(folder, "..") == folder.end(),
                "the folder lies in the checkpoint");
  }
  const Status pooling = check_pooling(text, "input");
  if (!pooling.ok()) check_error(pooling);
}

void check_format(const WeightFormat& format) {
  const WeightScheme& scheme = format.scheme;
  const bool has_integers = is_integer(scheme) && (scheme.bits == 4 || scheme.bits == 8);
  QUIRE_CHECK((scheme.values == DType::kF8E4M3 || has_integers) && !format.scales_suffix.empty(),
              "the format is served");
  QUIRE_CHECK(scales_shape(scheme, {100, 300}).num_elements() > 0, "there are scales");
  if (!has_integers) return;
  const auto shapes = packed_shapes(format.packing, scheme, {96, 384});
  if (shapes.ok()) {
    QUIRE_CHECK(shapes->values.num_elements() > 0 && shapes->scales.num_elements() > 0 &&
                    shapes->zeros.num_elements() > 0,
                "a matrix has tensors");
  } else {
    QUIRE_CHECK(384 % scheme.block_columns != 0, "groups are whole");
  }
}

void fuzz(std::string_view text) {
  const auto model = parse_model_config(text, "input");
  if (model.ok()) {
    check_decoder(*model);
    if (model->format) check_format(*model->format);
    QUIRE_CHECK(num_parameters(*model) > 0, "the count does not overflow");
    if (check_mtp(*model).ok()) check_decoder(mtp_config(*model));
  } else {
    check_error(model.status());
  }
  static const DummyWeights weights(DType::kF32);
  const auto head = parse_eagle3_config(text, "input", weights);
  if (head.ok()) {
    check_head(*head);
  } else {
    check_error(head.status());
  }
  for (const BlockMethod method : {BlockMethod::kDFlash, BlockMethod::kDSpark}) {
    const auto drafter = parse_dflash_config(text, "input", weights, method);
    if (drafter.ok()) {
      check_block_drafter(*drafter);
    } else {
      check_error(drafter.status());
    }
  }
  const auto format = parse_hf_quant_config(text, "input");
  if (format.ok()) {
    if (*format) check_format(**format);
  } else {
    check_error(format.status());
  }
  const auto generation = parse_generation_config(text, "input");
  if (!generation.ok()) check_error(generation.status());
  check_modules(text);
}

}  // namespace
}  // namespace quire

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  quire::fuzz({reinterpret_cast<const char*>(data), size});
  return 0;
}
