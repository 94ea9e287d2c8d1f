#include "support/validate_batch.h"

#include <fmt/format.h>

#include "base/numbers.h"

namespace quire::testing {
namespace {

int q_len_of(const AttentionBatch& batch, int req) {
  return batch.query_start.host[req + 1] - batch.query_start.host[req];
}

Status check_range(const AttentionBatch& batch, Phase phase, int first_req, int first_token) {
  const PhaseRange& range = batch.range(phase);
  const std::string_view name = phase_name(phase);
  if (range.first_req != first_req || range.num_reqs < 0) {
    return internal_error(
        fmt::format("[attention] range {} does not tile the batch; got first_req {}, num_reqs {}, "
                    "expected first_req {}",
                    name, range.first_req, range.num_reqs, first_req));
  }
  const int end_token = batch.query_start.host[first_req + range.num_reqs];
  if (range.first_token != first_token || range.num_tokens != end_token - first_token) {
    return internal_error(fmt::format(
        "[attention] range {} names the wrong tokens; got [{}, +{}), expected [{}, +{})", name,
        range.first_token, range.num_tokens, first_token, end_token - first_token));
  }
  for (int req = first_req; req < first_req + range.num_reqs; ++req) {
    const int q_len = q_len_of(batch, req);
    const bool fits = phase == Phase::kDecode ? q_len == range.max_q_len : q_len <= range.max_q_len;
    if (q_len < 0 || !fits || batch.kv_len_bound[static_cast<size_t>(req)] > range.max_kv_len) {
      return internal_error(fmt::format(
          "[attention] request {} does not fit range {}; got q_len {}, kv_len {}, expected {} {}, "
          "at most {}",
          req, name, q_len, batch.kv_len_bound[static_cast<size_t>(req)],
          phase == Phase::kDecode ? "exactly" : "at most", range.max_q_len, range.max_kv_len));
    }
  }
  return {};
}

Status check_request(const AttentionShape& shape, const AttentionBatch& batch, int req,
                     int64_t num_pages) {
  const int seq_len = batch.seq_lens[req];
  const int bound = batch.kv_len_bound[static_cast<size_t>(req)];
  if (seq_len < 0 || seq_len > bound) {
    return internal_error(fmt::format("[attention] request {} has seq_len {}, expected 0 to {}",
                                      req, seq_len, bound));
  }
  if (seq_len != 0 && shape.causal && seq_len < q_len_of(batch, req)) {
    return internal_error(
        fmt::format("[attention] request {} has seq_len {}, expected 0 or at least its q_len {}",
                    req, seq_len, q_len_of(batch, req)));
  }
  const int64_t used_pages = ceil_div(int64_t{seq_len}, shape.page_size);
  if (used_pages > batch.max_pages) {
    return internal_error(
        fmt::format("[attention] request {} needs {} pages, but a block table row holds {}", req,
                    used_pages, batch.max_pages));
  }
  for (int64_t i = 0; i < used_pages; ++i) {
    const int32_t page = batch.block_table[req * batch.max_pages + i];
    if (page < 0 || page >= num_pages) {
      return internal_error(fmt::format("[attention] request {} page {} is {}, expected 0 to {}",
                                        req, i, page, num_pages - 1));
    }
  }
  return {};
}

}  // namespace

Status validate_batch(const AttentionShape& shape, const AttentionBatch& batch, int64_t num_pages) {
  const int num_reqs = batch.decode.num_reqs + batch.prefill.num_reqs;
  if (batch.kv_len_bound.size() != static_cast<size_t>(num_reqs)) {
    return internal_error(fmt::format("[attention] kv_len_bound has {} entries, expected {}",
                                      batch.kv_len_bound.size(), num_reqs));
  }
  QUIRE_RETURN_IF_ERROR(check_range(batch, Phase::kDecode, 0, 0));
  QUIRE_RETURN_IF_ERROR(
      check_range(batch, Phase::kPrefill, batch.decode.num_reqs, batch.decode.num_tokens));
  for (int req = 0; req < num_reqs; ++req) {
    QUIRE_RETURN_IF_ERROR(check_request(shape, batch, req, num_pages));
  }
  const int64_t num_kv_slots = num_pages * shape.page_size;
  for (int t = 0; batch.kv_slots != nullptr && t < batch.query_start.host[num_reqs]; ++t) {
    if (batch.kv_slots[t] >= num_kv_slots) {
      return internal_error(
          fmt::format("[attention] token {} is written to KV slot {}, expected at "
                      "most {}",
                      t, batch.kv_slots[t], num_kv_slots - 1));
    }
  }
  return {};
}

}  // namespace quire::testing
