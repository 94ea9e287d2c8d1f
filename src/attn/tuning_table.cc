#include "attn/tuning_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <tuple>

#include "base/ascii.h"
#include "base/check.h"
#include "base/file.h"
#include "base/text_input.h"
#include "tensor/tensor.h"

namespace quire {
namespace {

constexpr std::string_view kHeader =
    "phase,num_heads,num_kv_heads,head_dim,page_size,q_dtype,kv_dtype,num_reqs,q_len,kv_len,"
    "lengths,backend,us";
constexpr size_t kNumFields = 13;
constexpr size_t kMaxFileBytes = size_t{4} << 20;
constexpr size_t kMaxRows = 20'000;
constexpr double kMaxMicroseconds = 1e9;

// Arrays, because counting the characters for a string_view at compile time exceeds the compiler's
// limit.
constexpr char kH100[] =
#include "attn/tables/h100.inc"
    ;
constexpr char kH200[] =
#include "attn/tables/h200.inc"
    ;

struct BuiltinTable {
  std::string_view device;  // part of the driver's device name
  std::string_view csv;
};
// The entry of the H100 requires HBM3 in the name, because PCIe cards have half the memory
// bandwidth. Those cards are measured at start.
constexpr BuiltinTable kTables[] = {{"H100 80GB HBM3", {kH100, sizeof kH100 - 1}},
                                    {"H200", {kH200, sizeof kH200 - 1}}};

// ---- The file

struct IntField {
  std::string_view name;
  int TuningPoint::*member;
  int max;
};
constexpr auto kIntFields = std::to_array<IntField>({
    {"num_heads", &TuningPoint::num_heads, 4096},
    {"num_kv_heads", &TuningPoint::num_kv_heads, 4096},
    {"head_dim", &TuningPoint::head_dim, 4096},
    {"page_size", &TuningPoint::page_size, 4096},
    {"num_reqs", &TuningPoint::num_reqs, 1 << 20},
    {"q_len", &TuningPoint::q_len, 1 << 24},
    {"kv_len", &TuningPoint::kv_len, 1 << 24},
});

auto order_of(const TuningPoint& p) {
  return std::tuple(p.phase, p.q, p.kv, p.num_heads, p.num_kv_heads, p.head_dim, p.page_size,
                    p.num_reqs, p.q_len, p.kv_len, p.ragged);
}

// Parses one line of a table. Its errors name only the field; the caller adds the line number.
class RowParser {
 public:
  explicit RowParser(std::string_view line) : fields_(split(line, ',', kNumFields + 1)) {
    for (std::string_view& field : fields_) field = trimmed(field);
  }

  Result<TuningRow> parse() {
    TuningRow row;
    if (fields_.size() != kNumFields) {
      return invalid_argument(fmt::format(
          "the number of fields; got {}{}, expected {}", std::min(fields_.size(), kNumFields),
          fields_.size() > kNumFields ? " or more" : "", kNumFields));
    }
    QUIRE_RETURN_IF_ERROR(parse_phase(fields_[0], row.point.phase));
    static constexpr std::array<size_t, kIntFields.size()> kAt = {1, 2, 3, 4, 7, 8, 9};
    for (size_t i = 0; i < kIntFields.size(); ++i) {
      const IntField& field = kIntFields[i];
      QUIRE_RETURN_IF_ERROR(parse_int(field, fields_[kAt[i]], row.point.*field.member));
    }
    QUIRE_RETURN_IF_ERROR(parse_type("q_dtype", fields_[5], row.point.q));
    QUIRE_RETURN_IF_ERROR(parse_type("kv_dtype", fields_[6], row.point.kv));
    QUIRE_RETURN_IF_ERROR(parse_lengths(fields_[10], row.point.ragged));
    QUIRE_RETURN_IF_ERROR(parse_backend(fields_[11], row.backend));
    QUIRE_RETURN_IF_ERROR(parse_time(fields_[12], row.us));
    return row;
  }

 private:
  static Status wrong(std::string_view field, std::string_view got, std::string_view expected) {
    return invalid_argument(
        fmt::format("{}; got {}, expected {}", field, quote_name(got), expected));
  }
  static Status parse_phase(std::string_view text, Phase& phase) {
    for (const Phase known : {Phase::kDecode, Phase::kPrefill}) {
      if (text == phase_name(known)) return phase = known, Status();
    }
    return wrong("phase", text, "decode or prefill");
  }
  static Status parse_int(const IntField& field, std::string_view text, int& value) {
    value = parse_whole<int>(text).value_or(0);
    if (value >= 1 && value <= field.max) return {};
    return wrong(field.name, text, fmt::format("an integer in [1, {}]", field.max));
  }
  static Status parse_type(std::string_view field, std::string_view text, DType& type) {
    const auto known = parse_dtype(text);
    if (!known || *known > DType::kF8E4M3) return wrong(field, text, "f32, f16, bf16 or fp8_e4m3");
    type = *known;
    return {};
  }
  static Status parse_lengths(std::string_view text, bool& ragged) {
    for (const bool known : {false, true}) {
      if (text == lengths_name(known)) return ragged = known, Status();
    }
    return wrong("lengths", text, "full or ragged");
  }
  static Status parse_backend(std::string_view text, std::string& backend) {
    std::vector<std::string_view> names;
    for (const BackendName& known : backend_names()) names.push_back(known.name);
    if (std::ranges::find(names, text) == names.end()) {
      return wrong("backend", text, fmt::format("one of {}", fmt::join(names, ", ")));
    }
    backend = text;
    return {};
  }
  static Status parse_time(std::string_view text, double& us) {
    us = parse_whole<double>(text).value_or(0.0);
    if (us > 0.0 && us <= kMaxMicroseconds) return {};
    return wrong("us", text, "microseconds above 0");
  }

