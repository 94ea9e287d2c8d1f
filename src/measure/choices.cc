#include "measure/choices.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/build_info.h"
#include "base/cache_directory.h"
#include "base/digest.h"
#include "base/file.h"
#include "base/log.h"
#include "base/text_input.h"

namespace quire {
namespace {

constexpr size_t kMaxFileBytes = size_t{64} << 20;

struct KindNames {
  ChoiceKind kind;
  std::string_view in_file;
  std::string_view one;
  std::string_view many;
};
constexpr std::array<KindNames, kNumChoiceKinds> kKinds = {{
    {ChoiceKind::kAttention, "attention", "time of attention", "times of attention"},
    {ChoiceKind::kProduct, "product", "matrix product", "matrix products"},
    {ChoiceKind::kHeadProduct, "head_product", "product by head", "products by head"},
    {ChoiceKind::kLayerTail, "layer_tail", "layer tail", "layer tails"},
    {ChoiceKind::kRankSum, "rank_sum", "limit of sums", "limits of sums"},
    {ChoiceKind::kDraftSteps, "draft_steps", "table of draft steps", "tables of draft steps"},
    {ChoiceKind::kThreads, "threads", "choice of threads", "choices of threads"},
}};

const KindNames& names_of(ChoiceKind kind) {
  return *std::ranges::find(kKinds, kind, &KindNames::kind);
}

// Replaces tabs and line ends, which separate the file's fields: keys may contain a checkpoint's
// text.
std::string field_text(std::string_view text) {
  std::string field(text);
  std::ranges::replace_if(
      field, [](char c) { return c == '\t' || c == '\n' || c == '\r'; }, ' ');
  return field;
}

std::string digest_of(std::string_view text) {
  return to_hexadecimal(sha256_of(text));
}

std::string counted(const KindNames& names, size_t count) {
  return fmt::format("{} {}", count, count == 1 ? names.one : names.many);
}

}  // namespace

MeasuredChoices::MeasuredChoices(Config config) : config_(std::move(config)) {
  if (config_.use != Use::kAuto) return;
  Result<Choices> known = read();
  if (known.ok()) {
    choices_ = std::move(*known);
  } else {
    log_warning("[measure] kept choices are not used: {}", known.status().message());
  }
}

// A file of another build has no choices for this one.
Result<MeasuredChoices::Choices> MeasuredChoices::read() const {
  Choices choices;
  if (config_.file.empty()) return choices;
  QUIRE_ASSIGN_OR_RETURN(const bool exists, path_exists(config_.file));
  if (!exists) return choices;
  QUIRE_ASSIGN_OR_RETURN(const std::string text, read_file(config_.file, kMaxFileBytes));
  const auto damaged = [&] {
    return invalid_argument(
        fmt::format("{} is damaged: its digest does not match its content", config_.file.string()));
  };
  std::string_view rest = text;
  const auto take_line = [&] {
    const size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    return line;
  };
  take_line();  // the comment
  const std::string_view build = take_line();
  const std::string_view digest = take_line();
  if (digest != "digest\t" + digest_of(rest)) return damaged();
  if (build != "build\t" + field_text(config_.build)) return choices;
  while (!rest.empty()) {
    const std::vector<std::string_view> fields = split(take_line(), '\t');
    if (fields.size() != 3) return damaged();
    const auto kind = std::ranges::find(kKinds, fields[0], &KindNames::in_file);
    if (kind == kKinds.end()) return damaged();
    choices[{kind->kind, std::string(fields[1])}] = {.value = std::string(fields[2])};
  }
  return choices;
}

std::optional<std::string> MeasuredChoices::find(ChoiceKind kind, std::string_view key) {
  const std::lock_guard lock(mutex_);
  const auto found = choices_.find(std::pair(kind, field_text(key)));
  if (found == choices_.end()) return std::nullopt;
  found->second.is_used = !found->second.is_new;
  return found->second.value;
}

std::vector<std::pair<std::string, std::string>> MeasuredChoices::all(ChoiceKind kind) {
  const std::lock_guard lock(mutex_);
  std::vector<std::pair<std::string, std::string>> found;
  for (auto& [key, choice] : choices_) {
    if (key.first != kind) continue;
    choice.is_used = !choice.is_new;
    found.emplace_back(key.second, choice.value);
  }
  return found;
}

void MeasuredChoices::add(ChoiceKind kind, std::string_view key, std::string_view value) {
  const std::lock_guard lock(mutex_);
  choices_[{kind, field_text(key)}] = {.value = field_text(value), .is_new = true};
}

void MeasuredChoices::begin(ChoiceKind kind) {
  const std::lock_guard lock(mutex_);
  KindTime& time = times_[kind];
  if (time.num_active++ == 0) time.start = Clock::now();
}

void MeasuredChoices::end(ChoiceKind kind) {
  const std::lock_guard lock(mutex_);
  KindTime& time = times_[kind];
  if (--time.num_active == 0) time.total += Clock::now() - time.start;
}

Status MeasuredChoices::keep() {
  const std::lock_guard lock(mutex_);
  if (std::ranges::none_of(choices_, [](const auto& entry) { return entry.second.is_new; })) {
    return {};
  }
  if (config_.file.empty()) {
    return unavailable(
        "[measure] choices cannot be kept: neither XDG_CACHE_HOME nor HOME is set; set one");
  }
  Choices kept = choices_;
  if (Result<Choices> others = read(); others.ok()) kept.merge(*others);
  std::string lines;
  for (const auto& [key, choice] : kept) {
    lines += fmt::format("{}\t{}\t{}\n", names_of(key.first).in_file, key.second, choice.value);
  }
  return replace_file(config_.file,
                      fmt::format("# Choices that Quire has measured. Quire may overwrite or "
                                  "delete this file.\nbuild\t{}\ndigest\t{}\n{}",
                                  field_text(config_.build), digest_of(lines), lines));
}

std::string MeasuredChoices::report() {
  if (!measures()) return "measured nothing, because `measure` is off; fixed rules choose";
  const std::lock_guard lock(mutex_);
  std::vector<std::string> measured;
  std::vector<std::string> used;
  for (const KindNames& names : kKinds) {
    const auto count = [&](bool Choice::*member) {
      return static_cast<size_t>(std::ranges::count_if(choices_, [&](const auto& entry) {
        return entry.first.first == names.kind && entry.second.*member;
      }));
    };
    if (const size_t num_new = count(&Choice::is_new); num_new > 0) {
      const std::chrono::duration<double> seconds = times_[names.kind].total;
      measured.push_back(fmt::format("{} in {:.2f} s", counted(names, num_new), seconds.count()));
    }
    if (const size_t num_used = count(&Choice::is_used); num_used > 0) {
      used.push_back(counted(names, num_used));
    }
  }
  if (measured.empty() && used.empty()) return {};
  const std::string file = config_.file.string();
  if (measured.empty()) {
    return fmt::format("measured nothing; found {} in {}", fmt::join(used, ", "), file);
  }
  std::string line = fmt::format("measured {}", fmt::join(measured, ", "));
  if (!used.empty()) line += fmt::format("; found {}", fmt::join(used, ", "));
  return file.empty() ? line : fmt::format("{}; the next start finds all in {}", line, file);
}

std::filesystem::path choices_file(std::string_view device, std::string_view driver) {
  const std::filesystem::path directory = own_cache_directory();
  if (directory.empty()) return {};
  std::string name = "choices";
  for (const std::string_view part : {device, driver, version()}) {
    if (!part.empty()) name += "_" + file_name_part(part);
  }
  return directory / (name + ".tsv");
}

}  // namespace quire
