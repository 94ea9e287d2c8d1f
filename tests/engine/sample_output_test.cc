// Output text, stop conditions and held-back text, with the embedded model's tokenizer.
#include "engine/sample_output.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <simdjson.h>

#include <algorithm>
#include <array>
#include <random>
#include <variant>

#include "base/file.h"
#include "base/machine.h"
#include "engine/input_processor.h"
#include "start/model_files.h"
#include "support/added_tokens.h"
#include "support/shared_data.h"

namespace quire {

namespace {

const Tokenizer& tokenizer() {
  static const auto instance = Tokenizer::from_json(embedded_model().tokenizer_json, "embedded");
  return **instance;
}

struct Played {
  std::string text;
  std::vector<int32_t> token_ids;
  std::optional<FinishReason> finish_reason;
  std::string stop_reason;

  friend bool operator==(const Played&, const Played&) = default;
};

SpanResult span_of(std::span<const int32_t> ids) {
  SpanResult span;
  for (const int32_t id : ids) span.tokens.push_back({.token_id = id, .logprobs = {}});
  return span;
}

// Feeds the sample spans of `span_length` tokens until it ends.
Played play_in_spans(size_t span_length, const std::string& text, const SamplingParams& params,
                     int32_t eos) {
  const auto spec = std::make_shared<const SamplingSpec>(
      SamplingSpec{.params = std::make_shared<const SamplingParams>(params)});
  const std::vector<int32_t> eos_ids = {eos};
  SampleOutput sample(
      SampleOutput::start_of(&tokenizer(), *spec, tokenizer().encode("A prompt:", true).value()),
      spec, eos_ids, 0);
  Played played;
  const std::vector<int32_t> ids = tokenizer().encode(text, false).value();
  for (size_t i = 0; i < ids.size() && !played.finish_reason; i += span_length) {
    const auto span = std::span(ids).subspan(i, std::min(span_length, ids.size() - i));
    const Output output = sample.accept(span_of(span), 0, i + span.size() == ids.size());
    played.text += output.text;
    played.token_ids.insert(played.token_ids.end(), output.token_ids.begin(),
                            output.token_ids.end());
    played.finish_reason = output.finish_reason;
    played.stop_reason = output.stop_reason;
  }
  return played;
}

// Feeds the sample one token at a time, and checks that longer spans give the same result.
Played play(const std::string& text, const SamplingParams& params, int32_t eos = -1) {
  Played played = play_in_spans(1, text, params, eos);
  for (size_t length = 2; length < 10; ++length) {
    EXPECT_EQ(play_in_spans(length, text, params, eos), played) << "spans of " << length;
  }
  return played;
}

TEST(SampleOutput, StreamsTheWholeText) {
  const std::string text = "Zala has 12 apples. \U0001F34E\u00e9\u6f22 The end";
  const Played played = play(text, {});
  EXPECT_EQ(played.text, text);
  EXPECT_EQ(played.finish_reason, FinishReason::kLength);
}

TEST(SampleOutput, StopStringIsCutOffUnlessWanted) {
  SamplingParams params;
  params.stop = {"apples"};
  EXPECT_EQ(play("Two red apples fall", params).text, "Two red ");
  EXPECT_EQ(play("Two red apples fall", params).stop_reason, "apples");
  EXPECT_EQ(play("Two red apples fall", params).finish_reason, FinishReason::kStop);
  params.include_stop_str_in_output = true;
  EXPECT_EQ(play("Two red apples fall", params).text, "Two red apples");
}

TEST(SampleOutput, BeginningOfAStopIsHeldBackAndShownIfItWasNone) {
  SamplingParams params;
  params.stop = {"apples and pears"};
  EXPECT_EQ(play("Two apples and plums", params).text, "Two apples and plums");
}

TEST(SampleOutput, StopsInsideMinTokensAreNotSeen) {
  SamplingParams params;
  params.stop = {"a"};
  params.min_tokens = static_cast<int>(tokenizer().encode("banana ", false).value().size());
  EXPECT_EQ(play("banana or a pear", params).text, "banana or ");
}

TEST(SampleOutput, EndOfSequenceLeavesNoText) {
  const int32_t eos = *tokenizer().token_to_id("<|end|>");
  const Played played = play("Done.<|end|>more", {}, eos);
  EXPECT_EQ(played.text, "Done.");
  EXPECT_EQ(played.token_ids.back(), eos);
  EXPECT_EQ(played.finish_reason, FinishReason::kStop);
  EXPECT_EQ(played.stop_reason, "");
}

TEST(SampleOutput, SpecialTokensAreShownWhenWanted) {
  SamplingParams params;
  EXPECT_EQ(play("a<|user|>b", params).text, "ab");
  params.skip_special_tokens = false;
  EXPECT_EQ(play("a<|user|>b", params).text, "a<|user|>b");
}

TEST(SampleOutput, WithoutDetokenizingThereIsNoText) {
  SamplingParams params;
  params.detokenize = false;
  const Played played = play("Two red apples", params);
  EXPECT_EQ(played.text, "");
  EXPECT_EQ(played.token_ids, tokenizer().encode("Two red apples", false).value());
}

// CPU time to process the tokens `ids` with the stop string `stop`, which does not occur in them.
int64_t ns_to_play(const std::vector<int32_t>& ids, const std::string& stop) {
  SamplingParams params;
  params.stop = {stop};
  const auto spec = std::make_shared<const SamplingSpec>(
      SamplingSpec{.params = std::make_shared<const SamplingParams>(params)});
  SampleOutput sample(SampleOutput::start_of(&tokenizer(), *spec, {}), spec, {}, 0);
  return cpu_ns_of([&] {
    for (const int32_t id : ids) {
      SpanResult sampled = span_of(std::array{int32_t{id}});
      EXPECT_FALSE(sample.accept(std::move(sampled), 0, false).finish_reason);
    }
  });
}

TEST(SampleOutput, ALongStopCostsNoMoreThanAShortOne) {
  // The text always ends with a prefix of the long stop string.
  const std::string run(2048, 'a');
  const std::vector<int32_t> ids = tokenizer().encode(std::string(20000, 'a'), false).value();
  const int64_t of_short = ns_to_play(ids, "ab");
  const int64_t of_long = ns_to_play(ids, run + "b" + run.substr(1));
  EXPECT_LT(of_long, 8 * of_short) << "a token's cost depends on the length of the stop string";
}

TEST(SampleOutput, CancellingReturnsHeldBackText) {
  SamplingParams params;
  params.stop = {"apples and pears"};
  const auto spec = std::make_shared<const SamplingSpec>(
      SamplingSpec{.params = std::make_shared<const SamplingParams>(params)});
  SampleOutput sample(SampleOutput::start_of(&tokenizer(), *spec, {}), spec, {}, 0);
  std::string text;
  const std::vector<int32_t> ids = tokenizer().encode("Two apples and", false).value();
  for (const int32_t id : ids) {
    SpanResult sampled = span_of(std::array{int32_t{id}});
    text += sample.accept(std::move(sampled), 0, false).text;
  }
  EXPECT_EQ(text, "Two ");
  EXPECT_EQ(text + sample.end(FinishReason::kCancelled, {}).text, "Two apples and");
}

// ---- The places of added tokens

// The embedded model's tokenizer with a special token <|m|> and a visible one <m>, and Llama's with
// the same. Llama's writes other characters than ASCII by runs of byte tokens.
const Tokenizer& tokenizer_with_markers(bool is_llama) {
  const auto load = [](std::string_view json, int32_t first_id) {
    const std::string with_visible = testing::with_added_tokens(json, {"<m>"}, false, first_id);
    return *Tokenizer::from_json(
        testing::with_added_tokens(with_visible, {"<|m|>"}, true, first_id + 1), "test");
  };
  static const auto small = load(embedded_model().tokenizer_json, 100'000);
  if (!is_llama) return *small;
  static const auto llama = load(
      read_file(testing::shared_data_path("tokenizers/llama2/tokenizer.json"), 1 << 22).value(),
      100'000);
  return *llama;
}

// One token per byte where the tokenizer has byte tokens; otherwise the tokens of the text.
std::vector<int32_t> ids_of(const Tokenizer& tokenizer, std::string_view text) {
  std::vector<int32_t> ids;
  for (const char c : text) {
    const auto id = tokenizer.token_to_id(fmt::format("<0x{:02X}>", static_cast<unsigned char>(c)));
    if (!id) return tokenizer.encode(text, false).value();
    ids.push_back(*id);
  }
  return ids;
}

// The output's text, with {ID} in the place of the markers <m> and <|m|>, whose text it leaves out.
std::string with_places(const Output& output) {
  std::string shown;
  size_t at = 0;
  for (const AddedTokenPlace& place : output.added_tokens) {
    EXPECT_LE(at, place.begin);
    EXPECT_LE(place.begin, place.end);
    EXPECT_LE(place.end, output.text.size());
    shown += output.text.substr(at, place.begin - at) + fmt::format("{{{}}}", place.token_id);
    at = place.end;
  }
  return shown + output.text.substr(at);
}

// Plays the tokens in spans, and joins the outputs. Checks that the places do not depend on the
// spans.
std::string play_with_places(const Tokenizer& tokenizer, const std::vector<int32_t>& ids,
                             const SamplingParams& params) {
  const auto spec = std::make_shared<const SamplingSpec>(
      SamplingSpec{.params = std::make_shared<const SamplingParams>(params)});
  const SampleOutput::Start start =
      SampleOutput::start_of(&tokenizer, *spec, tokenizer.encode("A", false).value());
  std::string first;
  for (size_t length = 1; length < 8; ++length) {
    SampleOutput sample(start, spec, {}, 0);
    std::string text;
    bool is_over = false;
    for (size_t i = 0; i < ids.size() && !is_over; i += length) {
      const auto span = std::span(ids).subspan(i, std::min(length, ids.size() - i));
      const Output output = sample.accept(span_of(span), 0, i + span.size() == ids.size());
      text += with_places(output);
      is_over = output.finish_reason.has_value();
    }
    if (length == 1) first = text;
    EXPECT_EQ(text, first) << "spans of " << length;
  }
  return first;
}

constexpr int32_t kVisible = 100'000;
constexpr int32_t kSpecial = 100'001;

class AddedTokenPlaces : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (!GetParam()) return;
    QUIRE_REQUIRE_SHARED(testing::shared_data_path("tokenizers/llama2/tokenizer.json"));
  }
  std::string play(const std::vector<std::variant<std::string, int32_t>>& parts,
                   const SamplingParams& params = {}) {
    const Tokenizer& tokenizer = tokenizer_with_markers(GetParam());
    std::vector<int32_t> ids;
    for (const auto& part : parts) {
      if (const auto* id = std::get_if<int32_t>(&part)) {
        ids.push_back(*id);
      } else {
        const std::vector<int32_t> text = ids_of(tokenizer, std::get<std::string>(part));
        ids.insert(ids.end(), text.begin(), text.end());
      }
    }
    return play_with_places(tokenizer, ids, params);
  }
};

TEST_P(AddedTokenPlaces, AreThoseOfTokensAndNotOfTextThatSpellsThem) {
  EXPECT_EQ(play({"a", kVisible, "b", kSpecial, "c"}), "a{100000}b{100001}c");
  EXPECT_EQ(play({kSpecial, kSpecial, kVisible}), "{100001}{100001}{100000}");
  EXPECT_EQ(play({"<", "m", ">", kSpecial, "<|", "m|>"}), "<m>{100001}<|m|>");
}

TEST_P(AddedTokenPlaces, StandAfterTextThatIsHeldBack) {
  EXPECT_EQ(play({"\u20ac", kSpecial, "\u20ac"}), "\u20ac{100001}\u20ac");
  EXPECT_EQ(play({"\u20ac\U0001F34E", kSpecial, kSpecial}), "\u20ac\U0001F34E{100001}{100001}");
  EXPECT_EQ(play({"\u20ac", kVisible, "x"}), "\u20ac{100000}x");
}

TEST_P(AddedTokenPlaces, DoNotDivideAStopString) {
  SamplingParams params;
  params.stop = {"bc"};
  EXPECT_EQ(play({"ab", kSpecial, "cd"}, params), "a");
  EXPECT_EQ(play({"a", kSpecial, "bc"}, params), "a{100001}");
  EXPECT_EQ(play({"ab", kSpecial, "d", kSpecial}, params), "ab{100001}d{100001}");
  params.include_stop_str_in_output = true;
  EXPECT_EQ(play({"ab", kSpecial, "c", kVisible}, params), "ab{100001}c");
}

TEST_P(AddedTokenPlaces, HaveTheWholeTextOfATokenThatMayBeginAStopString) {
  SamplingParams params;
  params.stop = {"m>!"};
  EXPECT_EQ(play({"a", kVisible, "b"}, params), "a{100000}b");
  EXPECT_EQ(play({"a", kVisible, "!"}, params), "a<");
  EXPECT_EQ(play({"a", kVisible}, params), "a{100000}");
}

INSTANTIATE_TEST_SUITE_P(Tokenizer, AddedTokenPlaces, ::testing::Bool());

// A character that is broken by a token does not move it into the middle of its replacement.
TEST(AddedTokenPlacesOfBytes, AreBetweenCharacters) {
  QUIRE_REQUIRE_SHARED(testing::shared_data_path("tokenizers/llama2/tokenizer.json"));
  const Tokenizer& tokenizer = tokenizer_with_markers(true);
  const auto byte = [&](const char* token) { return *tokenizer.token_to_id(token); };
  const std::vector<int32_t> broken = {byte("<0xC3>"), byte("<0xA9>"), kSpecial, byte("<0xC3>"),
                                       byte("<0x41>")};
  const std::string shown = play_with_places(tokenizer, broken, {});
  EXPECT_TRUE(simdjson::validate_utf8(shown)) << shown;
  EXPECT_NE(shown.find("{100001}"), std::string::npos);
  const std::vector<int32_t> cut = {byte("<0xE2>"), byte("<0x82>"), kVisible};
  EXPECT_EQ(play_with_places(tokenizer, cut, {}), "\uFFFD\uFFFD{100000}");
}

std::vector<uint32_t> first_mask(SampleOutput& sample) {
  std::vector<std::vector<uint32_t>> masks;
  EXPECT_EQ(sample.add_masks({}, masks), 0);
  EXPECT_EQ(masks.size(), 1U);
  return masks.front();
}

// A constraint that allows only the end token from the start.
class OnlyTheEnd final : public TokenConstraint {
 public:
  std::vector<uint32_t> allowed_tokens() override { return {1U << 2}; }
  bool accept(int32_t) override { return true; }
};

TEST(SampleOutput, AnEndThatIsForcedAtOnceKeepsThePrompt) {
  SamplingParams params;
  params.min_tokens = 1;
  params.prompt_logprobs = 0;
  const auto spec = std::make_shared<const SamplingSpec>(
      SamplingSpec{.params = std::make_shared<const SamplingParams>(params), .end_token_ids = {2}});
  const std::vector<int32_t> eos_ids = {2};
  const std::vector<int32_t> prompt = {5, 6, 7};
  SampleOutput sample(SampleOutput::start_of(&tokenizer(), *spec, prompt), spec, eos_ids, 0,
                      std::make_unique<OnlyTheEnd>());
  EXPECT_FALSE(first_mask(sample).empty());
  ASSERT_TRUE(sample.forced_end());
  SpanResult sampled = span_of(std::array{int32_t{9}});
  sampled.prompt_logprobs.resize(2);
  const Output output = sample.accept(std::move(sampled), 1, false);
  EXPECT_EQ(output.finish_reason, FinishReason::kStop);
  EXPECT_TRUE(output.token_ids.empty());
  EXPECT_EQ(*output.prompt_token_ids, prompt);
  EXPECT_EQ(output.prompt_logprobs.size(), 2U);
  EXPECT_EQ(output.num_cached_tokens, 1);
}

// Allows the whole vocabulary.
class Anything final : public TokenConstraint {
 public:
  explicit Anything(size_t vocab_size) : mask_(vocab_size / 32, ~0U) {}
  std::vector<uint32_t> allowed_tokens() override { return mask_; }
  bool accept(int32_t) override { return true; }

