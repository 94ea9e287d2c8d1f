// Checks the text of /metrics against the rules of Prometheus's exposition format and of `promtool
// check metrics`, which few machines have.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "server/metrics/server_metrics.h"

namespace quire::server {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

struct Sample {
  std::string name;
  std::string labels;  // as written, with the braces
  double value = 0;
};

struct Family {
  std::string name;
  std::string type;
  std::string help;
  std::vector<Sample> samples;
};

// Reads an exposition and collects what is wrong with it.
class Exposition {
 public:
  explicit Exposition(const std::string& text) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) read(line);
    if (!text.ends_with('\n')) complain("the last line has no end");
    for (const Family& family : families_) check(family);
  }

  const std::vector<std::string>& complaints() const { return complaints_; }
  const std::vector<Family>& families() const { return families_; }
  const Family& family(const std::string& name) const {
    const auto found = std::ranges::find(families_, name, &Family::name);
    if (found == families_.end()) throw std::out_of_range(name);
    return *found;
  }

 private:
  void complain(std::string what) { complaints_.push_back(std::move(what)); }

  void read(const std::string& line) {
    static const std::regex help("# HELP (\\S+) (.+)");
    static const std::regex type("# TYPE (\\S+) (counter|gauge|histogram)");
    static const std::regex sample(
        "([a-zA-Z_:][a-zA-Z0-9_:]*)"
        "(\\{[a-zA-Z_][a-zA-Z0-9_]*=\"(?:[^\"\\\\]|\\\\[\\\\\"n])*\""
        "(?:,[a-zA-Z_][a-zA-Z0-9_]*=\"(?:[^\"\\\\]|\\\\[\\\\\"n])*\")*\\})?"
        " ([0-9.e+-]+)");
    std::smatch parts;
    if (std::regex_match(line, parts, help)) {
      if (!names_.insert(parts[1]).second) complain(line + ": a second time");
      families_.push_back({.name = parts[1], .type = "", .help = parts[2], .samples = {}});
    } else if (std::regex_match(line, parts, type)) {
      if (families_.empty() || families_.back().name != parts[1])
        return complain(line + ": no HELP");
      families_.back().type = parts[2];
    } else if (std::regex_match(line, parts, sample)) {
      read_sample({.name = parts[1],
                   .labels = parts[2],
                   .value = std::strtod(parts[3].str().c_str(), nullptr)});
    } else {
      complain(line + ": not a line of an exposition");
    }
  }

  void read_sample(Sample sample) {
    if (!series_.insert(sample.name + sample.labels).second) {
      complain(sample.name + sample.labels + ": a second time");
    }
    if (families_.empty() || !belongs(sample.name, families_.back())) {
      return complain(sample.name + ": not of the family before it");
    }
    families_.back().samples.push_back(std::move(sample));
  }

  static bool belongs(const std::string& name, const Family& family) {
    if (family.type != "histogram") return !family.type.empty() && name == family.name;
    return name == family.name + "_bucket" || name == family.name + "_count" ||
           name == family.name + "_sum";
  }

  void check(const Family& family) {
    const std::string& name = family.name;
    const bool is_counter = family.type == "counter";
    if (family.type.empty()) complain(name + ": no TYPE");
    if (is_counter != name.ends_with("_total")) complain(name + ": counters alone end in _total");
    for (const char* suffix : {"_count", "_sum", "_bucket", "_counter", "_gauge", "_histogram"}) {
      if (name.ends_with(suffix)) complain(name + ": a reserved suffix");
    }
    for (const Sample& sample : family.samples) {
      if (is_counter && sample.value < 0) complain(name + ": a counter below 0");
    }
    if (family.type == "histogram") check_buckets(family);
    if (!name.starts_with("vllm:")) check_own_name(name);
  }

  // vLLM's names have a colon, which is reserved for recording rules.
  void check_own_name(const std::string& name) {
    if (name.find(':') != std::string::npos) complain(name + ": a colon");
    static const std::regex other_unit(
        "(^|_)(ms|us|ns|milliseconds|microseconds|minutes|hours|days|kib|mib|gib|kb|mb|gb|"
        "kilobytes|"
        "megabytes|gigabytes|bits|percent|perc|celsius)(_|$)");
    if (std::regex_search(name, other_unit)) complain(name + ": not a base unit");
    if (std::ranges::any_of(name, [](char c) { return c >= 'A' && c <= 'Z'; })) {
      complain(name + ": capitals");
    }
  }

  // The counts of a histogram's buckets grow, and the last one has all observations.
  void check_buckets(const Family& family) {
    double last = 0;
    bool has_infinity = true;  // in the histogram before this sample
    for (const Sample& sample : family.samples) {
      if (sample.name.ends_with("_bucket")) {
        if (sample.labels.find("le=\"") == std::string::npos) complain(family.name + ": no le");
        if (has_infinity) last = 0;  // the next histogram begins
        has_infinity = sample.labels.find("le=\"+Inf\"") != std::string::npos;
        if (sample.value < last) complain(family.name + ": a bucket below the one before it");
        last = sample.value;
      }
      if (sample.name.ends_with("_count") && sample.value != last) {
        complain(family.name + ": the count is not the last bucket's");
      }
    }
    if (!has_infinity) complain(family.name + ": no bucket +Inf");
  }

  std::vector<Family> families_;
  std::set<std::string> names_;
  std::set<std::string> series_;
  std::vector<std::string> complaints_;
};

