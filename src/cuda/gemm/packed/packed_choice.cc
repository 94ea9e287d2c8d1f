#include "cuda/gemm/packed/packed_choice.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/numbers.h"

namespace quire::cuda {
namespace {

// Bytes of unpacked rows. Fewer would divide a product into parts that do not fill all SMs, and
// more would not fit kLibraryBytes, of which CUDA's libraries take 73 MiB.
constexpr int64_t kPackedWorkspaceBytes = int64_t{64} << 20;
constexpr int64_t kUnpackedStep = 256;  // rows, so that few of the products' tiles are incomplete
static_assert(kUnpackedStep <= kMaxTiledRows, "the workspace holds that many rows");
constexpr size_t kCublasAlignment = 16;  // of addresses

PackedProduct part_of(PackedProduct product, int64_t first, int64_t count) {
  product.x = product.x.rows(first, count);
  product.out = product.out.rows(first, count);
  if (product.gated_out.data != nullptr) product.gated_out = product.gated_out.rows(first, count);
  return product;
}

// A part whose outputs begin at an address that cuBLASLt does not support; null: none.
const PackedRows* misaligned_part(const PackedMatrices& w, DType out) {
  for (const PackedRows& part : w.parts()) {
    const auto offset = static_cast<size_t>(part.first_row) * dtype_bytes(out);
    if (offset % kCublasAlignment != 0) return &part;
  }
  return nullptr;
}

}  // namespace

bool has_gates(const PackedMatrices& w) {
  return w.parts().size() == 1 && packed_gemm_gates(w.parts().front());
}

Status PackedGemm::reserve(const PackedMatrices& matrix) {
  const PackedRows* const misaligned = misaligned_part(matrix, DType::kF16);
  if (misaligned != nullptr && !has_warned_) {
    has_warned_ = true;
    log_warning(
        "[ops] quantized matrices of several formats are one product, and one of them begins at "
        "row {}; cuBLASLt expects a multiple of 8. In steps of more than {} tokens another kernel "
        "multiplies such matrices, which is slower",
        misaligned->first_row, kMaxTiledRows);
  }
  const auto row_bytes = static_cast<size_t>(round_up(matrix.num_columns(), kChunkColumns)) * 2;
  const size_t num_bytes = std::max(static_cast<size_t>(kPackedWorkspaceBytes),
                                    static_cast<size_t>(kMaxTiledRows) * row_bytes);
  if (workspace_.num_bytes() >= num_bytes) return {};
  QUIRE_ASSIGN_OR_RETURN(workspace_, device_memory(num_bytes));
  return {};
}

void PackedGemm::run(const PackedProduct& product) {
  run(product, packed_method(product.x.shape[0], can_unpack(product)));
}

void PackedGemm::run(const PackedProduct& product, PackedMethod method) {
  const int64_t num_rows = product.x.shape[0];
  if (method == PackedMethod::kUnpacked) {
    Status status = run_unpacked(product);
    if (!status.ok()) context_.stream->record_error(std::move(status));
  } else {
    const bool has_tiles = method == PackedMethod::kTiles;
    const int64_t step = has_tiles ? kMaxTiledRows : kMaxPackedRows;
    for (int64_t first = 0; first < num_rows; first += step) {
      const PackedProduct part = part_of(product, first, std::min(step, num_rows - first));
      has_tiles ? run_tiles(part) : run_few_rows(part);
    }
    if (has_gates(*product.w)) return;
  }
  if (product.gated_out.data == nullptr || num_rows == 0) return;
  run_gated_mul(context_, Activation::kSilu, product.out, product.gated_out);
}

void PackedGemm::run_few_rows(const PackedProduct& product) {
  TensorView x = product.x;
  const bool is_readable = is_aligned({x.data}, 8);  // the kernel reads 4 numbers at a time
  if (product.w->order() != nullptr || !is_readable) {
    x.data = workspace_.data();
    run_permute_columns(context_, product.x, product.w->order(), x);
  }
  for (const PackedRows& part : product.w->parts()) {
    PackedGemmCall call = {&part, x, product.bias, product.out};
    if (has_gates(*product.w)) call.gated_out = product.gated_out;
    run_packed_gemm(context_, context_.stream->limits().num_sms, call);
  }
}

void PackedGemm::run_tiles(const PackedProduct& product) {
  TensorView x = product.x;
  x.data = workspace_.data();
  const int tokens = packed_tile_tokens(x.shape[0]);
  run_tile_columns(context_, product.x, product.w->order(), tokens, x.data);
  for (const PackedRows& part : product.w->parts()) {
    PackedGemmCall call = {&part, x, product.bias, product.out};
    if (has_gates(*product.w)) call.gated_out = product.gated_out;
    run_packed_tiles(context_,
                     packed_tile_plan(part, x.shape[0], context_.stream->limits().num_sms), call);
  }
}

bool PackedGemm::can_unpack(const PackedProduct& product) const {
  return misaligned_part(*product.w, product.out.dtype) == nullptr &&
         is_aligned({product.x.data, product.out.data}, kCublasAlignment);
}

Status PackedGemm::run_unpacked(const PackedProduct& product) {
  const int64_t width = product.w->num_columns();
  const int64_t fitting = static_cast<int64_t>(workspace_.num_bytes()) / (width * 2);
  const int64_t step = fitting / kUnpackedStep * kUnpackedStep;
  for (const PackedRows& part : product.w->parts()) {
    for (int64_t first = 0; first < part.num_rows; first += step) {
      const int64_t count = std::min(step, part.num_rows - first);
      const TensorView w = {workspace_.data(), product.x.dtype, {count, width}};
      run_unpack_rows(context_, part, first, product.w->order(), w);
      QUIRE_RETURN_IF_ERROR(multiply(product.x, w, product.out, part.first_row + first));
    }
  }
  if (product.bias.data != nullptr) run_add_bias(context_, product.bias, product.out);
  return {};
}

// Columns [first_row, first_row + rows of w) of out = x * w^T.
Status PackedGemm::multiply(const TensorView& x, const TensorView& w, const TensorView& out,
                            int64_t first_row) {
  GemmShape shape;
  shape.n = w.shape[0];
  shape.k = w.shape[1];
  shape.type = shape.weights = x.dtype;
  shape.out = out.dtype;
  shape.out_width = out.shape[1];
  GemmCall call = {.x = x, .w = w, .bias = {}, .out = out};
  call.out.data = out.as<std::byte>() + first_row * static_cast<int64_t>(dtype_bytes(out.dtype));
  return unpacked_.run(*context_.stream, shape, call);
}

}  // namespace quire::cuda
