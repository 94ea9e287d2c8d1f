#include "model/gguf/gguf_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <span>
#include <type_traits>
#include <utility>

#include "base/log.h"
#include "base/machine.h"
#include "base/numbers.h"
#include "model/decoder_config.h"
#include "model/gguf/gguf_config.h"

namespace quire {
namespace {

// The tensors of multi-head latent attention, after "blk.N.": the matrix of keys and values in one
// tensor, or in two.
constexpr std::string_view kLatent = "attn_kv_b.weight";
constexpr std::string_view kLatentKeys = "attn_k_b.weight";
constexpr std::string_view kLatentValues = "attn_v_b.weight";

// Stacks of the matrices or biases of a layer's experts: the names after "blk.N." and before
// "weight" or "bias".
constexpr std::string_view kDownExperts = "ffn_down_exps.";
constexpr std::string_view kGateExperts = "ffn_gate_exps.";
constexpr std::string_view kUpExperts = "ffn_up_exps.";
constexpr std::string_view kGateUpExperts = "ffn_gate_up_exps.";

// The weights of convolutions, which the checkpoint stores as [channels, 1, kernel].
constexpr std::string_view kShortConv = "shortconv.conv.weight";
constexpr std::string_view kDeltaConv = "ssm_conv1d.weight";
// A matrix of one row, which a file may have as a vector.
constexpr std::string_view kSharedGate = "ffn_gate_inp_shexp.weight";

// Tensors that are read as parts of the configuration.
constexpr std::string_view kRopeTensors[] = {"rope_freqs.weight", "rope_factors_long.weight",
                                             "rope_factors_short.weight"};

// Returns, for example, "blk.3." of "blk.3.attn_k_b.weight" if `part` is "attn_k_b.weight"; nullopt
// if the tensor is another part.
std::optional<std::string_view> layer_of(std::string_view name, std::string_view part) {
  if (!name.starts_with("blk.") || !name.ends_with(part)) return std::nullopt;
  const std::string_view layer = name.substr(0, name.size() - part.size());
  return layer.ends_with('.') ? std::optional(layer) : std::nullopt;
}

// The number of the tensor's block: 61 of "blk.61.nextn.eh_proj.weight". A number above every
// model's becomes 2 * kMaxLayers. A tensor in no block has -1.
int64_t block_of(std::string_view name) {
  constexpr std::string_view kPrefix = "blk.";
  if (!name.starts_with(kPrefix)) return -1;
  int64_t block = 0;
  for (const char digit : name.substr(kPrefix.size())) {
    if (digit < '0' || digit > '9') break;
    block = std::min<int64_t>(block * 10 + (digit - '0'), int64_t{2} * kMaxLayers);
  }
  return block;
}

// Stores the numbers of a block in `out`, from element `first` on.
void store(std::span<const float> block, DType dtype, std::byte* out, int64_t first) {
  uint16_t* const halves = reinterpret_cast<uint16_t*>(out) + first;
  if (dtype == DType::kF32) {
    std::ranges::copy(block, reinterpret_cast<float*>(out) + first);
  } else if (dtype == DType::kF16) {
    std::ranges::transform(block, halves, [](float x) { return f32_to_f16(x); });
  } else {
    std::ranges::transform(block, halves, [](float x) { return f32_to_bf16(x); });
  }
}

// Expands rows [first, last).
void expand_rows(const BlockMatrix& matrix, float addend, int64_t first, int64_t last,
                 const TensorView& out) {
  const GgufBlockType& type = *matrix.type;
  std::vector<float> block(static_cast<size_t>(type.block_elements));
  for (int64_t row = first; row < last; ++row) {
    const std::byte* bytes = matrix.row(row);
    for (int64_t i = 0; i < matrix.blocks_per_row(); ++i) {
      dequantize(type, bytes + i * type.block_bytes, block.data());
      for (float& value : block) value += addend;
      store(block, out.dtype, out.as<std::byte>(), row * matrix.shape[1] + i * type.block_elements);
    }
  }
}

// Makes `threads` on first use.
void expand(const BlockMatrix& matrix, float addend, const TensorView& out,
            std::optional<ThreadPool>& threads) {
  constexpr int64_t kElementsPerTask = 1 << 18;
  const int64_t rows = matrix.shape[0];
  const int64_t task_rows = std::max<int64_t>(1, kElementsPerTask / matrix.shape[1]);
  const int64_t num_tasks = ceil_div(rows, task_rows);
  if (num_tasks == 1) return expand_rows(matrix, addend, 0, rows, out);
  if (!threads) threads.emplace(num_usable_cpus());
  threads->parallel_for(num_tasks, [&](int64_t task) {
    expand_rows(matrix, addend, task * task_rows, std::min(rows, (task + 1) * task_rows), out);
  });
}

// The matrix of a whole tensor, [all other dimensions, columns].
BlockMatrix flat_matrix(const GgufTensor& tensor) {
  const Shape shape(tensor.shape);
  const int64_t columns = shape[shape.rank() - 1];
  BlockMatrix matrix;
  matrix.type = tensor.type;
  matrix.bytes = tensor.bytes.data();
  matrix.shape = {shape.num_elements() / columns, columns};
  return matrix;
}

// Writes, by head, the rows of keys and then the rows of values. keys: [heads, columns, key_rows],
// values: [heads, value_rows, columns].
template <typename T>
void join_latent(const T* keys, const T* values, int64_t num_heads, const MlaConfig& mla, T* out) {
  const int64_t columns = mla.kv_lora_rank;
  for (int64_t head = 0; head < num_heads; ++head) {
    for (int64_t row = 0; row < mla.nope_head_dim; ++row) {
      for (int64_t i = 0; i < columns; ++i) {
        *out++ = keys[(head * columns + i) * mla.nope_head_dim + row];
      }
    }
    const int64_t count = mla.v_head_dim * columns;
    out = std::copy_n(values + head * count, count, out);
  }
}

// The elements [first, count) are `num_tiles` tiles, each with one chunk per rank. Returns [0,
// first), then the chunks of rank 0, then the chunks of rank 1, and so on.
std::vector<Slice> chunks_by_rank(int64_t first, int64_t count, int num_tiles, int num_ranks) {
  std::vector<Slice> chunks = {{0, first}};
  const int64_t chunk = (count - first) / (int64_t{num_tiles} * num_ranks);
  for (int rank = 0; rank < num_ranks; ++rank) {
    for (int tile = 0; tile < num_tiles; ++tile) {
      chunks.push_back({first + (int64_t{tile} * num_ranks + rank) * chunk, chunk});
    }
  }
  return chunks;
}

// Copies `rows` and `columns` of a matrix; empty: all of them.
void copy_parts(const BlockMatrix& matrix, std::span<const Slice> rows,
                std::span<const Slice> columns, std::byte* out) {
  const Slice all_rows[] = {{0, matrix.shape[0]}};
  const Slice all_columns[] = {{0, matrix.shape[1]}};
  if (rows.empty()) rows = all_rows;
  if (columns.empty()) columns = all_columns;
  const auto bytes_of = [&](int64_t elements) {
    return elements / matrix.type->block_elements * matrix.type->block_bytes;
  };
  for (const Slice& run : rows) {
    for (int64_t row = run.first; row < run.first + run.count; ++row) {
      for (const Slice& part : columns) {
        out = std::copy_n(matrix.row(row) + bytes_of(part.first), bytes_of(part.count), out);
      }
    }
  }
}

// Undoes GgufChanges::is_rate. Returns false if a number is not -exp(x) of any x.
bool take_logarithms(const TensorView& rates) {
  auto* const x = rates.as<float>();
  for (int64_t i = 0; i < rates.shape.num_elements(); ++i) {
    if (!(x[i] <= 0.0F) || !std::isfinite(x[i])) return false;
    x[i] = std::log(-x[i]);
  }
  return true;
}

}  // namespace

GgufWeights::GgufWeights(GgufModel gguf, const ModelConfig& config,
                         const GgufArchitecture& architecture, int num_ranks)
    : gguf_(std::move(gguf)),
      config_(config),
      num_ranks_(num_ranks),
      matrix_dtype_(gguf_weight_dtype(gguf_)),
      names_(architecture, decoder_config(config)) {
  const DecoderConfig& decoder = decoder_config(config_);
  const int64_t q_rows = int64_t{decoder.num_heads} * decoder.head_dim;
  const int64_t kv_rows = int64_t{decoder.num_kv_heads} * decoder.head_dim;
  if (architecture.deltas != GgufDeltas::kNone) {
    fused_.push_back({"attn_q.",
                      {{"self_attn.q_proj.", q_rows}, {"self_attn.gate_proj.", q_rows}},
                      decoder.num_heads});
  } else {
    fused_.push_back({"attn_qkv.",
                      {{"self_attn.q_proj.", q_rows},
                       {"self_attn.k_proj.", kv_rows},
                       {"self_attn.v_proj.", kv_rows}}});
  }
  if (decoder.convs) {
    const int64_t channels = config_.hidden_size;
    fused_.push_back(
        {"shortconv.in_proj.",
         {{"conv.b_proj.", channels}, {"conv.g_proj.", channels}, {"conv.x_proj.", channels}}});
  }
  if (architecture.fuses_gate_up) {
    const int64_t inner = decoder.intermediate_size;
    fused_.push_back({"ffn_up.", {{"mlp.gate_proj.", inner}, {"mlp.up_proj.", inner}}});
  }
  if (decoder.deltas) add_delta_rows(decoder.deltas->shape, architecture.deltas);
}

void GgufWeights::add_delta_rows(const DeltaNetShape& shape, GgufDeltas order) {
  const int64_t keys = int64_t{shape.num_k_heads} * shape.k_dim;
  std::vector<RowsPart> qkv = {{"linear_attn.q_proj.", keys},
                               {"linear_attn.k_proj.", keys},
                               {"linear_attn.v_proj.", shape.width()}};
  fused_.push_back({"attn_qkv.", qkv});
  if (order == GgufDeltas::kTiled) return;
  qkv.push_back({"linear_attn.in_proj_z.", shape.width()});
  fused_.push_back({"ssm_in.", qkv, shape.num_k_heads});  // in older files
  fused_.push_back({"ssm_ba.",
                    {{"linear_attn.in_proj_b.", shape.num_v_heads},
                     {"linear_attn.in_proj_a.", shape.num_v_heads}},
                    shape.num_k_heads});
}

Result<std::unique_ptr<GgufWeights>> GgufWeights::open(GgufModel gguf, const ModelConfig& config,
                                                       std::optional<DType> plain, int num_ranks) {
  QUIRE_ASSIGN_OR_RETURN(const GgufArchitecture* const architecture, gguf_architecture(gguf));
  std::unique_ptr<GgufWeights> weights(
      new GgufWeights(std::move(gguf), config, *architecture, num_ranks));
  weights->plain_ = plain;
  const int64_t num_blocks = config.num_layers + num_gguf_mtp_layers(weights->gguf_, *architecture);
  int num_skipped = 0;
  for (const GgufTensor* tensor : weights->gguf_.tensors()) {
    const int64_t block = block_of(tensor->name);
    if (block >= num_blocks) {
      return invalid_argument(fmt::format(
          "[gguf] {}: tensor {}; got a block after the {} of metadata \"{}.block_count\", expected "
          "none: the metadata is damaged; download the file again",
          weights->gguf_.source(), quote_name(tensor->name), num_blocks, architecture->name));
    }
    if (block >= config.num_layers) {
      ++num_skipped;
      continue;
    }
    QUIRE_RETURN_IF_ERROR(weights->add_tensor(*tensor));
  }
  if (num_skipped > 0) {
    log_info(
        "[gguf] {} tensors of the blocks that predict further tokens, after the model's {} "
        "layers, are skipped",
        num_skipped, config.num_layers);
  }
  return weights;
}

Status GgufWeights::add_tensor(const GgufTensor& tensor) {
  if (std::ranges::find(kRopeTensors, tensor.name) != std::end(kRopeTensors)) return {};
  const DecoderConfig& decoder = decoder_config(config_);
  for (const std::string_view suffix : {"weight", "bias"}) {
    for (const FusedRows& fused : fused_) {
      const auto layer = layer_of(tensor.name, fmt::format("{}{}", fused.file, suffix));
      if (layer) return add_rows(tensor, *layer, fused, suffix);
    }
  }
  if (decoder.mla) {
    if (const auto layer = layer_of(tensor.name, kLatentKeys)) return add_latent(tensor, *layer);
    if (layer_of(tensor.name, kLatentValues)) return {};  // added with the keys
  }
  if (decoder.moe) {
    QUIRE_ASSIGN_OR_RETURN(const bool is_of_experts, add_if_of_experts(tensor));
    if (is_of_experts) return {};
  }
  const std::string name = names_.in_checkpoint(tensor.name);
  Entry entry = {.tensor = &tensor, .bytes = tensor.bytes, .shape = Shape(tensor.shape)};
  const bool is_short = decoder.convs && layer_of(tensor.name, kShortConv);
  if (is_short || (decoder.deltas && layer_of(tensor.name, kDeltaConv))) {
    const int64_t channels = is_short ? config_.hidden_size : decoder.deltas->shape.num_channels();
    const int64_t kernel = is_short ? decoder.convs->kernel : decoder.deltas->shape.kernel;
    QUIRE_RETURN_IF_ERROR(check_shape(tensor, {channels, kernel}));
    entry.shape = {channels, 1, kernel};
  }
  if (layer_of(tensor.name, kSharedGate) && entry.shape.rank() == 1) {
    entry.shape = {1, entry.shape[0]};
  }
  entry.changes = names_.changes(name);
  entry.keeps_type = keeps_gguf_type(tensor);
  if (entry.changes.paired_rows > 0 || entry.changes.is_rate) {
    QUIRE_RETURN_IF_ERROR(check_divisible(tensor));
  }
  return add_entry(name, entry);
}

Result<bool> GgufWeights::add_if_of_experts(const GgufTensor& tensor) {
  const int64_t inner = decoder_config(config_).moe->intermediate_size;
  const int64_t hidden = config_.hidden_size;
  for (const std::string_view suffix : {"weight", "bias"}) {
    const auto layer = [&](std::string_view stack) {
      return layer_of(tensor.name, fmt::format("{}{}", stack, suffix));
    };
    const auto add = [&](std::string_view stack, int64_t rows, int64_t columns,
                         const Slice& slice) -> Status {
      const std::string name = names_.in_checkpoint(
          fmt::format("{}{}{}", tensor.name.substr(0, tensor.name.rfind("ffn_")), stack, suffix));
      const bool is_matrix = suffix == "weight";
      return add_experts(tensor, name, is_matrix ? Shape{rows, columns} : Shape{rows}, slice);
    };
    if (layer(kGateUpExperts)) {
      QUIRE_RETURN_IF_ERROR(add(kGateExperts, 2 * inner, hidden, {0, inner}));
      QUIRE_RETURN_IF_ERROR(add(kUpExperts, 2 * inner, hidden, {inner, inner}));
    } else if (layer(kDownExperts)) {
      QUIRE_RETURN_IF_ERROR(add(kDownExperts, hidden, inner, {0, hidden}));
    } else if (layer(kGateExperts)) {
      QUIRE_RETURN_IF_ERROR(add(kGateExperts, inner, hidden, {0, inner}));
    } else if (layer(kUpExperts)) {
      QUIRE_RETURN_IF_ERROR(add(kUpExperts, inner, hidden, {0, inner}));
    } else {
      continue;
    }
    return true;
  }
  return false;
}

Status GgufWeights::check_divisible(const GgufTensor& tensor) const {
  if (tensor.shape.size() != 1 || tensor.type->plain) return {};
  return refuse_blocks(tensor);
}

Status GgufWeights::refuse_blocks(const GgufTensor& tensor) const {
  return unimplemented(fmt::format(
      "[gguf] {}: tensor {}; got a vector in blocks of {}, expected f32, f16 or bf16, "
      "because its numbers are reordered or divided: convert the model again with plain biases",
      gguf_.source(), quote_name(tensor.name), tensor.type->name));
}

Status GgufWeights::add_rows(const GgufTensor& tensor, std::string_view layer,
                             const FusedRows& fused, std::string_view suffix) {
  QUIRE_RETURN_IF_ERROR(check_divisible(tensor));
  const bool is_matrix = suffix == "weight";
  int64_t num_rows = 0;
  for (const RowsPart& part : fused.parts) num_rows += part.num_rows;
  QUIRE_RETURN_IF_ERROR(
      check_shape(tensor, is_matrix ? Shape{num_rows, config_.hidden_size} : Shape{num_rows}));
  const int64_t row_bytes = std::ssize(tensor.bytes) / num_rows;
  constexpr std::string_view kBlock = "blk.";
  int64_t first = 0;  // in the first group
  for (const RowsPart& part : fused.parts) {
    const std::string name =
        fmt::format("model.layers.{}{}{}", layer.substr(kBlock.size()), part.name, suffix);
    Entry entry = {
        .tensor = &tensor,
        .bytes = tensor.bytes,
        .shape = is_matrix ? Shape{part.num_rows, config_.hidden_size} : Shape{part.num_rows}};
    const int64_t count = part.num_rows / fused.num_groups;
    if (fused.num_groups == 1) {
      entry.bytes = tensor.bytes.subspan(static_cast<size_t>(first * row_bytes),
                                         static_cast<size_t>(count * row_bytes));
    } else {
      for (int group = 0; group < fused.num_groups; ++group) {
        entry.rows.push_back({group * (num_rows / fused.num_groups) + first, count});
      }
    }
    entry.changes = names_.changes(name);
    QUIRE_RETURN_IF_ERROR(add_entry(name, std::move(entry)));
    first += count;
  }
  return {};
}

Status GgufWeights::order_heads(const std::string& name, Entry& entry) const {
  constexpr std::string_view kRows[] = {
      "v_proj.weight", "in_proj_z.weight", "in_proj_b.weight", "in_proj_a.weight",
      "A_log",         "dt_bias"};
  const std::optional<DeltaNetConfig>& deltas = decoder_config(config_).deltas;
  const size_t net = name.find(".linear_attn.");
  if (net == std::string::npos || !deltas || !deltas->shape.is_tiled || num_ranks_ <= 1) return {};
  const DeltaNetShape& shape = deltas->shape;
  const std::string_view part = std::string_view(name).substr(net + 13);
  if (std::ranges::find(kRows, part) != std::end(kRows)) {
    QUIRE_RETURN_IF_ERROR(check_divisible(*entry.tensor));
    entry.rows = chunks_by_rank(0, entry.shape[0], shape.group(), num_ranks_);
  } else if (part == "conv1d.weight") {
    const int64_t channels = shape.num_channels();
    entry.rows = chunks_by_rank(channels - shape.width(), channels, shape.group(), num_ranks_);
  } else if (part == "out_proj.weight") {
    const int64_t block = entry.tensor->type->block_elements;
    entry.columns = chunks_by_rank(0, shape.width(), shape.group(), num_ranks_);
    if (entry.columns.back().count % block != 0) {
      return unimplemented(fmt::format(
          "[gguf] {}: tensor {}; got blocks of {} columns, expected a divisor of the {} that a "
          "rank has of each tile of value heads: set `tensor_parallel_size` to a smaller number",
          gguf_.source(), quote_name(entry.tensor->name), block, entry.columns.back().count));
    }
  }
  return {};
}

Status GgufWeights::add_experts(const GgufTensor& tensor, const std::string& stack,
                                const Shape& each, const Slice& rows) {
  const int64_t num_experts = decoder_config(config_).moe->routing.num_experts;
  const bool is_matrix = each.rank() == 2;
  if (!is_matrix && !tensor.type->plain) return refuse_blocks(tensor);
  QUIRE_RETURN_IF_ERROR(check_shape(
      tensor, is_matrix ? Shape{num_experts, each[0], each[1]} : Shape{num_experts, each[0]}));
  const auto row_bytes = tensor.bytes.size() / static_cast<size_t>(num_experts * each[0]);
  Entry entry = {.tensor = &tensor,
                 .bytes = {},
                 .shape = is_matrix ? Shape{rows.count, each[1]} : Shape{rows.count}};
  for (int64_t expert = 0; expert < num_experts; ++expert) {
    const auto first = static_cast<size_t>(expert * each[0] + rows.first);
    entry.bytes =
        tensor.bytes.subspan(first * row_bytes, static_cast<size_t>(rows.count) * row_bytes);
    QUIRE_RETURN_IF_ERROR(add_entry(expert_name(stack, expert), entry));
  }
  return {};
}

Status GgufWeights::add_latent(const GgufTensor& keys, std::string_view layer) {
  const DecoderConfig& decoder = decoder_config(config_);
  const MlaConfig& mla = *decoder.mla;
  const std::string joined = fmt::format("{}{}", layer, kLatent);
  if (gguf_.tensor(joined) != nullptr) return {};  // the file has the matrix in both ways
  const std::string values_name = fmt::format("{}{}", layer, kLatentValues);
  const GgufTensor* const values = gguf_.tensor(values_name);
  if (values == nullptr) {
    return not_found(
        fmt::format("[gguf] {}: no tensor {} beside {}; expected both: the file is "
                    "incomplete",
                    gguf_.source(), quote_name(values_name), quote_name(keys.name)));
  }
  const int64_t num_heads = decoder.num_heads;
  QUIRE_RETURN_IF_ERROR(check_shape(keys, {num_heads, mla.kv_lora_rank, mla.nope_head_dim}));
  QUIRE_RETURN_IF_ERROR(check_shape(*values, {num_heads, mla.v_head_dim, mla.kv_lora_rank}));
  const int64_t head_rows = int64_t{mla.nope_head_dim} + mla.v_head_dim;
  Entry entry = {
      .tensor = &keys, .bytes = keys.bytes, .shape = {num_heads * head_rows, mla.kv_lora_rank}};
  entry.latent_values = values;
  return add_entry(names_.in_checkpoint(joined), entry);
}

Status GgufWeights::add_entry(const std::string& name, Entry entry) {
  QUIRE_RETURN_IF_ERROR(order_heads(name, entry));
  if (entries_.emplace(name, entry).second) return {};
  return invalid_argument(
      fmt::format("[gguf] {}: tensor {}; got two tensors for {}, expected one: "
                  "convert the model again",
                  gguf_.source(), quote_name(entry.tensor->name), quote_name(name)));
}

Status GgufWeights::check_shape(const GgufTensor& tensor, const Shape& expected) const {
  const Shape shape(tensor.shape);
  return shape == expected ? Status() : wrong_shape(tensor, shape, expected);
}

Status GgufWeights::wrong_shape(const GgufTensor& tensor, const Shape& got,
                                const Shape& expected) const {
  return invalid_argument(fmt::format(
      "[gguf] {}: tensor {}; got shape {}, expected {} by the metadata: the file is damaged; "
      "download it again",
      gguf_.source(), quote_name(tensor.name), shape_text(got), shape_text(expected)));
}

DType GgufWeights::dtype_of(const Entry& entry) const {
  if (entry.changes.is_rate) return DType::kF32;
  if (plain_) return *plain_;
  const std::optional<DType> plain = entry.tensor->type->plain;
  if (entry.shape.rank() > 1 && !(entry.keeps_type && plain)) return matrix_dtype_;
  return plain && entry.changes.addend == 0.0F ? *plain : DType::kF32;
}

bool GgufWeights::is_in_place(const Entry& entry) const {
  const DType dtype = dtype_of(entry);
  return entry.changes.paired_rows == 0 && entry.changes.addend == 0.0F &&
         entry.latent_values == nullptr && entry.rows.empty() && entry.columns.empty() &&
         !entry.changes.is_rate && entry.tensor->type->plain == dtype &&
         reinterpret_cast<uintptr_t>(entry.bytes.data()) % dtype_bytes(dtype) == 0;
}

Result<BlockMatrix> GgufWeights::matrix_of(std::string_view name, const Entry& entry) {
  // A vector that is reordered per head is a matrix of one column.
  const bool is_column =
      (entry.changes.paired_rows > 0 || !entry.rows.empty()) && entry.shape.rank() == 1;
  const int64_t columns = is_column ? 1 : entry.shape[entry.shape.rank() - 1];
  BlockMatrix matrix;
  matrix.type = entry.tensor->type;
  matrix.bytes = entry.bytes.data();
  matrix.shape = {entry.shape.num_elements() / columns, columns};
  matrix.paired_rows = entry.changes.paired_rows;
  if (entry.rows.empty() && entry.columns.empty()) return matrix;
  Buffer& parts = parts_[std::string(name)];
  // The copy is made once, because another reader may still use it.
  if (parts.data() == nullptr) {
    const int64_t row_bytes = matrix.blocks_per_row() * matrix.type->block_bytes;
    QUIRE_ASSIGN_OR_RETURN(parts, Buffer::host(static_cast<size_t>(matrix.shape[0] * row_bytes)));
    BlockMatrix whole = matrix;
    whole.shape = {std::ssize(entry.bytes) / row_bytes, columns};
    copy_parts(whole, entry.rows, entry.columns, static_cast<std::byte*>(parts.data()));
  }
  matrix.bytes = static_cast<const std::byte*>(parts.data());
  return matrix;
}

Result<const GgufWeights::Entry*> GgufWeights::find(std::string_view name,
                                                    const Shape& expected) const {
  const auto found = entries_.find(std::string(name));
  if (found == entries_.end()) {
    return not_found(fmt::format(
        "[gguf] {}: no tensor {} for {}; expected one: the file is of another model "
        "or incomplete",
        gguf_.source(), quote_name(names_.in_file(name).value_or("")), quote_name(name)));
  }
  const Entry& entry = found->second;
  const int paired_rows = entry.changes.paired_rows;
  if (entry.shape != expected ||
      (paired_rows > 0 && (paired_rows % 2 != 0 || expected[0] % paired_rows != 0))) {
    return wrong_shape(*entry.tensor, entry.shape, expected);
  }
  return &entry;
}

Status GgufWeights::expand_latent(const Entry& entry, const TensorView& out) {
  const DecoderConfig& decoder = decoder_config(config_);
  const auto part_of = [&](const GgufTensor& tensor) -> Result<Tensor> {
    const BlockMatrix matrix = flat_matrix(tensor);
    QUIRE_ASSIGN_OR_RETURN(Tensor part, Tensor::host(matrix.shape, out.dtype));
    expand(matrix, 0.0F, part.view, threads_);
    return part;
  };
  QUIRE_ASSIGN_OR_RETURN(const Tensor keys, part_of(*entry.tensor));
  QUIRE_ASSIGN_OR_RETURN(const Tensor values, part_of(*entry.latent_values));
  const auto join = [&](auto* to) {
    using T = std::remove_pointer_t<decltype(to)>;
    join_latent(keys.view.as<T>(), values.view.as<T>(), decoder.num_heads, *decoder.mla, to);
  };
  out.dtype == DType::kF32 ? join(out.as<float>()) : join(out.as<uint16_t>());
  return {};
}

Result<TensorView> GgufWeights::tensor(std::string_view name, const Shape& expected) {
  QUIRE_ASSIGN_OR_RETURN(const Entry* const entry, find(name, expected));
  TensorView view;
  view.dtype = dtype_of(*entry);
  view.shape = expected;
  if (is_in_place(*entry)) {
    view.data = const_cast<std::byte*>(entry->bytes.data());
    return view;
  }
  QUIRE_ASSIGN_OR_RETURN(Buffer buffer, Buffer::host(view.num_bytes()));
  view.data = buffer.data();
  if (entry->latent_values != nullptr) {
    QUIRE_RETURN_IF_ERROR(expand_latent(*entry, view));
  } else {
    QUIRE_ASSIGN_OR_RETURN(const BlockMatrix matrix, matrix_of(name, *entry));
    expand(matrix, -entry->changes.addend, view, threads_);
  }
  if (entry->changes.is_rate && !take_logarithms(view)) {
    return invalid_argument(
        fmt::format("[gguf] {}: tensor {}; got a number above 0 or not finite, expected rates of "
                    "decay, which are negative: the file is damaged; download it again",
                    gguf_.source(), quote_name(entry->tensor->name)));
  }
  expanded_.insert_or_assign(std::string(name), std::move(buffer));
  return view;
}

const GgufBlockType* GgufWeights::block_type(std::string_view name) const {
  const auto found = entries_.find(std::string(name));
  if (found == entries_.end() || plain_) return nullptr;
  const Entry& entry = found->second;
  const bool is_matrix = entry.shape.rank() == 2 && entry.latent_values == nullptr;
  const GgufBlockType* const type = entry.tensor->type;
  return is_matrix && entry.changes.addend == 0.0F && !type->plain ? type : nullptr;
}

Result<BlockMatrix> GgufWeights::blocks(std::string_view name, const Shape& expected) {
  if (block_type(name) == nullptr) return WeightSource::blocks(name, expected);
  QUIRE_ASSIGN_OR_RETURN(const Entry* const entry, find(name, expected));
  return matrix_of(name, *entry);
}

bool GgufWeights::has(std::string_view name) const {
  return entries_.contains(std::string(name));
}

std::optional<DType> GgufWeights::dtype_of(std::string_view name) const {
  const auto found = entries_.find(std::string(name));
  if (found == entries_.end()) return std::nullopt;
  return dtype_of(found->second);
}

std::optional<Shape> GgufWeights::shape_of(std::string_view name) const {
  const auto found = entries_.find(std::string(name));
  return found == entries_.end() ? std::nullopt : std::optional(found->second.shape);
}

void GgufWeights::release(std::string_view name) {
  const std::string key(name);
  expanded_.erase(key);
  parts_.erase(key);
  const auto found = entries_.find(key);
  if (found == entries_.end()) return;
  const Entry& entry = found->second;
  gguf_.drop_pages(*entry.tensor, entry.bytes);
  if (entry.latent_values != nullptr) {
    gguf_.drop_pages(*entry.latent_values, entry.latent_values->bytes);
  }
}

std::vector<std::string> GgufWeights::names() const {
  std::vector<std::string> all;
  for (const auto& [name, entry] : entries_) all.push_back(name);
  std::ranges::sort(all);
  return all;
}

}  // namespace quire