 private:
  std::vector<uint32_t> mask_;
};

TEST(SampleOutput, StopIdsThatMinTokensForbidsAreNotReadForEachMask) {
  constexpr int32_t kVocabSize = 256000;
  constexpr int kNumMasks = 100;
  SamplingParams params;
  params.min_tokens = 1;
  SamplingSpec resolved = {.params = std::make_shared<const SamplingParams>(params)};
  for (int32_t id = 0; id < kVocabSize - 1; ++id) resolved.end_token_ids.push_back(id);
  const auto spec = std::make_shared<const SamplingSpec>(std::move(resolved));
  SampleOutput sample(SampleOutput::start_of(nullptr, *spec, {5}), spec, {}, 0,
                      std::make_unique<Anything>(kVocabSize));
  const int64_t of_masks = cpu_ns_of([&] {
    for (int i = 0; i < kNumMasks; ++i) EXPECT_FALSE(first_mask(sample).empty());
  });
  EXPECT_FALSE(sample.forced_end());
  const int64_t of_reads = cpu_ns_of([&] {
    for (int i = 0; i < kNumMasks; ++i) {
      EXPECT_EQ(std::ranges::count(spec->end_token_ids, kVocabSize + i), 0);
    }
  });
  EXPECT_LT(of_masks, of_reads);
}

TEST(SampleOutput, OutputsOfARequestShareThePromptsIds) {
  const SamplingParams params;
  const auto spec = std::make_shared<const SamplingSpec>(
      SamplingSpec{.params = std::make_shared<const SamplingParams>(params)});
  const SampleOutput::Start start = SampleOutput::start_of(&tokenizer(), *spec, {5, 6, 7});
  for (int index = 0; index < 2; ++index) {
    SampleOutput sample(start, spec, {}, index);
    SpanResult sampled = span_of(std::array{int32_t{9}});
    EXPECT_EQ(sample.accept(std::move(sampled), 0, false).prompt_token_ids, start.prompt_ids);
  }
}

// ---- Drafts under a constraint

// Allows after token n the tokens 2n and 2n + 1, up to token 31, after which only token 2 may come:
// the end. Begins with token 1.
class Tree final : public TokenConstraint {
 public:
  std::vector<uint32_t> allowed_tokens() override {
    const int32_t newest = path_.back();
    return {newest < 16 ? 3U << (2 * newest) : 1U << 2};
  }
  bool accept(int32_t token_id) override {
    if ((allowed_tokens().front() >> token_id & 1U) == 0) return false;
    path_.push_back(token_id);
    return true;
  }
  bool can_roll_back() const override { return can_; }
  bool rollback(int num_tokens) override {
    if (is_stuck_) return false;
    path_.resize(path_.size() - static_cast<size_t>(num_tokens));
    return true;
  }

