#include "tensor/gguf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/json_writer.h"
#include "support/gguf_bytes.h"
#include "support/scratch_directory.h"
#include "support/shared_data.h"

namespace quire::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr uint32_t kF32 = 0;
constexpr uint32_t kQ8 = 8;

std::string error_of(const std::string& file) {
  const auto header = GgufHeader::parse(bytes_of(file), "m.gguf");
  return header.ok() ? "" : header.status().message();
}

std::string error_of(const GgufWriter& writer) {
  return error_of(writer.file());
}

// The file that the `gguf` package wrote (tools/golden/gguf_blocks.py).
TEST(Gguf, ReadsTheFileOfAnotherWriter) {
  const std::string file =
      read_file(source_path("tests/tensor/golden/writer.gguf"), 1 << 20).value();
  const GgufHeader header = GgufHeader::parse(bytes_of(file), "writer.gguf").value();
  EXPECT_EQ(header.find("general.architecture")->text(), "llama");
  EXPECT_EQ(header.find("kinds.uint8")->integer(), 200);
  EXPECT_EQ(header.find("kinds.int8")->integer(), -100);
  EXPECT_EQ(header.find("kinds.uint16")->integer(), 60000);
  EXPECT_EQ(header.find("kinds.int16")->integer(), -30000);
  EXPECT_EQ(header.find("kinds.uint32")->integer(), 4000000000);
  EXPECT_EQ(header.find("kinds.int32")->integer(), -2000000000);
  EXPECT_EQ(header.find("kinds.uint64")->integer(), int64_t{1} << 40);
  EXPECT_EQ(header.find("kinds.int64")->integer(), -(int64_t{1} << 40));
  EXPECT_EQ(header.find("kinds.bool")->boolean(), true);
  EXPECT_EQ(header.find("kinds.string")->text(), "a text");
  EXPECT_THAT(*header.find("kinds.texts")->texts(), ElementsAre("one", "", "three"));
  EXPECT_THAT(*header.find("kinds.integers")->numbers(), ElementsAre(1, -2, 3));
  EXPECT_THAT(*header.find("kinds.floats")->numbers(), ElementsAre(0.5, -1.5));
  EXPECT_EQ(header.find("absent"), nullptr);
  EXPECT_EQ(header.find("kinds.string")->integer(), std::nullopt);
  EXPECT_EQ(header.find("kinds.texts")->text(), std::nullopt);
  EXPECT_EQ(header.find("kinds.int8")->number(), -100.0);
  EXPECT_EQ(header.find("kinds.floats")->number(), std::nullopt);
  EXPECT_EQ(header.find("kinds.bool")->integer(), std::nullopt);

  ASSERT_EQ(header.tensors().size(), 3U);
  const GgufTensor& vector = header.tensors()[0];
  EXPECT_THAT(vector.shape, ElementsAre(5));
  float last = 0;
  dequantize(*vector.type, vector.bytes.data() + 16, &last);
  EXPECT_EQ(last, 4.0F);
  EXPECT_THAT(header.tensors()[1].shape, ElementsAre(2, 3));
  EXPECT_EQ(header.tensors()[1].type->name, std::string("F16"));
  EXPECT_THAT(header.tensors()[2].shape, ElementsAre(2, 64));
  EXPECT_EQ(header.tensors()[2].bytes.size(), 2U * 2 * 34);
}

TEST(Gguf, ValuesBecomeJson) {
  const std::string file = GgufWriter()
                               .real("epsilon", 1e-5F)
                               .numbers<int32_t>("list", {1, -2})
                               .texts("texts", {"a\"b"})
                               .file();
  const GgufHeader header = GgufHeader::parse(bytes_of(file), "m.gguf").value();
  JsonWriter json;
  json.begin_array();
  for (const char* key : {"epsilon", "list", "texts"}) header.find(key)->write_json(json);
  json.end_array();
  EXPECT_EQ(json.text(), "[1e-05,[1,-2],[\"a\\\"b\"]]");
}

GgufWriter small_model() {
  return GgufWriter()
      .text("general.architecture", "llama")
      .texts("tokenizer.ggml.tokens", {"a", "bc"})
      .numbers<float>("tokenizer.ggml.scores", {0.5F, 1})
      .floats("a", {2, 2}, {1, 2, 3, 4})
      .tensor("b", {1, 32}, kQ8, std::string(34, 'x'));
}

TEST(Gguf, EveryTruncationIsOneLine) {
  const std::string whole = small_model().file();
  EXPECT_EQ(error_of(whole), "");
  const size_t last_byte = whole.size() - 30;  // padding follows
  for (size_t size = 0; size < last_byte; ++size) {
    const std::string error = error_of(whole.substr(0, size));
    EXPECT_THAT(error,
                AllOf(HasSubstr("[gguf] m.gguf: "), HasSubstr("expected"), Not(HasSubstr("\n"))))
        << size;
  }
}