  std::vector<std::string_view> fields_;
};

Status line_error(std::string_view name, size_t line_number, std::string_view what) {
  return invalid_argument(
      fmt::format("[tuning] {}, line {}: {}; write the table anew with quire tune",
                  quote_name(name), line_number, what));
}

// ---- The distance between a measured point and a step

// The ratio of two sizes as a distance, in powers of two.
double log2_distance(double a, double b) {
  if (a == b) return 0.0;  // common case; a start makes thousands of choices
  return std::abs(std::log2(std::max(a, 1.0) / std::max(b, 1.0)));
}

// The distance between a measured point and the requested point, compared element by element: 1 if
// only one of them has a single query token, the number of different types, and the distance of the
// shapes in powers of two. best() breaks ties by raggedness and then by size.
using KindDistance = std::tuple<int, int, double>;

KindDistance kind_distance(const TuningPoint& a, const TuningPoint& b) {
  // Fewer backends support several query tokens, and their kernels for them are different.
  const bool same_decode = a.phase == Phase::kPrefill || (a.q_len > 1) == (b.q_len > 1);
  const int num_types = static_cast<int>(a.q != b.q) + static_cast<int>(a.kv != b.kv);
  const auto group = [](const TuningPoint& p) { return p.num_heads / std::max(p.num_kv_heads, 1); };
  const double shape = log2_distance(a.head_dim, b.head_dim) + log2_distance(group(a), group(b)) +
                       log2_distance(a.page_size, b.page_size);
  return {static_cast<int>(!same_decode), num_types, shape};
}

// Distance in powers of two. The tiles of decode kernels hold a request's query tokens and heads in
// a power of two of rows, so 3 and 4 tokens, or 5 to 8 tokens, take about the same time. Within
// such a class, the exact ratio decides.
double q_len_distance(const TuningPoint& a, const TuningPoint& b) {
  if (a.phase == Phase::kPrefill) return log2_distance(a.q_len, b.q_len);
  const auto tile_class = [](const TuningPoint& p) {
    return static_cast<int>(std::bit_width(static_cast<unsigned>(std::max(p.q_len, 1)) - 1));
  };
  return std::abs(tile_class(a) - tile_class(b)) + log2_distance(a.q_len, b.q_len) / 16.0;
}

double size_distance(const TuningPoint& a, const TuningPoint& b) {
  // Kernels distribute the heads of all requests over the device.
  const auto heads = [](const TuningPoint& p) { return 1.0 * p.num_reqs * p.num_kv_heads; };
  return log2_distance(heads(a), heads(b)) + q_len_distance(a, b) +
         log2_distance(a.kv_len, b.kv_len);
}

// ---- The choice at one measured point

// Times within 1 % are equal, because measurements repeat only to that precision.
constexpr double kTie = 1.01;

std::optional<TuningTable::Best> fastest(const TuningTable::MeasuredPoint& measured,
                                         std::span<const std::string_view> candidates) {
  std::vector<std::optional<double>> times;
  double shortest = std::numeric_limits<double>::infinity();
  for (const std::string_view candidate : candidates) {
    const TuningTable::Time* time = measured.find(candidate);
    times.push_back(time == nullptr ? std::nullopt : std::optional(time->us));
    shortest = std::min(shortest, times.back().value_or(shortest));
  }
  const auto first = std::ranges::find_if(
      times, [&](const auto& us) { return us.has_value() && *us <= shortest * kTie; });
  if (first == times.end()) return std::nullopt;
  return TuningTable::Best{.candidate = static_cast<size_t>(first - times.begin()),
                           .measured = &measured};
}

}  // namespace

// ---- The table

std::string_view lengths_name(bool ragged) {
  return ragged ? "ragged" : "full";
}

TuningPoint tuning_point(const AttentionShape& shape, Phase phase, int num_reqs, int q_len,
                         int kv_len, bool ragged) {
  const bool is_cut = phase == Phase::kDecode && shape.window > 0;
  return {.phase = phase,
          .num_heads = shape.num_heads,
          .num_kv_heads = shape.num_kv_heads,
          .head_dim = shape.head_dim,
          .page_size = shape.page_size,
          .q = shape.q,
          .kv = shape.kv,
          .num_reqs = num_reqs,
          .q_len = q_len,
          .kv_len = is_cut ? std::min(kv_len, shape.window) : kv_len,
          .ragged = ragged};
}

const TuningTable::Time* TuningTable::MeasuredPoint::find(std::string_view backend) const {
  const auto found = std::ranges::find(times, backend, &Time::backend);
  return found == times.end() ? nullptr : &*found;
}

TuningTable::TuningTable(std::span<const TuningRow> rows) {
  std::vector<TuningRow> sorted(rows.begin(), rows.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const TuningRow& a, const TuningRow& b) {
    return order_of(a.point) < order_of(b.point);
  });
  for (const TuningRow& row : sorted) {
    if (points_.empty() || points_.back().point != row.point) points_.push_back({row.point, {}});
    std::vector<Time>& times = points_.back().times;
    std::erase_if(times, [&](const Time& time) { return time.backend == row.backend; });
    times.push_back({row.backend, row.us});
  }
}

