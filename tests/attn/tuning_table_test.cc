#include "attn/tuning_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "support/scratch_directory.h"

namespace quire {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::string_view kHeader =
    "phase,num_heads,num_kv_heads,head_dim,page_size,q_dtype,kv_dtype,num_reqs,q_len,kv_len,"
    "lengths,backend,us\n";

TuningPoint point_of(int num_reqs, int kv_len) {
  return {.num_heads = 32,
          .num_kv_heads = 8,
          .head_dim = 128,
          .page_size = 16,
          .q = DType::kBF16,
          .kv = DType::kBF16,
          .num_reqs = num_reqs,
          .q_len = 1,
          .kv_len = kv_len};
}

constexpr std::string_view kNames[] = {"native", "flashinfer", "xqa", "cudnn"};

std::vector<TuningRow> random_rows(std::mt19937& random, int count) {
  const auto pick = [&](std::initializer_list<int> values) {
    return values.begin()[random() % values.size()];
  };
  std::vector<TuningRow> rows;
  for (int i = 0; i < count; ++i) {
    TuningPoint point = point_of(pick({1, 4, 16, 64, 256}), pick({256, 1024, 4096}));
    point.phase = pick({0, 1}) == 0 ? Phase::kDecode : Phase::kPrefill;
    point.head_dim = pick({64, 128});
    point.num_kv_heads = pick({4, 8});
    point.ragged = pick({0, 1}) == 1;
    point.q_len = pick({1, 1, 3, 5});
    point.kv = pick({0, 1}) == 0 ? DType::kBF16 : DType::kF8E4M3;
    rows.push_back({point, std::string(kNames[random() % 4]),
                    1.0 + static_cast<double>(random() % 100'000) / 8.0});
  }
  return rows;
}

TEST(TuningTable, ReadsItsOwnOutput) {
  std::mt19937 random(1);
  for (int round = 0; round < 50; ++round) {
    const std::vector<TuningRow> rows = random_rows(random, 60);
    const TuningTable direct(rows);
    const auto parsed = TuningTable::parse("# a comment\n\n" + to_csv(rows), "table.csv");
    ASSERT_TRUE(parsed.ok()) << parsed.status().message();
    ASSERT_EQ(parsed->points().size(), direct.points().size());
    for (size_t i = 0; i < direct.points().size(); ++i) {
      EXPECT_EQ(parsed->points()[i].point, direct.points()[i].point);
      ASSERT_EQ(parsed->points()[i].times.size(), direct.points()[i].times.size());
      for (const TuningTable::Time& time : direct.points()[i].times) {
        EXPECT_DOUBLE_EQ(parsed->points()[i].find(time.backend)->us, time.us);
      }
    }
  }
}

// In any table, a measured point gets its fastest candidate. The choice is a candidate that was
// measured at the deciding point, which is of the same phase, and no candidate there is faster by
// more than 1 %.
TEST(TuningTable, TheBestIsTheFastestAtTheNearestPoint) {
  std::mt19937 random(2);
  for (int round = 0; round < 300; ++round) {
    std::vector<TuningRow> rows = random_rows(random, static_cast<int>(random() % 40));
    const TuningTable table(rows);
    std::vector<std::string_view> candidates(std::begin(kNames), std::end(kNames));
    std::shuffle(candidates.begin(), candidates.end(), random);
    candidates.resize(1 + random() % 4);
    const TuningPoint point = random_rows(random, 1)[0].point;
    const TuningTable::Best best = table.best(point, candidates);
    ASSERT_LT(best.candidate, candidates.size());
    const auto any_measured = [&](const TuningTable::MeasuredPoint& measured) {
      return measured.point.phase == point.phase &&
             std::any_of(candidates.begin(), candidates.end(),
                         [&](std::string_view name) { return measured.find(name) != nullptr; });
    };
    const bool any = std::any_of(table.points().begin(), table.points().end(), any_measured);
    ASSERT_EQ(best.measured != nullptr, any);
    if (!any) {
      EXPECT_EQ(best.candidate, 0U);
      continue;
    }
    EXPECT_TRUE(any_measured(*best.measured));
    const TuningTable::Time* chosen = best.measured->find(candidates[best.candidate]);
    ASSERT_NE(chosen, nullptr);
    for (const std::string_view name : candidates) {
      const TuningTable::Time* other = best.measured->find(name);
      if (other != nullptr) {
        EXPECT_LE(chosen->us, other->us * 1.01);
      }
    }
    for (const TuningTable::MeasuredPoint& measured : table.points()) {
      if (measured.point == point && any_measured(measured)) {
        EXPECT_EQ(best.measured, &measured);
      }
    }
  }
}

// A selector keeps only the part of the table for its shape, and chooses as the whole table does.
TEST(TuningTable, ThePartForAShapeDecidesAsTheWhole) {
  std::mt19937 random(5);
  for (int round = 0; round < 300; ++round) {
    const TuningTable table(random_rows(random, static_cast<int>(random() % 60)));
    std::vector<std::string_view> candidates(std::begin(kNames), std::end(kNames));
    std::shuffle(candidates.begin(), candidates.end(), random);
    candidates.resize(1 + random() % 4);
    TuningPoint point = random_rows(random, 1)[0].point;
    const TuningTable part = table.restricted_to(point, candidates);
    EXPECT_LE(part.points().size(), table.points().size());
    for (int i = 0; i < 10; ++i) {
      const TuningPoint sizes = random_rows(random, 1)[0].point;
      point.num_reqs = sizes.num_reqs;
      point.kv_len = sizes.kv_len;
      point.ragged = sizes.ragged;
      if (point.q_len > 1) point.q_len = 2 + static_cast<int>(random() % 8);
      const TuningTable::Best whole = table.best(point, candidates);
      const TuningTable::Best best = part.best(point, candidates);
      ASSERT_EQ(best.candidate, whole.candidate);
      ASSERT_EQ(best.measured == nullptr, whole.measured == nullptr);
      if (best.measured != nullptr) {
        ASSERT_EQ(best.measured->point, whole.measured->point);
      }
    }
  }
}

TEST(TuningTable, EquallyFastBackendsAreChosenByOrder) {
  const TuningPoint point = point_of(16, 1024);
  const TuningTable table(std::vector<TuningRow>{
      {point, "cudnn", 100.0}, {point, "xqa", 100.9}, {point, "native", 101.1}});
  const auto choice = [&](const std::vector<std::string_view>& candidates) {
    return candidates[table.best(point, candidates).candidate];
  };
  EXPECT_EQ(choice({"flashinfer", "xqa", "cudnn", "native"}), "xqa");
  EXPECT_EQ(choice({"cudnn", "xqa"}), "cudnn");
  EXPECT_EQ(choice({"native", "cudnn", "xqa"}), "cudnn");  // native is not within the tie
  EXPECT_EQ(choice({"native", "xqa"}), "native");          // without cudnn, it is
}

TEST(TuningTable, TheOrderOfRowsDoesNotMatter) {
  std::mt19937 random(3);
  for (int round = 0; round < 100; ++round) {
    std::vector<TuningRow> rows = random_rows(random, 30);
    // The table has one row per point and backend, because the later of two would win.
    const auto same = [](const TuningRow& a, const TuningRow& b) {
      return a.point == b.point && a.backend == b.backend;
    };
    for (size_t i = 0; i < rows.size(); ++i) {
      while (std::any_of(rows.begin() + static_cast<long>(i) + 1, rows.end(),
                         [&](const TuningRow& row) { return same(row, rows[i]); })) {
        rows.erase(rows.begin() + static_cast<long>(i));
      }
    }
    const TuningTable table(rows);
    std::shuffle(rows.begin(), rows.end(), random);
    const TuningTable shuffled(rows);
    const TuningPoint point = random_rows(random, 1)[0].point;
    const TuningTable::Best a = table.best(point, kNames);
    const TuningTable::Best b = shuffled.best(point, kNames);
    EXPECT_EQ(a.candidate, b.candidate);
    if (a.measured != nullptr) {
      EXPECT_EQ(a.measured->point, b.measured->point);
    }
  }
}

TEST(TuningTable, TheNearestCellInFactorsDecides) {
  const std::vector<TuningRow> rows = {{point_of(1, 1024), "xqa", 5},
                                       {point_of(1, 1024), "native", 6},
                                       {point_of(256, 1024), "xqa", 60},
                                       {point_of(256, 1024), "native", 50}};
  const TuningTable table(rows);
  const std::string_view names[] = {"native", "xqa"};
  const auto best_at = [&](int num_reqs, int kv_len) {
    return names[table.best(point_of(num_reqs, kv_len), names).candidate];
  };
  EXPECT_EQ(best_at(1, 1024), "xqa");
  EXPECT_EQ(best_at(15, 1024), "xqa");
  EXPECT_EQ(best_at(17, 1024), "native");
  EXPECT_EQ(best_at(256, 131072), "native");
}

TEST(TuningTable, TypesComeBeforeShapesAndShapesBeforeSizes) {
  TuningPoint other_type = point_of(16, 1024);
  other_type.kv = DType::kF8E4M3;
  TuningPoint other_dim = point_of(16, 1024);
  other_dim.head_dim = 64;
  const std::vector<TuningRow> rows = {
      {other_type, "native", 1}, {other_dim, "xqa", 1}, {point_of(256, 16384), "cudnn", 1}};
  EXPECT_EQ(kNames[TuningTable(rows).best(point_of(16, 1024), kNames).candidate], "cudnn");
  EXPECT_EQ(
      kNames[TuningTable(std::span(rows).first(2)).best(point_of(16, 1024), kNames).candidate],
      "xqa");
}

TEST(TuningTable, RaggedComesAfterShapesAndBeforeSizes) {
  TuningPoint ragged_far = point_of(256, 131072);
  ragged_far.ragged = true;
  TuningPoint ragged_other_dim = point_of(16, 1024);
  ragged_other_dim.ragged = true;
  ragged_other_dim.head_dim = 64;
  const std::vector<TuningRow> rows = {
      {point_of(16, 1024), "native", 1}, {ragged_far, "xqa", 1}, {ragged_other_dim, "cudnn", 1}};
  TuningPoint asked = point_of(16, 1024);
  EXPECT_EQ(kNames[TuningTable(rows).best(asked, kNames).candidate], "native");
  asked.ragged = true;
  EXPECT_EQ(kNames[TuningTable(rows).best(asked, kNames).candidate], "xqa");
  const TuningTable full_only{std::span<const TuningRow>(rows).first(1)};
  EXPECT_EQ(kNames[full_only.best(asked, kNames).candidate], "native");
}

// The query length is compared first: a step of several query tokens uses only points of the
// nearest length, by the powers of two that a kernel's tiles hold.
TEST(TuningTable, SeveralQueryTokensAreMeasuredApart) {
  const auto point = [](int q_len, int num_reqs = 16) {
    TuningPoint of_length = point_of(num_reqs, 1024);
    of_length.q_len = q_len;
    return of_length;
  };
  TuningPoint other_type = point(3);
  other_type.kv = DType::kF8E4M3;
  const std::vector<TuningRow> rows = {{point(1), "xqa", 1}, {other_type, "native", 1}};
  const TuningTable few(rows);
  EXPECT_EQ(kNames[few.best(point(5), kNames).candidate], "native");
  EXPECT_EQ(kNames[few.best(point(1, 4096), kNames).candidate], "xqa");
  // If only one token was measured, its times are used.
  const TuningTable one_token{std::span<const TuningRow>(rows).first(1)};
  EXPECT_EQ(kNames[one_token.best(point(5), kNames).candidate], "xqa");

  std::vector<TuningRow> each;
  for (const int q_len : {1, 2, 3, 5, 9}) each.push_back({point(q_len), "native", 1});
  const TuningTable table(each);
  const auto nearest = [&](int q_len) {
    return table.best(point(q_len), kNames).measured->point.q_len;
  };
  for (const auto& [q_len, expected] : std::vector<std::pair<int, int>>{
           {1, 1}, {2, 2}, {3, 3}, {4, 3}, {5, 5}, {6, 5}, {8, 5}, {9, 9}, {16, 9}, {60, 9}}) {
    EXPECT_EQ(nearest(q_len), expected) << q_len;
  }
}

TEST(TuningTable, ADecodeStepReadsNoMoreThanItsWindow) {
  AttentionShape shape = {.num_heads = 64, .num_kv_heads = 8, .head_dim = 64, .window = 128};
  EXPECT_EQ(tuning_point(shape, Phase::kDecode, 4, 1, 8192).kv_len, 128);
  EXPECT_EQ(tuning_point(shape, Phase::kDecode, 4, 1, 100).kv_len, 100);
  EXPECT_EQ(tuning_point(shape, Phase::kPrefill, 4, 8192, 8192).kv_len, 8192);
  shape.window = 0;
  EXPECT_EQ(tuning_point(shape, Phase::kDecode, 4, 1, 8192).kv_len, 8192);
}

TEST(TuningTable, RefusesInOneLine) {
  const std::string good = "decode,32,8,128,16,bf16,bf16,64,1,4096,full,xqa,71.25\n";
  const auto refusal = [](const std::string& csv) {
    const auto table = TuningTable::parse(csv, "a\ntable.csv");
    EXPECT_FALSE(table.ok()) << csv;
    return table.ok() ? std::string() : table.status().message();
  };
  const std::string head(kHeader);
  EXPECT_TRUE(TuningTable::parse(head + good, "t").ok());
  EXPECT_TRUE(TuningTable::parse("", "t").ok());
  const std::vector<std::pair<std::string, std::string>> cases = {
      {good, "line 1: the header"},
      {head + "decode,32\n", "line 2: the number of fields; got 2, expected 13"},
      {head + good + "verify" + good.substr(6), "line 3: phase; got"},
      {head + "decode,0,8,128,16,bf16,bf16,64,1,4096,full,xqa,71\n", "num_heads"},
      {head + "decode,32,8,128,16,bf16,bf16,99999999999,1,4096,full,xqa,71\n", "num_reqs"},
      {head + "decode,32,8,128,16,bf16,bf16,64,1,40x6,full,xqa,71\n", "kv_len"},
      {head + "decode,32,8,128,16,int4,bf16,64,1,4096,full,xqa,71\n", "q_dtype"},
      {head + "decode,32,8,128,16,bf16,i32,64,1,4096,full,xqa,71\n", "kv_dtype"},
      {head + "decode,32,8,128,16,bf16,bf16,64,1,4096,some,xqa,71\n", "full or ragged"},
      {head + "decode,32,8,128,16,bf16,bf16,64,1,4096,full,fa9,71\n", "one of cpu"},
      {head + "decode,32,8,128,16,bf16,bf16,64,1,4096,full,xqa,nan\n", "us"},
      {head + "decode,32,8,128,16,bf16,bf16,64,1,4096,full,xqa,-1\n", "us"},
      {head + "decode,32,8,128,16,bf16,bf16,64,1,4096,full,xqa,inf\n", "us"},
      {head + "decode,32,8,128,16,bf16,bf16,64,1,4096,full,xqa,7,7\n", "fields; got 13 or more"},
      {head + std::string(5000, 'x') + "\x1b[2J\n", "fields"},
      {head + std::string(5000, ',') + "\n", "fields"}};
  for (const auto& [csv, expected] : cases) {
    EXPECT_THAT(refusal(csv), AllOf(HasSubstr(expected), HasSubstr("[tuning]"),
                                    Not(HasSubstr("\n")), Not(HasSubstr("\x1b"))));
  }
  std::string many = head;
  for (int i = 0; i < 20'001; ++i) many += good;
  EXPECT_THAT(refusal(many), HasSubstr("line 20002: too many rows"));
  EXPECT_FALSE(TuningTable::read("/no/such/table.csv").ok());
  const testing::ScratchDirectory scratch;
  const std::string empty = scratch.write("table.csv", "# nothing was measured\n");
  EXPECT_THAT(TuningTable::read(empty).status().message(), HasSubstr("has no measurements"));
}

TEST(TuningTable, SurvivesAnyBytes) {
  std::mt19937 random(4);
  const std::string good = to_csv(random_rows(random, 5));
  for (int round = 0; round < 2000; ++round) {
    std::string csv = good;
    for (int i = 0; i < 3; ++i) csv[random() % csv.size()] = static_cast<char>(random());
    csv.resize(random() % (csv.size() + 1));
    const auto table = TuningTable::parse(csv, "t");
    if (table.ok()) {
      EXPECT_LE(table->points().size(), 5U);
    }
  }
}

TEST(BuiltinTables, AreFoundByTheDevicesName) {
  EXPECT_TRUE(builtin_table({.name = "cpu"}).points().empty());
  EXPECT_TRUE(builtin_table({.name = "NVIDIA H100 PCIe"}).points().empty());
  EXPECT_FALSE(builtin_table({.name = "NVIDIA H100 80GB HBM3"}).points().empty());
  const TuningTable table = builtin_table({.name = "NVIDIA H200"});
  EXPECT_GE(table.points().size(), 100U);
  for (const TuningTable::MeasuredPoint& measured : table.points())
    EXPECT_FALSE(measured.times.empty());
}

}  // namespace
}  // namespace quire