std::string used_metrics(std::string_view model_name = "fake", size_t num_engines = 1) {
  ServerMetrics metrics(num_engines);
  std::vector<EngineStats> engines;
  for (size_t i = 0; i < num_engines; ++i) {
    EngineMetrics& own = metrics.of(static_cast<int>(i));
    for (const double value : {0.0001, 0.3, 1e9}) {
      own.time_to_first_token.observe(value);
      own.num_prompt_tokens.observe(value);
    }
    own.count_finish(FinishReason::kStop);
    engines.push_back({.num_total_blocks = 72 + static_cast<int>(i), .kv_cache_usage = 0.25});
  }
  metrics.count_response(200);
  metrics.count_response(429);
  ModelInfo model;
  model.block_size = 16;
  model.kv_cache_dtype = "bf16";
  model.gpu_memory_utilization = 0.9;
  model.num_speculative_tokens = 2;
  model.has_synthetic_acceptance = true;
  return metrics.text({.model_name = model_name,
                       .version = "1.2.3",
                       .model = model,
                       .engines = std::move(engines),
                       .http = {.num_open = 3},
                       .waiting = {},
                       .process = {.cpu_seconds = 1.5,
                                   .resident_bytes = int64_t{44} << 20,
                                   .virtual_bytes = int64_t{3} << 30,
                                   .num_open_fds = 12,
                                   .max_fds = 1024,
                                   .started_at = 1700000000.25}});
}

TEST(Metrics, FollowTheRulesOfPrometheus) {
  EXPECT_THAT(Exposition(used_metrics()).complaints(), IsEmpty());
  EXPECT_THAT(Exposition(used_metrics("fake", 3)).complaints(), IsEmpty());
  EXPECT_THAT(Exposition(used_metrics("a \"name\"\\ with\nall")).complaints(), IsEmpty());
}

TEST(Metrics, EachRuleIsChecked) {
  const std::string good = "# HELP a_total Things.\n# TYPE a_total counter\na_total 1\n";
  const std::string histogram = "# HELP h Things.\n# TYPE h histogram\n";
  const auto complaints = [](const std::string& text) {
    return ::testing::PrintToString(Exposition(text).complaints());
  };
  EXPECT_THAT(complaints(good), Not(HasSubstr(":")));
  EXPECT_THAT(complaints(good + good), HasSubstr("a second time"));
  EXPECT_THAT(complaints(good + "a_total 2\n"), HasSubstr("a second time"));
  EXPECT_THAT(complaints("a_total 2\n"), HasSubstr("not of the family"));
  EXPECT_THAT(complaints("# HELP a Things.\n# TYPE a counter\na 1\n"), HasSubstr("_total"));
  EXPECT_THAT(complaints("# HELP a_ms T.\n# TYPE a_ms gauge\na_ms 1\n"), HasSubstr("base unit"));
  EXPECT_THAT(complaints("# HELP q:a T.\n# TYPE q:a gauge\nq:a 1\n"), HasSubstr("a colon"));
  EXPECT_THAT(complaints("# HELP a \n# TYPE a gauge\na 1\n"), HasSubstr("no HELP"));
  EXPECT_THAT(complaints("# HELP a T.\na 1\n"), HasSubstr("no TYPE"));
  EXPECT_THAT(complaints(good + "a_total{b=c} 1\n"), HasSubstr("not a line"));
  EXPECT_THAT(complaints(histogram + "h_bucket{le=\"1\"} 1\nh_count 1\nh_sum 1\n"),
              HasSubstr("+Inf"));
  EXPECT_THAT(complaints(histogram + "h_bucket{le=\"1\"} 2\nh_bucket{le=\"+Inf\"} 1\nh_count 1\n"),
              HasSubstr("below the one before"));
}

