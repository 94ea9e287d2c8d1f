// Grammar × speculation × reasoning: the embedded model's constrained outputs are the same with
// drafts of every method, also where reasoning ends inside a draft, and drafts are accepted in each
// cell of the matrix.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <map>

#include "engine/tiny_engine.h"
#include "grammar/apples.h"
#include "grammar/grammar_compiler.h"
#include "grammar/walk.h"
#include "server/structured_output.h"
#include "support/shared_data.h"

namespace quire::testing {
namespace {

using Kind = GrammarSpec::Kind;

constexpr std::string_view kCallSchema = R"({"type": "array", "minItems": 1, "maxItems": 1,
    "items": {"type": "object", "properties": {"name": {"const": "count"}, "parameters":
    {"type": "object", "properties": {"number": {"type": "integer", "maximum": 99, "minimum": 0}},
    "required": ["number"], "additionalProperties": false}}, "required": ["name", "parameters"],
    "additionalProperties": false}})";

struct Grammar {
  const char* name;
  GrammarSpec spec;
  const char* example;  // of a text that it allows
};

const Grammar kGrammars[] = {
    {"schema",
     {.kind = Kind::kJsonSchema, .text = std::string(kApplesSchema)},
     R"({"answer": 25, "unit": "apples"})"},
    {"object", {.kind = Kind::kJsonObject}, R"({"answer": 25, "unit": "apples"})"},
    {"choice", {.kind = Kind::kChoice, .choices = {"few", "many red apples"}}, "many red apples"},
    {"regex", {.kind = Kind::kRegex, .text = "\\d{2} apples and \\d+\\."}, "20 apples and 5."},
    {"ebnf",
     {.kind = Kind::kGrammar, .text = "root ::= n \" + \" n \" = \" n\nn ::= [0-9]{1,3}"},
     "120 + 5 = 125"},
    {"call",
     {.kind = Kind::kJsonSchema, .text = std::string(kCallSchema)},
     R"([{"name": "count", "parameters": {"number": 25}}])"},
};

constexpr std::string_view kReasoning = " It is 25.</think>";

// Makes the model begin with the tokens `ids`, which the inner constraint accepts as well.
class Scripted final : public TokenConstraint {
 public:
  Scripted(std::vector<int32_t> ids, std::unique_ptr<TokenConstraint> inner)
      : ids_(std::move(ids)), inner_(std::move(inner)) {}

  std::vector<uint32_t> allowed_tokens() override {
    std::vector<uint32_t> mask = inner_->allowed_tokens();
    if (num_accepted_ >= ids_.size()) return mask;
    const auto id = static_cast<size_t>(ids_[num_accepted_]);
    const uint32_t word = mask[id / 32] & (1U << (id % 32));
    std::ranges::fill(mask, 0U);
    mask[id / 32] = word;
    return mask;
  }
  bool accept(int32_t token_id) override {
    if (!inner_->accept(token_id)) return false;
    ++num_accepted_;
    return true;
  }
  Status status() const override { return inner_->status(); }
  bool can_roll_back() const override { return inner_->can_roll_back(); }
  bool rollback(int num_tokens) override {
    num_accepted_ -= static_cast<size_t>(num_tokens);
    return inner_->rollback(num_tokens);
  }

 private:
  std::vector<int32_t> ids_;
  std::unique_ptr<TokenConstraint> inner_;
  size_t num_accepted_ = 0;
};

struct Method {
  const char* name;
  const char* config;  // of the method and k; empty: no speculation
};

const Method kMethods[] = {
    {"ngram_1", R"("ngram", "num_speculative_tokens": 1, "prompt_lookup_max": 3)"},
    {"ngram_8", R"("ngram", "num_speculative_tokens": 8, "prompt_lookup_min": 1,
                   "prompt_lookup_max": 2)"},
    {"suffix_4", R"("suffix", "num_speculative_tokens": 4)"},
    {"suffix_8", R"("suffix", "num_speculative_tokens": 8)"},
    {"draft_model_1", R"("draft_model", "num_speculative_tokens": 1)"},
    {"draft_model_8", R"("draft_model", "num_speculative_tokens": 8)"},
};

// An engine with its grammars.
class Subject {
 public:
  explicit Subject(std::string_view method, bool is_adaptive = false) {
    EngineConfig config;
    config.device = "cpu";
    config.num_threads = 2;
    if (!method.empty()) {
      const bool is_model = method.starts_with("\"draft_model");
      const std::string model =
          is_model ? fmt::format(R"(, "model": "{}")", abacus_path().string()) : std::string();
      config.speculative_config = fmt::format(
          R"({{"method": {}{}, "enable_adaptive_verification": {}}})", method, model, is_adaptive);
    }
    engine_ = make_engine(config);
    api_ = server::make_engine_api(*engine_);
  }