TEST(Gguf, OtherVersionsAreNamed) {
  EXPECT_EQ(error_of(small_model().file(2)), "");
  EXPECT_THAT(error_of(small_model().file(1)), HasSubstr("version; got 1, expected 2 or 3"));
  EXPECT_THAT(
      error_of(small_model().file(4)),
      HasSubstr("got 4, expected 2 or 3, little endian: the file is newer than this build"));
  EXPECT_THAT(error_of(small_model().file(0x03000000)), HasSubstr("got 3 (big endian)"));
  EXPECT_THAT(error_of("PK\x03\x04 and more bytes"), HasSubstr("expected \"GGUF\""));
  EXPECT_THAT(error_of(""), HasSubstr("the file; got no bytes, expected a GGUF file"));
}

TEST(Gguf, HugeCountsAreRefusedBeforeAnyAllocation) {
  const uint64_t huge = uint64_t{1} << 60;
  const auto raw = [](auto value) { return GgufWriter::raw(value); };
  const std::string begin = "GGUF" + raw(uint32_t{3});
  EXPECT_THAT(error_of(begin + raw(uint64_t{0}) + raw(huge) + std::string(64, '\0')),
              HasSubstr("the metadata; got 1152921504606846976 entries"));
  EXPECT_THAT(error_of(begin + raw(huge) + raw(uint64_t{0}) + std::string(64, '\0')),
              HasSubstr("the tensors; got"));
  EXPECT_THAT(error_of(GgufWriter().field("k", 8, raw(huge))), HasSubstr("end of the file"));
  for (const uint32_t kind : {8U, 4U}) {
    EXPECT_THAT(error_of(GgufWriter().field("k", 9, raw(kind) + raw(huge))),
                HasSubstr("metadata \"k\"; got"));
  }
  EXPECT_THAT(error_of(GgufWriter().tensor_at("t", {int64_t{1} << 40, int64_t{1} << 40}, kF32, 0)),
              HasSubstr("less than 2^56"));
  EXPECT_THAT(error_of(GgufWriter().tensor_at("t", {int64_t{1} << 40}, kF32, 0)),
              HasSubstr("end of the file"));
  EXPECT_THAT(error_of(GgufWriter()
                           .floats("s", {8}, std::vector<float>(8))
                           .tensor_at("t", {1}, kF32, ~uint64_t{31})),
              HasSubstr("end of the file"));
}

TEST(Gguf, MetadataIsStrict) {
  const auto raw = [](auto value) { return GgufWriter::raw(value); };
  EXPECT_THAT(error_of(GgufWriter().number("k", 1).number("k", 2)), HasSubstr("the key twice"));
  EXPECT_THAT(error_of(GgufWriter().field("k", 13, raw(uint64_t{0}))), HasSubstr("kind 13"));
  EXPECT_THAT(
      error_of(GgufWriter().field(
          "k", 9, raw(uint32_t{9}) + raw(uint64_t{1}) + raw(uint32_t{4}) + raw(uint64_t{0}))),
      HasSubstr("an array of arrays"));
  constexpr uint64_t kTooMany = (1 << 22) + 1;
  EXPECT_THAT(error_of(GgufWriter().field(
                  "k", 9, raw(uint32_t{0}) + raw(kTooMany) + std::string(kTooMany, '\0'))),
              HasSubstr("got 4194305 entries, expected at most 4194304"));
  EXPECT_THAT(error_of(GgufWriter().number("general.alignment", 24)), HasSubstr("a power of 2"));
  EXPECT_THAT(error_of(GgufWriter().number("general.alignment", 0)), HasSubstr("a power of 2"));
  EXPECT_THAT(error_of(GgufWriter().text("general.alignment", "x")), HasSubstr("got no integer"));
}

TEST(Gguf, TensorsAreStrict) {
  const std::vector<float> eight(8);
  EXPECT_THAT(error_of(GgufWriter().floats("t", {2}, {1, 2}).tensor_at("u", {2}, kF32, 4)),
              HasSubstr("tensor \"u\"; got offset 4, expected a multiple"));
  EXPECT_THAT(
      error_of(
          GgufWriter().floats("t", {16}, std::vector<float>(16)).tensor_at("u", {2}, kF32, 32)),
      HasSubstr("tensor \"u\"; got bytes of tensor \"t\""));
  EXPECT_THAT(error_of(GgufWriter().tensor_at("t", {}, kF32, 0)), HasSubstr("0 dimensions"));
  EXPECT_THAT(error_of(GgufWriter().tensor_at("t", {0, 4}, kF32, 0)), HasSubstr("dimension of 0"));
  EXPECT_THAT(error_of(GgufWriter().tensor_at("t", {1, 1, 1, 1, 1}, kF32, 0)),
              HasSubstr("5 dimensions"));
  EXPECT_THAT(error_of(GgufWriter().tensor_at("t", {2, 33}, kQ8, 0)),
              HasSubstr("rows of 33 elements, expected a multiple of the 32"));
  EXPECT_THAT(error_of(GgufWriter().tensor_at("t", {256}, 16, 0)),
              AllOf(HasSubstr("got IQ2_XXS, expected F32"), HasSubstr("such as Q4_K_M")));
  EXPECT_THAT(error_of(GgufWriter().tensor_at("t", {256}, 77, 0)), HasSubstr("got type 77"));
  const std::string twice = GgufWriter().floats("t", {8}, eight).floats("t", {8}, eight).file();
  EXPECT_THAT(GgufModel::from_memory(bytes_of(twice), "m.gguf").status().message(),
              HasSubstr("tensor \"t\"; got it twice"));
}

