// The choices that measurements have made, kept in a file for later starts.
#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "quire/status.h"

namespace quire {

// The kinds of choices. docs/measurements.md describes each.
enum class ChoiceKind {
  kAttention,    // the time of one backend for one batch
  kProduct,      // the kernel of a matrix product, by its shape and number of rows
  kHeadProduct,  // the kernel of a matrix product by head
  kLayerTail,    // whether a layer's tail runs as one kernel
  kRankSum,      // the sizes of sums that go through peer memory
  kDraftSteps,   // the times of steps with drafts
  kThreads,      // the numbers of threads that run a CPU's steps
};
inline constexpr int kNumChoiceKinds = 7;

// The choices for one kind of device in a process. Thread-safe: the ranks of a model share the
// object, so that each rank finds the choices that another rank has measured.
//
// The file is text, one choice per line: its kind, its key and its value, separated by tabs. Its
// first lines name the build and the digest of the other lines.
class MeasuredChoices {
 public:
  enum class Use {
    kAuto,    // reads the file, and measures what it lacks
    kAgain,   // measures everything
    kNothing  // neither reads nor measures: fixed rules choose
  };
  struct Config {
    std::filesystem::path file;  // empty: choices last as long as the process
    std::string build;           // choices of another build are not read
    Use use = Use::kAuto;
  };

  // Measures, and keeps no file.
  MeasuredChoices() = default;
  // Reads the file. A file that is damaged or cannot be read is logged and counts as empty.
  explicit MeasuredChoices(Config config);

  bool measures() const { return config_.use != Use::kNothing; }
  const std::filesystem::path& file() const { return config_.file; }

  // The value of a choice; nullopt: unknown. A key names everything on which the choice depends,
  // except for the device, the driver and the build.
  std::optional<std::string> find(ChoiceKind kind, std::string_view key);
  // The keys and values of a kind, in the order of the keys.
  std::vector<std::pair<std::string, std::string>> all(ChoiceKind kind);
  void add(ChoiceKind kind, std::string_view key, std::string_view value);

  // Adds its lifetime to the reported time of the kind's measurements. Overlapping times of several
  // threads count once.
  class Timing {
   public:
    Timing(MeasuredChoices& choices, ChoiceKind kind) : choices_(choices), kind_(kind) {
      choices_.begin(kind_);
    }
    ~Timing() { choices_.end(kind_); }
    Timing(const Timing&) = delete;
    Timing& operator=(const Timing&) = delete;

   private:
    MeasuredChoices& choices_;
    ChoiceKind kind_;
  };

  // Writes the file if a choice was added. Choices that another process has written since are kept.
  // Fails with kUnavailable if there is no cache directory.
  Status keep();
  // One line about what was measured and what was found since the object was made, for example
  //   measured 212 matrix products in 2.3 s, 1 layer tail in 0.1 s; the next start finds all in
  //   FILE
  // Empty if there is nothing to report.
  std::string report();

 private:
  using Clock = std::chrono::steady_clock;
  struct Choice {
    std::string value;
    bool is_new = false;   // added since the file was read
    bool is_used = false;  // found in the file by find() or all()
  };
  using Choices = std::map<std::pair<ChoiceKind, std::string>, Choice, std::less<>>;
  struct KindTime {
    int num_active = 0;  // objects of Timing
    Clock::time_point start;
    Clock::duration total = {};
  };

  Result<Choices> read() const;
  void begin(ChoiceKind kind);
  void end(ChoiceKind kind);

  const Config config_ = {};
  std::mutex mutex_;
  Choices choices_;
  std::map<ChoiceKind, KindTime> times_;
};

// A file in the user's cache directory for the choices on one kind of device; empty: there is no
// such directory. driver: empty for a CPU.
std::filesystem::path choices_file(std::string_view device, std::string_view driver);

}  // namespace quire