  // The prompts repeat an example, so that a lookup finds drafts. Four requests are under the
  // constraint, greedy and random; two of them are made to answer with the example. In a `mixed`
  // batch, two others are free.
  std::vector<Collected> run(const Grammar& grammar, bool reasons, bool mixed) {
    const ConstraintFactory plain = compiler_.compile(grammar.spec).value();
    const ConstraintFactory inner = reasons ? server::after_marker(plain, *api_) : plain;
    const std::string reasoning(reasons ? kReasoning : "");
    const std::string text = reasoning + grammar.example;
    std::vector<Request> requests;
    for (int i = 0; i < 4; ++i) {
      const std::vector<int32_t> script = encode(i < 2 ? reasoning : text);
      Request request = apples_question(*engine_, 20 + i, 50);
      request.prompt_token_ids = encode(request.prompt + text + text);
      request.prompt.clear();
      request.sampling.logprobs = 1;
      if (i % 2 == 1) request.sampling.min_tokens = 6;
      request.make_constraint = [=] { return std::make_unique<Scripted>(script, inner()); };
      requests.push_back(request);
    }
    if (mixed) {
      for (const int number : {30, 31}) {
        requests.push_back(apples_question(*engine_, number, 40));
        requests.back().sampling.logprobs = 1;
      }
    }
    return run_all(*engine_, requests);
  }

  size_t num_tokens(std::string_view text) const { return encode(std::string(text)).size(); }
  SpeculationStats drafts() const { return stats_at_rest(*engine_).speculation; }

 private:
  std::vector<int32_t> encode(const std::string& text) const {
    return engine_->encode(text, false).value();
  }

  GrammarCompiler compiler_{*embedded_tokenizer(), std::array{kEmbeddedEosId}, ample_time()};
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<server::EngineApi> api_;
};

// The outputs without speculation.
const std::vector<Collected>& ordinary(const Grammar& grammar, bool reasons, bool mixed) {
  static Subject subject("");
  static std::map<std::tuple<std::string, bool, bool>, std::vector<Collected>> all;
  const auto [entry, is_new] = all.try_emplace({grammar.name, reasons, mixed});
  if (is_new) entry->second = subject.run(grammar, reasons, mixed);
  return entry->second;
}

class ConstrainedDraftsMatrix : public ::testing::TestWithParam<Method> {};

TEST_P(ConstrainedDraftsMatrix, EachCellHasTheOutputsOfARunWithoutDrafts) {
  Subject subject(GetParam().config);
  // The model does not draft what the grammar wants in every cell; a lookup does.
  const bool is_lookup = !std::string_view(GetParam().name).starts_with("draft_model");
  int64_t num_accepted = 0;
  for (const bool reasons : {false, true}) {
    for (const Grammar& grammar : kGrammars) {
      SCOPED_TRACE(fmt::format("{}{}", grammar.name, reasons ? " after reasoning" : ""));
      const int64_t before = subject.drafts().num_accepted;
      expect_same(subject.run(grammar, reasons, false), ordinary(grammar, reasons, false));
      const int64_t accepted = subject.drafts().num_accepted - before;
      num_accepted += accepted;
      if (is_lookup) {
        EXPECT_GT(accepted, 0);
      }
    }
    expect_same(subject.run(kGrammars[0], reasons, true), ordinary(kGrammars[0], reasons, true));
  }
  EXPECT_GT(num_accepted, 0);
}

// Which drafts are left out depends on the time that steps take.
TEST(ConstrainedDraftsAdaptive, HaveTheOutputsOfARunWithoutDrafts) {
  Subject subject(kMethods[4].config, true);
  for (const bool reasons : {false, true}) {
    for (const Grammar& grammar : kGrammars) {
      expect_same(subject.run(grammar, reasons, true), ordinary(grammar, reasons, true));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Methods, ConstrainedDraftsMatrix, ::testing::ValuesIn(kMethods),
                         [](const auto& param) { return std::string(param.param.name); });

TEST(ConstrainedDraftsReference, EndsWithTheExampleWhereItMust) {
  for (const bool reasons : {false, true}) {
    for (const Grammar& grammar : kGrammars) {
      const std::vector<Collected>& outputs = ordinary(grammar, reasons, false);
      for (const size_t i : {2, 3}) {
        EXPECT_EQ(outputs[i].text, std::string(reasons ? kReasoning : "") + grammar.example);
        EXPECT_EQ(outputs[i].finish_reason, FinishReason::kStop);
      }
    }
  }
}

// The drafts of a step begin in the reasoning and end in the JSON after it: both fit into one span.
TEST(ConstrainedDraftsAfterReasoning, AreAcceptedAcrossItsEnd) {
  Subject subject(R"("suffix", "num_speculative_tokens": 15)");
  const std::vector<Collected> outputs = subject.run(kGrammars[0], true, false);
  expect_same(outputs, ordinary(kGrammars[0], true, false));
  // The reasoning has 15 tokens or fewer, so a span with all of its drafts accepted crosses its
  // end.
  EXPECT_LE(subject.num_tokens(kReasoning), 15);
  EXPECT_GT(subject.drafts().accepted_by_position[14], 0);
}

}  // namespace
}  // namespace quire::testing