  bool can_ = true;
  bool is_stuck_ = false;
  std::vector<int32_t> path_ = {1};
};

using Masks = std::vector<std::vector<uint32_t>>;

class ConstrainedDrafts : public ::testing::Test {
 protected:
  SampleOutput& sample(int min_tokens = 0) {
    SamplingParams params;
    params.min_tokens = min_tokens;
    const auto spec = std::make_shared<const SamplingSpec>(SamplingSpec{
        .params = std::make_shared<const SamplingParams>(params), .end_token_ids = {2}});
    auto constraint = std::make_unique<Tree>();
    tree_ = constraint.get();
    const std::vector<int32_t> eos_ids = {2};
    sample_.emplace(SampleOutput::start_of(nullptr, *spec, {5}), spec, eos_ids, 0,
                    std::move(constraint));
    return *sample_;
  }
  // Adds the masks of the drafts, and expects that the constraint is as it was.
  Masks masks_of(const std::vector<int32_t>& drafts, int num_kept) {
    const std::vector<int32_t> path = tree_->path_;
    Masks masks;
    EXPECT_EQ(sample_->add_masks(drafts, masks), num_kept);
    EXPECT_EQ(masks.size(), 1 + static_cast<size_t>(num_kept));
    EXPECT_EQ(tree_->path_, path);
    return masks;
  }
  std::vector<int32_t> accept(std::vector<int32_t> ids) {
    output_ = sample_->accept(span_of(ids), 0, false);
    return output_.token_ids;
  }

