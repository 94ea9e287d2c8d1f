// The times that `quire tune` measured, and the choice of a backend by them. Host only. A table's
// file is CSV:
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

// The batch that a time was measured for. Every request has q_len query tokens. Its context has
// kv_len positions, or, if `ragged`, a length drawn uniformly from [q_len, kv_len].
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

TuningPoint tuning_point(const AttentionShape& shape, Phase phase, int num_reqs, int q_len,
                         int kv_len, bool ragged = false);

struct TuningRow {
  TuningPoint point;
  std::string backend;  // one of backend_names()
  double us = 0.0;      // microseconds per call
};

class TuningTable {
 public:
  // The time of one backend at a point; a cell lists them in the order in which they were given.
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
    const Cell* cell = nullptr;  // the measurements behind the choice; null: none
  };

  TuningTable() = default;
  // A later row replaces an earlier one with the same point and backend.
  explicit TuningTable(std::span<const TuningRow> rows);

  // `name` appears in errors, which are one line and name the line's number and field.
  static Result<TuningTable> parse(std::string_view csv, std::string_view name);
  static Result<TuningTable> read(const std::string& path);

  // Returns the fastest candidate of the nearest cell in which any candidate was measured.
  // Candidates within 1 % of the fastest count as equal, and the first of them wins, so that
  // measurement noise does not decide. Only cells of the same phase count. Nearness compares, in
  // this order: for decode, one or several query tokens; the types; head_dim, group and page size;
  // raggedness; the ratios of requests, q_len and kv_len. Without such a cell, returns the first
  // candidate. The result does not depend on the order of the table's rows. `candidates` must not
  // be empty.
  Best best(const TuningPoint& point, std::span<const std::string_view> candidates) const;
  // Returns the cells that decide for every point with this point's phase, shape, types and kind of
  // query length (one token or several), whatever its sizes: best() on them equals best() on the
  // whole table. A step then compares 135 cells instead of all cells of a device.
  TuningTable narrowed(const TuningPoint& point,
                       std::span<const std::string_view> candidates) const;

  std::span<const Cell> cells() const { return cells_; }

 private:
  std::vector<Cell> cells_;  // in ascending order of the points
};

// The built-in table for the device: output of `quire tune` on the devices that were measured.
// Empty if the device was not measured.
TuningTable builtin_table(const Device& device);

std::string to_csv(std::span<const TuningRow> rows);

}  // namespace quire
