#include "tensor/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/scratch_directory.h"
#include "tensor/safetensors_bytes.h"

namespace quire::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

class CheckpointTest : public ::testing::Test {
 protected:
  void write(std::string_view name, std::string_view text) {
    write_file(directory_ / name, text.data(), text.size());
  }
  // A checkpoint with one F32 tensor of shape [2].
  void write_shard(std::string_view file, std::string_view tensor) {
    const auto bytes = safetensors_bytes(
        "{\"" + std::string(tensor) + R"(":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 8);
    write_file(directory_ / file, bytes.data(), bytes.size());
  }
  std::string open_error() {
    const auto checkpoint = Checkpoint::open(directory_);
    return checkpoint.ok() ? "" : checkpoint.status().message();
  }

  const ScratchDirectory scratch_;
  const std::filesystem::path directory_ = scratch_.path();
};

constexpr const char* kIndex = "model.safetensors.index.json";

TEST_F(CheckpointTest, ReadsASingleFile) {
  write_shard("model.safetensors", "a");
  auto checkpoint = Checkpoint::open(directory_).value();
  EXPECT_TRUE(checkpoint->has("a"));
  EXPECT_FALSE(checkpoint->has("b"));
  const TensorView view = checkpoint->tensor("a", {2}).value();
  EXPECT_EQ(view.as<uint8_t>()[5], 5);
  checkpoint->release("a");
  // The pages were released and are read again.
  EXPECT_EQ(checkpoint->tensor("a", {2})->as<uint8_t>()[7], 7);
}

TEST_F(CheckpointTest, ReadsTypesFromTheHeaders) {
  const auto bytes =
      safetensors_bytes(R"({"w":{"dtype":"F8_E4M3","shape":[2,2],"data_offsets":[0,4]},)"
                        R"("w.scale":{"dtype":"BF16","shape":[2,1],"data_offsets":[4,8]},)"
                        R"("ids":{"dtype":"BOOL","shape":[8],"data_offsets":[8,16]}})",
                        16);
  write_file(directory_ / "model.safetensors", bytes.data(), bytes.size());
  auto checkpoint = Checkpoint::open(directory_).value();
  EXPECT_EQ(checkpoint->dtype_of("w"), DType::kF8E4M3);
  EXPECT_EQ(checkpoint->dtype_of("w.scale"), DType::kBF16);
  EXPECT_EQ(checkpoint->dtype_of("ids"), std::nullopt) << "no model computes with this type";
  EXPECT_EQ(checkpoint->dtype_of("b"), std::nullopt);
  EXPECT_EQ(checkpoint->tensor("w", {2, 2})->as<uint8_t>()[3], 3);
}

TEST_F(CheckpointTest, CopiesIntegers) {
  auto bytes = safetensors_bytes(R"({"wide":{"dtype":"I64","shape":[2],"data_offsets":[0,16]},)"
                                 R"("narrow":{"dtype":"I32","shape":[2],"data_offsets":[16,24]},)"
                                 R"("w":{"dtype":"F32","shape":[2],"data_offsets":[24,32]}})",
                                 32);
  const int64_t wide[] = {-3, int64_t{1} << 40};
  const int32_t narrow[] = {-5, 7};
  std::memcpy(bytes.data() + bytes.size() - 32, wide, sizeof(wide));
  std::memcpy(bytes.data() + bytes.size() - 16, narrow, sizeof(narrow));
  const auto checkpoint = Checkpoint::from_memory(std::as_bytes(std::span(bytes)), "file").value();
  EXPECT_THAT(checkpoint->integers("wide", 2).value(), ElementsAre(-3, int64_t{1} << 40));
  EXPECT_THAT(checkpoint->integers("narrow", 2).value(), ElementsAre(-5, 7));
  EXPECT_THAT(checkpoint->integers("wide", 3).status().message(), HasSubstr("expected [3]"));
  EXPECT_THAT(checkpoint->integers("w", 2).status().message(),
              HasSubstr("tensor \"w\" has the wrong type; got f32"));
}

TEST_F(CheckpointTest, ReadsShards) {
  write_shard("one.safetensors", "a");
  write_shard("two.safetensors", "b");
  write(kIndex, R"({"weight_map":{"a":"one.safetensors","b":"two.safetensors"}})");
  auto checkpoint = Checkpoint::open(directory_).value();
  EXPECT_THAT(checkpoint->names(), UnorderedElementsAre("a", "b"));
  EXPECT_TRUE(checkpoint->tensor("b", {2}).ok());
}