TEST(Metrics, HaveTheLabelsThatDashboardsRead) {
  const Exposition metrics(used_metrics());
  for (const char* name : {"vllm:num_requests_running", "quire_kv_blocks"}) {
    EXPECT_EQ(metrics.family(name).samples.at(0).labels, R"({model_name="fake",engine="0"})");
  }
  EXPECT_EQ(metrics.family("vllm:cache_config_info").samples.at(0).labels,
            R"({model_name="fake",engine="0",block_size="16",cache_dtype="bf16",)"
            R"(calculate_kv_scales="False",enable_prefix_caching="True",)"
            R"(gpu_memory_utilization="0.9",num_gpu_blocks="72"})");
  EXPECT_EQ(metrics.family("quire_http_open_connections").samples.at(0).labels, R"({model_name="fake"})")
      << "the server has one, whatever its engines";
  EXPECT_EQ(metrics.family("quire_build_info").samples.at(0).labels, R"({version="1.2.3"})");
}

TEST(Metrics, HaveASampleOfEveryEngine) {
  const Exposition metrics(used_metrics("fake", 2));
  int num_families = 0;
  for (const Family& family : metrics.families()) {
    const auto count = [&](const char* engine) {
      return std::ranges::count_if(family.samples, [&](const Sample& sample) {
        return sample.labels.find(fmt::format("engine=\"{}\"", engine)) != std::string::npos;
      });
    };
    EXPECT_EQ(count("0"), count("1")) << family.name;
    EXPECT_EQ(count("2"), 0) << family.name;
    const bool is_of_engines = count("0") > 0;
    EXPECT_TRUE(is_of_engines || !family.name.starts_with("vllm:")) << family.name;
    if (is_of_engines) ++num_families;
  }
  EXPECT_GT(num_families, 30);
  const std::vector<Sample>& config = metrics.family("vllm:cache_config_info").samples;
  EXPECT_THAT(config.at(1).labels, HasSubstr(R"(engine="1")"));
  EXPECT_THAT(config.at(1).labels, HasSubstr(R"(num_gpu_blocks="73")"));
}

TEST(Metrics, LabelSyntheticAcceptance) {
  const Exposition metrics(used_metrics());
  EXPECT_EQ(metrics.family("quire_spec_decode_synthetic_acceptance").samples.at(0).value, 1);
  EXPECT_EQ(metrics.family("vllm:spec_decode_num_accepted_tokens_per_pos_total").samples.size(), 2);
}

TEST(Metrics, ShowTheProcess) {
  const Exposition metrics(used_metrics());
  const auto value = [&](const std::string& name) {
    EXPECT_EQ(metrics.family(name).samples.at(0).labels, "");
    return metrics.family(name).samples.at(0).value;
  };
  EXPECT_EQ(value("process_cpu_seconds_total"), 1.5);
  EXPECT_EQ(value("process_resident_memory_bytes"), 44 << 20);
  EXPECT_EQ(value("process_virtual_memory_bytes"), int64_t{3} << 30);
  EXPECT_EQ(value("process_open_fds"), 12);
  EXPECT_EQ(value("process_max_fds"), 1024);
  EXPECT_EQ(value("process_start_time_seconds"), 1700000000.25);
}

}  // namespace
}  // namespace quire::server