  std::optional<SampleOutput> sample_;
  Tree* tree_ = nullptr;
  Output output_;
};

TEST_F(ConstrainedDrafts, AreCutAtTheFirstThatIsForbidden) {
  sample();
  EXPECT_EQ(masks_of({3, 6, 12}, 3), (Masks{{3U << 2}, {3U << 6}, {3U << 12}, {3U << 24}}));
  EXPECT_EQ(masks_of({3, 5, 10}, 1), (Masks{{3U << 2}, {3U << 6}})) << "5 does not follow 3";
  EXPECT_EQ(masks_of({4, 8}, 0), (Masks{{3U << 2}}));
  for (const int32_t outside : {-1, INT32_MIN, 32, 1000000, INT32_MAX}) masks_of({outside}, 0);
  EXPECT_EQ(accept({3, 7}), (std::vector<int32_t>{3, 7}));
  EXPECT_EQ(masks_of({14, 28}, 2), (Masks{{3U << 14}, {3U << 28}, {1U << 2}}));
}

TEST_F(ConstrainedDrafts, NeedAConstraintThatRollsBack) {
  sample();
  EXPECT_TRUE(sample_->can_have_drafts());
  tree_->can_ = false;
  EXPECT_FALSE(sample_->can_have_drafts());
  masks_of({3, 6}, 0);
}

// The end is verified as any draft; the mask after it is not used.
TEST_F(ConstrainedDrafts, EndTheSampleInTheirMiddle) {
  sample();
  const Masks masks = masks_of({3, 7, 15, 31, 2, 9}, 5);
  EXPECT_EQ(masks[4], std::vector<uint32_t>{1U << 2});
  EXPECT_EQ(masks[5], std::vector<uint32_t>{~0U});
  EXPECT_FALSE(sample_->forced_end());
  EXPECT_EQ(accept({3, 7, 15, 31, 2, 9}), (std::vector<int32_t>{3, 7, 15, 31, 2}));
  EXPECT_EQ(output_.finish_reason, FinishReason::kStop);
}

TEST_F(ConstrainedDrafts, NeverContainAnEndThatMinTokensForbids) {
  sample(3);
  EXPECT_EQ(masks_of({2, 4}, 0), (Masks{{1U << 3}})) << "the end is not in the mask";
  EXPECT_EQ(accept({3, 6}), (std::vector<int32_t>{3, 6}));
  EXPECT_EQ(masks_of({12, 24, 2}, 3).size(), 4U) << "four tokens precede the end";
}

// After 31 only the end may come, which min_tokens forbids.
TEST_F(ConstrainedDrafts, EndWhereTheConstraintIsFinishedButMinTokensIsNot) {
  sample(9);
  EXPECT_EQ(masks_of({3, 7, 15, 31, 2}, 4)[4], std::vector<uint32_t>{~0U});
  ASSERT_TRUE(sample_->forced_end());
  EXPECT_EQ(sample_->forced_end()->num_tokens, 4U);
  EXPECT_FALSE(sample_->must_end_now());
  EXPECT_FALSE(sample_->can_have_drafts());
  // A draft is rejected, and the sample goes on.
  EXPECT_EQ(accept({3, 6}), (std::vector<int32_t>{3, 6}));
  EXPECT_FALSE(output_.finish_reason);
  EXPECT_FALSE(sample_->forced_end());
  masks_of({12, 24}, 2);
  // All are accepted; the token after them is dropped.
  EXPECT_EQ(accept({12, 24, 9}), (std::vector<int32_t>{12, 24}));
  EXPECT_EQ(output_.finish_reason, FinishReason::kStop);
}

TEST_F(ConstrainedDrafts, FailTheSampleIfTheConstraintDoesNotTakeThemBack) {
  sample();
  tree_->is_stuck_ = true;
  Masks masks;
  EXPECT_EQ(sample_->add_masks(std::array{3, 6}, masks), 2);
  EXPECT_TRUE(sample_->must_end_now());
  EXPECT_TRUE(accept({3, 6, 12}).empty());
  EXPECT_EQ(output_.finish_reason, FinishReason::kError);
  EXPECT_NE(output_.error.message().find("cannot roll back 2 drafts"), std::string::npos);
}

class Throws final : public TokenConstraint {
 public:
  explicit Throws(bool in_mask) : in_mask_(in_mask) {}
  std::vector<uint32_t> allowed_tokens() override {
    if (in_mask_) throw std::runtime_error("no mask");
    return {~0U};
  }
  bool accept(int32_t) override { throw 42; }