Result<TuningTable> TuningTable::parse(std::string_view csv, std::string_view name) {
  std::vector<TuningRow> rows;
  bool has_header = false;
  for (size_t line_number = 1; !csv.empty(); ++line_number) {
    const size_t end = std::min(csv.find('\n'), csv.size());
    const std::string_view line = trimmed(csv.substr(0, end));
    csv.remove_prefix(std::min(end + 1, csv.size()));
    if (line.empty() || line.front() == '#') continue;
    if (!has_header) {
      if (line != kHeader) {
        return line_error(
            name, line_number,
            fmt::format("the header; got {}, expected {}", quote_name(line), kHeader));
      }
      has_header = true;
      continue;
    }
    if (rows.size() == kMaxRows) {
      return line_error(name, line_number,
                        fmt::format("too many rows; expected at most {}", kMaxRows));
    }
    Result<TuningRow> row = RowParser(line).parse();
    if (!row.ok()) return line_error(name, line_number, row.status().message());
    rows.push_back(std::move(*row));
  }
  return TuningTable(rows);
}

Result<TuningTable> TuningTable::read(const std::string& path) {
  QUIRE_ASSIGN_OR_RETURN(const std::string csv, read_file(path, kMaxFileBytes));
  QUIRE_ASSIGN_OR_RETURN(TuningTable table, parse(csv, path));
  if (!table.points().empty()) return table;
  return invalid_argument(fmt::format(
      "[tuning] {} has no measurements; write the table anew with quire tune", quote_name(path)));
}

TuningTable::Best TuningTable::best(const TuningPoint& point,
                                    std::span<const std::string_view> candidates) const {
  QUIRE_CHECK(!candidates.empty(), "[tuning] there are no candidates to choose among");
  Best best;
  std::pair<KindDistance, bool> nearest_kind;
  double nearest_size = 0.0;
  for (const MeasuredPoint& measured : points_) {
    if (measured.point.phase != point.phase) continue;
    const std::pair kind(kind_distance(measured.point, point),
                         measured.point.ragged != point.ragged);
    if (best.measured != nullptr && kind > nearest_kind) continue;
    const double size = size_distance(measured.point, point);
    if (best.measured != nullptr && kind == nearest_kind && size >= nearest_size) continue;
    const auto found = fastest(measured, candidates);
    if (!found) continue;
    best = *found;
    nearest_kind = kind;
    nearest_size = size;
  }
  return best;
}

TuningTable TuningTable::restricted_to(const TuningPoint& point,
                                       std::span<const std::string_view> candidates) const {
  TuningTable part;
  KindDistance nearest;
  for (const MeasuredPoint& measured : points_) {
    if (measured.point.phase != point.phase || !fastest(measured, candidates)) continue;
    const KindDistance kind = kind_distance(measured.point, point);
    if (part.points_.empty() || kind < nearest) {
      part.points_.clear();
      nearest = kind;
    }
    if (kind == nearest) part.points_.push_back(measured);
  }
  return part;
}

std::vector<TuningRow> TuningTable::rows() const {
  std::vector<TuningRow> rows;
  for (const MeasuredPoint& measured : points_) {
    for (const Time& time : measured.times) rows.push_back({measured.point, time.backend, time.us});
  }
  return rows;
}

TuningTable builtin_table(const Device& device) {
  for (const BuiltinTable& table : kTables) {
    if (device.name.find(table.device) == std::string::npos) continue;
    Result<TuningTable> parsed = TuningTable::parse(table.csv, table.device);
    QUIRE_CHECK(parsed.ok(), "[tuning] a table of this build cannot be read");
    return std::move(*parsed);
  }
  return {};
}

std::string to_csv(std::span<const TuningRow> rows) {
  std::string csv = fmt::format("{}\n", kHeader);
  for (const TuningRow& row : rows) {
    const TuningPoint& p = row.point;
    csv += fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{:.3f}\n", phase_name(p.phase),
                       p.num_heads, p.num_kv_heads, p.head_dim, p.page_size, dtype_name(p.q),
                       dtype_name(p.kv), p.num_reqs, p.q_len, p.kv_len, lengths_name(p.ragged),
                       row.backend, row.us);
  }
  return csv;
}

}  // namespace quire
