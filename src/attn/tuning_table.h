// The times that `quire tune` measured, and the choice of a backend based on them. Host only. A
// table's file is CSV:
//   phase,num_heads,num_kv_heads,head_dim,page_size,q_dtype,kv_dtype,num_reqs,q_len,kv_len,lengths,
//   backend,us                                                                        (one line)
//   decode,32,8,128,16,bf16,bf16,64,1,4096,full,xqa,71.25
// Comment lines begin with '#'.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "attn/backend.h"

namespace quire {

// The batch for which a time was measured. Every request has q_len query tokens. Its context has
// kv_len positions or, if `ragged`, a length drawn uniformly from [q_len, kv_len].
struct TuningPoint {
  Phase phase = Phase::kDecode;
  int num_heads = 0;
  int num_kv_heads = 0;
  int head_dim = 0;
  int page_size = 0;
  DType q = DType::kF32;
  DType kv = DType::kF32;
  int num_reqs = 0;
  int q_len = 0;
  int kv_len = 0;
  bool ragged = false;

  friend bool operator==(const TuningPoint&, const TuningPoint&) = default;
};

// Returns "full" or "ragged".
std::string_view lengths_name(bool ragged);

// With a window, a decode step reads at most `window` positions, so its kv_len is at most `window`.
TuningPoint tuning_point(const AttentionShape& shape, Phase phase, int num_reqs, int q_len,
                         int kv_len, bool ragged = false);

struct TuningRow {
  TuningPoint point;
  std::string backend;  // one of backend_names()
  double us = 0.0;      // microseconds per call
};

class TuningTable {
 public:
  struct Time {
    std::string backend;
    double us = 0.0;
  };
  struct MeasuredPoint {
    TuningPoint point;
    std::vector<Time> times;  // one per backend, in the order of the table's rows

    const Time* find(std::string_view backend) const;
  };
  struct Best {
    size_t candidate = 0;                     // index into the candidates
    const MeasuredPoint* measured = nullptr;  // the point that determined the choice; null: not
                                              // measured
  };

  TuningTable() = default;
  // A later row replaces an earlier one with the same point and backend.
  explicit TuningTable(std::span<const TuningRow> rows);

  // `name` appears in errors. An error is one line, with the line number and the field.
  static Result<TuningTable> parse(std::string_view csv, std::string_view name);
  // Also fails for a table without rows.
  static Result<TuningTable> read(const std::string& path);

  // Returns the fastest candidate of the nearest point at which any candidate was measured.
  // Candidates within 1 % of the fastest count as equal, and the first of them wins, so that
  // measurement noise does not decide. Only points of the same phase are considered. Nearness is
  // compared in this order: (1) for decode, whether there is one query token or several; (2) the
  // types; (3) head_dim, query heads per KV head, page size; (4) raggedness; (5) the ratios of the
  // sizes. If no candidate was measured in this phase, returns the first candidate. The result does
  // not depend on the order of the table's rows. `candidates` must not be empty.
  Best best(const TuningPoint& point, std::span<const std::string_view> candidates) const;
  // Returns the measured points nearest to `point` in phase, kind of query length (one token or
  // several), types and shape. For points that differ from `point` only in sizes and raggedness,
  // best() of the returned table gives the same result, and compares fewer points.
  TuningTable restricted_to(const TuningPoint& point,
                            std::span<const std::string_view> candidates) const;

  std::span<const MeasuredPoint> points() const { return points_; }
  std::vector<TuningRow> rows() const;

 private:
  std::vector<MeasuredPoint> points_;  // in ascending order of the points
};

// The built-in table for the device, which is the output of `quire tune` on it. Empty if there is
// none.
TuningTable builtin_table(const Device& device);

std::string to_csv(std::span<const TuningRow> rows);

}  // namespace quire