// The tensors fill the file, so that a wrong type or shape in the header is found.
TEST(Gguf, TensorsFollowEachOther) {
  const std::vector<float> eight(8);
  const auto begin = [&] { return GgufWriter().floats("t", {8}, eight); };
  const auto error_with = [&](const GgufWriter& header, size_t data_bytes) {
    return error_of(header.header() + std::string(data_bytes, 'x'));
  };
  EXPECT_EQ(error_with(begin().tensor_at("u", {2}, kF32, 32), 40), "");
  EXPECT_EQ(error_with(begin().tensor_at("u", {2}, kF32, 32), 64), "");
  EXPECT_THAT(error_with(begin().tensor_at("u", {2}, kF32, 64), 96),
              HasSubstr("tensor \"u\"; got offset 64, expected 32, the end of tensor \"t\""));
  EXPECT_THAT(error_with(GgufWriter().tensor_at("t", {2}, kF32, 32), 64),
              HasSubstr("tensor \"t\"; got offset 32, expected 0, the end of the header"));
  EXPECT_THAT(
      error_with(begin().tensor_at("u", {2}, kF32, 32), 72),
      HasSubstr("the bytes after tensor \"u\"; got 32, expected fewer than the alignment, 32"));
  // The order in the header is free.
  EXPECT_EQ(error_with(GgufWriter().tensor_at("u", {2}, kF32, 32).tensor_at("t", {8}, kF32, 0), 64),
            "");
  // A file whose header states F16 in the place of F32.
  EXPECT_THAT(
      error_with(GgufWriter().tensor_at("t", {32}, 1, 0).tensor_at("u", {8}, kF32, 128), 160),
      HasSubstr("tensor \"u\"; got offset 128, expected 64"));
}

class GgufSplit : public ::testing::Test {
 protected:
  static std::string name(int number, int count) {
    return "m-0000" + std::to_string(number) + "-of-0000" + std::to_string(count) + ".gguf";
  }
  void write(int number, const std::string& tensor, uint16_t own, uint32_t total = 2) {
    GgufWriter writer;
    writer.field("split.no", 2, GgufWriter::raw(own));
    writer.field("split.count", 2, GgufWriter::raw(uint16_t{2}));
    writer.number("split.tensors.count", total);
    writer.floats(tensor, {1}, {static_cast<float>(number)});
    scratch_.write(name(number, 2), writer.file());
  }
  Result<GgufModel> open(int number = 1) {
    return GgufModel::open(scratch_.path() / name(number, 2));
  }

  const ScratchDirectory scratch_;
};

TEST_F(GgufSplit, FilesAreOneModel) {
  write(1, "a", 0);
  write(2, "b", 1);
  const GgufModel model = open().value();
  ASSERT_EQ(model.tensors().size(), 2U);
  float value = 0;
  dequantize(*model.tensor("b")->type, model.tensor("b")->bytes.data(), &value);
  EXPECT_EQ(value, 2.0F);
  model.drop_pages(*model.tensor("b"), model.tensor("b")->bytes);
  EXPECT_EQ(model.tensor("c"), nullptr);
}

TEST_F(GgufSplit, WrongFilesAreNamed) {
  write(1, "a", 0);
  EXPECT_THAT(open().status().message(),
              AllOf(HasSubstr("file 2 of 2 of a split model is missing; expected "),
                    HasSubstr(name(2, 2))));
  write(2, "b", 0);
  EXPECT_THAT(open().status().message(), HasSubstr("got file 1 of 2, expected 2 of 2"));
  write(2, "a", 1);
  EXPECT_THAT(open().status().message(), HasSubstr("tensor \"a\"; got it twice"));
  write(2, "b", 1);
  EXPECT_THAT(open(2).status().message(), HasSubstr("ends in -00001-of-00002.gguf"));
  write(1, "a", 0, 3);
  EXPECT_THAT(open().status().message(), HasSubstr("got 2 tensors in 2 files, expected 3"));
}

}  // namespace
}  // namespace quire::testing
