#include "cli/attention_shape.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "cli/engine_flags.h"
#include "engine/model_files.h"
#include "model/families.h"

namespace quire::cli {
namespace {

// The type named by the flag, else the one that the engine computes the model in, else BF16.
DType query_type(const std::string& name, std::optional<DType> of_model) {
  return parse_dtype(name).value_or(of_model.value_or(DType::kBF16));
}

}  // namespace

void add_attention_shape_flags(FlagSet& flags, AttentionShapeOptions* options) {
  flags.begin_group("Attention");
  add_attention_flags(flags, &options->engine);
  flags.number("--num-heads", &options->num_heads, {.min = 0, .max = 4096},
               "Query heads, instead of a model's");
  flags.number("--num-kv-heads", &options->num_kv_heads, {.min = 0, .max = 4096}, "KV heads");
  flags.number("--head-dim", &options->head_dim, {.min = 0, .max = 4096}, "Size of a head");
}

Status check_attention_shape(const AttentionShapeOptions& options) {
  const bool any = options.num_heads + options.num_kv_heads + options.head_dim > 0;
  const bool all = options.num_heads > 0 && options.num_kv_heads > 0 && options.head_dim > 0;
  if (any && !all) {
    return invalid_argument("expected --num-heads, --num-kv-heads and --head-dim together");
  }
  if (any && !options.engine.model.empty()) {
    return invalid_argument("expected --model or --num-heads, not both");
  }
  if (all && options.num_heads % options.num_kv_heads != 0) {
    return invalid_argument(
        fmt::format("--num-heads: got {}, expected a multiple of --num-kv-heads {}",
                    options.num_heads, options.num_kv_heads));
  }
  return {};
}

Result<AttentionShape> attention_shape(const AttentionShapeOptions& options) {
  AttentionShape shape = {.num_heads = options.num_heads,
                          .num_kv_heads = options.num_kv_heads,
                          .head_dim = options.head_dim};
  std::optional<DType> of_model;
  if (options.num_heads == 0) {
    QUIRE_ASSIGN_OR_RETURN(const ModelFiles files, open_model_files(options.engine));
    const ModelLimits limits = {.max_model_len = files.config.longest_model_len};
    const AttentionShape of_layers =
        make_kv_groups(files.config, limits, DType::kF32).front().decode;
    shape.num_heads = of_layers.num_heads;
    shape.num_kv_heads = of_layers.num_kv_heads;
    shape.head_dim = of_layers.head_dim;
    of_model = files.config.dtype;
  }
  shape.head_dim_v = shape.head_dim;
  shape.page_size = options.engine.block_size;
  shape.q = shape.out = query_type(options.engine.dtype, of_model);
  shape.kv = parse_dtype(options.engine.kv_cache_dtype).value_or(shape.q);
  shape.scale = 1.0F / std::sqrt(static_cast<float>(shape.head_dim));
  return shape;
}

std::string describe(const AttentionShape& shape) {
  return fmt::format("{} query heads, {} KV heads, head_dim {}, page {}, {} with {} KV cache",
                     shape.num_heads, shape.num_kv_heads, shape.head_dim, shape.page_size,
                     dtype_name(shape.q), dtype_name(shape.kv));
}

void add_sizes(FlagSet& flags, std::string name, std::vector<int>* target, int max,
               std::string help, std::string default_text) {
  flags.add({.name = std::move(name),
             .value_name = "N,N",
             .help = std::move(help),
             .default_text = std::move(default_text),
             .set = [target, max](std::string_view value) -> Status {
               QUIRE_ASSIGN_OR_RETURN(const std::vector<int32_t> sizes, parse_ids(value));
               const bool fit = std::ranges::all_of(
                   sizes, [max](int32_t size) { return size >= 1 && size <= max; });
               if (sizes.empty() || !fit) {
                 return unexpected(value, fmt::format("integers in [1, {}], such as 1,8,64", max));
               }
               target->assign(sizes.begin(), sizes.end());
               std::ranges::sort(*target);
               target->erase(std::unique(target->begin(), target->end()), target->end());
               return {};
             }});
}

}  // namespace quire::cli
