// The times that `quire tune` measured, and which backend they speak for. Host only; as a file CSV:
//   phase,num_heads,num_kv_heads,head_dim,page_size,q_dtype,kv_dtype,num_reqs,q_len,kv_len,lengths,
//   backend,us                                                                        (one line)
//   decode,32,8,128,16,bf16,bf16,64,1,4096,full,xqa,71.25
// with '#' before comments.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "attn/backend.h"

namespace quire {

// The batch that a time was measured for. Every request has q_len query tokens, and kv_len
// positions unless the lengths are ragged: uniform in [q_len, kv_len].
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

// "full" or "ragged".
std::string_view lengths_name(bool ragged);

TuningPoint tuning_point(const AttentionShape& shape, Phase phase, int num_reqs, int q_len,
                         int kv_len, bool ragged = false);

struct TuningRow {
  TuningPoint point;
  std::string backend;  // one of backend_names()
  double us = 0.0;      // microseconds a call
};

class TuningTable {
 public:
  // Times of the backends at one point, in the order in which they were given.
  struct Time {
    std::string backend;
    double us = 0.0;
  };
  struct Cell {
    TuningPoint point;
    std::vector<Time> times;

    const Time* find(std::string_view backend) const;
  };
  struct Best {
    size_t candidate = 0;        // index into the candidates
    const Cell* cell = nullptr;  // what speaks for it; null: nothing was measured
  };

  TuningTable() = default;
  // A later row replaces an earlier one of the same point and backend.
  explicit TuningTable(std::span<const TuningRow> rows);

  // `name` stands in errors, which are one line and name the line's number and field.
  static Result<TuningTable> parse(std::string_view csv, std::string_view name);
  static Result<TuningTable> read(const std::string& path);

  // The fastest candidate of the nearest cell in which any candidate was measured; of those within
  // 1 % of it the first: the noise of a measurement decides nothing.
  // Nearest: of the same phase; then, for decode, of one query token or of several alike; then of
  // the same types; then by head_dim, group and page size; then ragged or full alike; then by
  // requests, q_len and kv_len, as factors. No such cell: the first candidate.
  // Depends on what the table says, not on the order of its rows; candidates: at least one.
  Best best(const TuningPoint& point, std::span<const std::string_view> candidates) const;
  // The cells that decide for every point of this one's phase, shape, types and number of query
  // tokens (one or several), whatever its sizes: best() of it is best() of the whole table. A step
  // looks at 135 cells so, not at all of a device's.
  TuningTable narrowed(const TuningPoint& point,
                       std::span<const std::string_view> candidates) const;

  std::span<const Cell> cells() const { return cells_; }

 private:
  std::vector<Cell> cells_;  // ascending by point
};

std::string to_csv(std::span<const TuningRow> rows);

}  // namespace quire