TEST_F(CheckpointTest, RefusesAnIndexThatLies) {
  write_shard("one.safetensors", "a");
  write_shard("two.safetensors", "a");
  EXPECT_THAT(open_error(), HasSubstr("expected model.safetensors or"));
  write(kIndex, R"({"weight_map":{}})");
  EXPECT_THAT(open_error(), HasSubstr("weight_map is missing or empty"));
  write(kIndex, R"({"weight_map":{"a":"one.safetensors","b":"one.safetensors"}})");
  EXPECT_THAT(
      open_error(),
      AllOf(HasSubstr("says that tensor \"b\" is in \"one.safetensors\", which lacks it; expected"),
            HasSubstr("download both again")));
  write(kIndex, R"({"weight_map":{"a":"three.safetensors"}})");
  EXPECT_THAT(open_error(),
              AllOf(HasSubstr("the file \"three.safetensors\", which the index lists, is missing"),
                    HasSubstr("download it again")));
  write(kIndex, R"({"weight_map":{"a":"one.safetensors","b":"two.safetensors"}})");
  EXPECT_THAT(open_error(), HasSubstr("two.safetensors"));
  write(kIndex, R"({"weight_map":{"a":7}})");
  EXPECT_THAT(open_error(), HasSubstr("expected a plain file name"));
}

TEST_F(CheckpointTest, RefusesTheSameTensorInTwoShards) {
  write_shard("one.safetensors", "a");
  const auto bytes = safetensors_bytes(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                                       R"("b":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
                                       2);
  write_file(directory_ / "two.safetensors", bytes.data(), bytes.size());
  write(kIndex, R"({"weight_map":{"a":"one.safetensors","b":"two.safetensors"}})");
  EXPECT_THAT(open_error(),
              AllOf(HasSubstr("\"a\" is both in"), HasSubstr("; expected it in one file"),
                    HasSubstr("download it again")));
}

TEST_F(CheckpointTest, ShardsCannotLeaveTheDirectory) {
  for (const char* shard : {"/etc/hostname", "../one.safetensors", "sub/one.safetensors", "..", ".",
                            "", "one\\u0000.safetensors", "a\\\\b"}) {
    write(kIndex, std::string(R"({"weight_map":{"a":")") + shard + "\"}}");
    EXPECT_THAT(open_error(), HasSubstr("expected a plain file name")) << shard;
  }
}

TEST_F(CheckpointTest, NamesTheExpectedShape) {
  write_shard("model.safetensors", "a");
  auto checkpoint = Checkpoint::open(directory_).value();
  EXPECT_EQ(checkpoint->shape_of("a"), Shape{2});
  EXPECT_EQ(checkpoint->shape_of("b"), std::nullopt);
  EXPECT_THAT(checkpoint->tensor("a", {1, 2}).status().message(),
              HasSubstr("got [2], expected [1, 2]"));
  const Status missing = checkpoint->tensor("b", {3}).status();
  EXPECT_EQ(missing.code(), StatusCode::kNotFound);
  EXPECT_THAT(missing.message(), AllOf(HasSubstr("tensor \"b\" of shape [3] is missing in"),
                                       HasSubstr("; expected every tensor"),
                                       HasSubstr("download the checkpoint again")));
}

TEST(CheckpointInMemory, UnalignedTensorsAreCopied) {
  // The header's length determines the offset of the data; one of four lengths is aligned.
  for (int padding = 0; padding < 4; ++padding) {
    const auto bytes = safetensors_bytes(
        R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})" + std::string(padding, ' '), 8);
    auto checkpoint = Checkpoint::from_memory(bytes, "memory").value();
    const TensorView view = checkpoint->tensor("a", {2}).value();
    EXPECT_EQ(reinterpret_cast<uintptr_t>(view.data) % 4, 0U) << padding;
    EXPECT_EQ(std::memcmp(view.data, bytes.data() + bytes.size() - 8, 8), 0) << padding;
    checkpoint->release("a");
    EXPECT_TRUE(checkpoint->tensor("a", {2}).ok());
  }
}

}  // namespace
}  // namespace quire::testing