 private:
  bool in_mask_;
};

TEST(SampleOutput, EndsWithAnErrorWhereItsConstraintThrows) {
  SamplingParams params;
  const auto spec = std::make_shared<const SamplingSpec>(
      SamplingSpec{.params = std::make_shared<const SamplingParams>(params)});
  const std::vector<int32_t> eos_ids = {2};
  for (const bool in_mask : {true, false}) {
    SampleOutput sample(SampleOutput::start_of(&tokenizer(), *spec, {5, 6}), spec, eos_ids, 0,
                        std::make_unique<Throws>(in_mask));
    EXPECT_FALSE(first_mask(sample).empty());
    EXPECT_EQ(sample.forced_end().has_value(), in_mask);
    SpanResult sampled = span_of(std::array{int32_t{9}});
    const Output output = sample.accept(std::move(sampled), 0, false);
    EXPECT_EQ(output.finish_reason, FinishReason::kError);
    EXPECT_NE(output.error.message().find("constraint threw"), std::string::npos)
        << output.error.message();
  }
}

TEST(BadWords, AreSpelledWithAndWithoutALeadingSpace) {
  const std::vector<std::vector<int32_t>> words =
      bad_words_ids(tokenizer(), {"apples", " pears"}).value();
  for (const auto& ids : words) {
    const std::string text = tokenizer().decode(ids, false);
    EXPECT_TRUE(text == "apples" || text == " apples" || text == "pears" || text == " pears")
        << text;
  }
  EXPECT_GE(words.size(), 2U);
}

// The least CPU time of five runs.
int64_t ns_to_prepare(InputProcessor& processor, const Request& request) {
  int64_t least = INT64_MAX;
  for (int i = 0; i < 5; ++i) {
    least =
        std::min(least, cpu_ns_of([&] { EXPECT_TRUE(processor.prepare(request, nullptr).ok()); }));
  }
  return least;
}

TEST(InputProcessor, NSamplesShareThePrompt) {
  constexpr int kLength = 50000;
  InputProcessor processor(
      Tokenizer::from_json(embedded_model().tokenizer_json, "embedded").value(),
      {.vocab_size = 1024, .max_model_len = kLength + 64, .eos_ids = {2}});
  Request request;
  while (request.prompt_token_ids.size() < kLength) {
    request.prompt_token_ids.push_back(
        static_cast<int32_t>(10 + request.prompt_token_ids.size() % 900));
  }
  const int64_t one = ns_to_prepare(processor, request);
  request.sampling.n = 128;
  const int64_t all = ns_to_prepare(processor, request);
  EXPECT_LT(all, 8 * one) << "the prompt is detokenized once per sample";
  const Submission submission = processor.prepare(request, nullptr).value();
  const std::vector<int32_t>* const prompt = &submission.seqs.front()->token_ids.get();
  for (const auto& seq : submission.seqs) {
    EXPECT_EQ(&seq->token_ids.get(), prompt) << "the prompt is copied per sample";
    EXPECT_NE(seq->prompt_hashes, nullptr);
    EXPECT_EQ(seq->prompt_hashes, submission.seqs.front()->prompt_hashes)
        << "the prompt is hashed per sample";
  }
}

TEST(InputProcessor, FindsStopIdsThatAreNotInOrder) {
  InputProcessor processor(nullptr, {.vocab_size = 100, .max_model_len = 64, .eos_ids = {2}});
  Request request;
  request.prompt_token_ids = {5};
  request.sampling.stop_token_ids = {50, 7, 90, 3};
  for (const int32_t id : request.sampling.stop_token_ids) {
    Submission submission = processor.prepare(request, nullptr).value();
    SpanResult sampled = span_of(std::array{int32_t{id}});
    const Output output = submission.sample_outputs.front().accept(std::move(sampled), 0, false);
    EXPECT_EQ(output.finish_reason, FinishReason::kStop);
    EXPECT_EQ(output.stop_reason, std::to_string(id));
  }
}

TEST(InputProcessor, RefusesTextParametersWithoutATokenizer) {
  InputProcessor::Limits limits = {.vocab_size = 100, .max_model_len = 64, .eos_ids = {2}};
  InputProcessor without(nullptr, limits);
  Request request;
  request.prompt_token_ids = {5};
  request.sampling.stop = {"x"};
  EXPECT_FALSE(without.prepare(request, nullptr).ok());
  request.sampling.stop.clear();
  EXPECT_TRUE(without.prepare(request, nullptr).ok());
  request.sampling.bad_words = {"x"};
  EXPECT_FALSE(without.prepare(request, nullptr).ok());
}

}  // namespace

namespace {

constexpr int32_t kEos = 2;

TEST(StopToken, EndOfSequenceEndsUnlessIgnored) {
  SamplingParams params;
  const std::vector<int32_t> eos = {kEos};
  const auto stop = check_stop_token(params, eos, kEos, 1, false);
  ASSERT_TRUE(stop);
  EXPECT_EQ(stop->reason, FinishReason::kStop);
  EXPECT_EQ(stop->stop_reason, "");
  params.ignore_eos = true;
  EXPECT_FALSE(check_stop_token(params, eos, kEos, 1, false));
}

TEST(StopToken, StopIdSaysWhichOne) {
  SamplingParams params;
  params.stop_token_ids = {7};
  const auto stop = check_stop_token(params, {}, 7, 1, false);
  ASSERT_TRUE(stop);
  EXPECT_EQ(stop->stop_reason, "7");
}

TEST(StopToken, MinTokensHoldsBothBack) {
  SamplingParams params;
  params.stop_token_ids = {7};
  params.min_tokens = 3;
  const std::vector<int32_t> eos = {kEos};
  EXPECT_FALSE(check_stop_token(params, eos, 7, 2, false));
  EXPECT_FALSE(check_stop_token(params, eos, kEos, 2, false));
  EXPECT_TRUE(check_stop_token(params, eos, 7, 3, false));
}

TEST(StopToken, LengthEndsWhateverMinTokensSays) {
  SamplingParams params;
  params.min_tokens = 9;
  const auto stop = check_stop_token(params, {}, 5, 1, true);
  ASSERT_TRUE(stop);
  EXPECT_EQ(stop->reason, FinishReason::kLength);
}

// Nanoseconds to check 1,000 tokens that are not in `params.stop_token_ids`.
int64_t ns_to_check(const SamplingParams& params) {
  return cpu_ns_of([&] {
    for (int i = 0; i < 1000; ++i) EXPECT_FALSE(check_stop_token(params, {}, 1, 1, false));
  });
}

TEST(StopToken, ManyStopIdsAreNotScanned) {
  constexpr int32_t kVocabSize = 256000;
  SamplingParams params;
  for (int32_t id = 2; id < kVocabSize; ++id) params.stop_token_ids.push_back(id);
  const int64_t of_scans = cpu_ns_of([&] {
    for (int i = 0; i < 1000; ++i) {
      EXPECT_EQ(std::ranges::count(params.stop_token_ids, i % 2), 0);
    }
  });
  EXPECT_LT(10 * ns_to_check(params), of_scans);
}

std::optional<StopStringMatch> find(std::string_view text, const std::vector<std::string>& stops,
                                    size_t from = 0) {
  StopSearch search(stops);
  search.skip_to(from);
  return search.read(text);
}

size_t held_back(std::string_view text, const std::vector<std::string>& stops) {
  StopSearch search(stops);
  EXPECT_FALSE(search.read(text));
  return search.num_held_back();
}

TEST(StopString, FirstToEndWinsAndLongestOfThoseThatEndTogether) {
  const auto match = find("..xbcd", {"abcd", "bc", "xbc"});
  ASSERT_TRUE(match);
  EXPECT_EQ(match->stop_idx, 2U);
  EXPECT_EQ(match->begin, 2U);
  EXPECT_EQ(match->end, 5U);
}

TEST(StopString, TextBeforeTheStartIsNotSearched) {
  EXPECT_FALSE(find("ab..", {"ab"}, 1));
  EXPECT_TRUE(find("abab", {"ab"}, 1));
  EXPECT_FALSE(find("ab", {"ab"}, 7));
}

TEST(StopString, ACopyReadsAheadByItself) {
  StopSearch search(std::vector<std::string>{"abc"});
  EXPECT_FALSE(search.read("ab"));
  EXPECT_TRUE(StopSearch(search).read("abc"));
  EXPECT_EQ(search.num_held_back(), 2U);
  EXPECT_FALSE(search.read("abd"));
  EXPECT_EQ(search.num_held_back(), 0U);
}

TEST(HeldBack, IsOnlyTheTextThatCouldBecomeAStop) {
  const std::vector<std::string> stops = {"Question", "estate"};
  EXPECT_EQ(held_back("The Quest", stops), 5U);  // "Quest" is longer than "est"
  EXPECT_EQ(held_back("The best", stops), 3U);   // "est"
  EXPECT_EQ(held_back("The end.", stops), 0U);
  EXPECT_EQ(held_back("", stops), 0U);
  EXPECT_EQ(held_back("text", {}), 0U);
}

// A reference implementation: the longest stop string at the end of `text`, if any.
std::optional<StopStringMatch> match_at_end(std::string_view text,
                                            const std::vector<std::string>& stops) {
  std::optional<StopStringMatch> longest;
  for (size_t i = 0; i < stops.size(); ++i) {
    if (!text.ends_with(stops[i])) continue;
    const size_t begin = text.size() - stops[i].size();
    if (!longest || begin < longest->begin) longest = {begin, text.size(), i};
  }
  return longest;
}

size_t held_back_by_definition(std::string_view text, const std::vector<std::string>& stops) {
  size_t longest = 0;
  for (const std::string_view stop : stops) {
    for (size_t size = 1; size < stop.size(); ++size) {
      if (text.ends_with(stop.substr(0, size))) longest = std::max(longest, size);
    }
  }
  return longest;
}

TEST(StopString, IsFoundAsTheDefinitionSaysInAnyText) {
  std::mt19937 random(7);
  const auto text_of = [&](size_t size) {
    std::string text(size, 'a');
    for (char& byte : text) byte = "aab"[random() % 3];
    return text;
  };
  for (int round = 0; round < 2000; ++round) {
    std::vector<std::string> stops(random() % 4);
    for (std::string& stop : stops) stop = text_of(1 + random() % 9);
    const std::string text = text_of(60);
    StopSearch search(stops);
    for (size_t size = 1; size <= text.size(); ++size) {
      const std::string_view begun = std::string_view(text).substr(0, size);
      const auto expected = match_at_end(begun, stops);
      const auto match = search.read(begun);
      ASSERT_EQ(match.has_value(), expected.has_value()) << begun;
      if (match) {
        EXPECT_EQ(match->stop_idx, expected->stop_idx) << begun;
        EXPECT_EQ(match->begin, expected->begin) << begun;
        EXPECT_EQ(match->end, expected->end) << begun;
        break;
      }
      ASSERT_EQ(search.num_held_back(), held_back_by_definition(begun, stops)) << begun;
    }
  }
}

}  // namespace

}  // namespace quire
