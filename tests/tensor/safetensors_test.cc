#include "tensor/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/value_of.h"
#include "tensor/safetensors_bytes.h"

namespace quire::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::string error_of(std::span<const std::byte> bytes) {
  const auto file = Safetensors::parse(bytes, "x.safetensors");
  return file.ok() ? "" : file.status().message();
}

std::string error_of(std::string_view header, size_t num_data_bytes) {
  return error_of(safetensors_bytes(header, num_data_bytes));
}

constexpr std::string_view kTwoTensors =
    R"({"__metadata__":{"format":"pt"},)"
    R"("b":{"dtype":"BF16","shape":[3],"data_offsets":[16,22]},)"
    R"("a":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]}}  )";

TEST(Safetensors, FindsTensorsWhereTheHeaderSaysTheyAre) {
  const auto bytes = safetensors_bytes(kTwoTensors, 22);
  const auto file = value_of(Safetensors::parse(bytes, "x"));
  EXPECT_THAT(file.names(), ElementsAre("a", "b"));
  const TensorView a = file.view("a").value();
  EXPECT_EQ(a.dtype, DType::kF32);
  EXPECT_EQ(a.shape, (Shape{2, 2}));
  EXPECT_EQ(a.data, bytes.data() + bytes.size() - 22);
  const TensorView b = file.view("b").value();
  EXPECT_EQ(b.dtype, DType::kBF16);
  EXPECT_EQ(b.data, bytes.data() + bytes.size() - 6);
}

TEST(Safetensors, AnEmptyFileOfTensorsIsOne) {
  EXPECT_EQ(error_of("{}", 0), "");
  EXPECT_EQ(error_of(R"({"a":{"dtype":"F32","shape":[0,5],"data_offsets":[0,0]}})", 0), "");
  EXPECT_EQ(error_of(R"({"a":{"dtype":"F32","shape":[],"data_offsets":[0,4]}})", 4), "");
}

TEST(Safetensors, NamesTheFileAndTheTensorThatIsMissing) {
  const auto bytes = safetensors_bytes(kTwoTensors, 22);
  const Status status = Safetensors::parse(bytes, "dir/x")->view("c").status();
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_EQ(status.message(), "[safetensors] dir/x: there is no tensor \"c\"");
}

TEST(Safetensors, RefusesTruncationAtEveryByte) {
  const auto bytes = safetensors_bytes(kTwoTensors, 22);
  for (size_t size = 0; size < bytes.size(); ++size) {
    // The input is copied, so that a sanitizer detects a read past its end.
    const std::vector<std::byte> part(bytes.begin(), bytes.begin() + static_cast<long>(size));
    EXPECT_NE(error_of(part), "") << size;
  }
}

TEST(Safetensors, RefusesALengthPastTheFileOrTheCap) {
  auto bytes = safetensors_bytes("{}", 0);
  for (const uint64_t length : {uint64_t{3}, uint64_t{1} << 26, uint64_t{1} << 60, ~uint64_t{0}}) {
    std::memcpy(bytes.data(), &length, sizeof(length));
    EXPECT_THAT(error_of(bytes), HasSubstr("the header")) << length;
  }
  const std::string text = "{\"config\": \"a file of another format\"}";
  EXPECT_THAT(error_of(std::as_bytes(std::span(text))),
              HasSubstr("[safetensors] x.safetensors: not a safetensors file, or a damaged one"));
}

TEST(Safetensors, RefusesInvalidHeaders) {
  EXPECT_THAT(error_of("[]", 0), HasSubstr("not a JSON object"));
  EXPECT_THAT(error_of("{", 0),
              AllOf(HasSubstr("cannot parse"), HasSubstr("expected one JSON value"),
                    HasSubstr("download it again")));
  EXPECT_THAT(error_of(R"({"a":7})", 0), HasSubstr("\"a\" is not described by an object"));
  EXPECT_THAT(error_of(R"({"a":{}})", 0), HasSubstr("no dtype"));
  EXPECT_THAT(
      error_of(R"({"a":{"dtype":"F32","dtype":"I32","shape":[1],"data_offsets":[0,4]}})", 4),
      HasSubstr("tensor \"a\" has the key \"dtype\" twice; expected it once"));
  EXPECT_THAT(error_of(R"({"a":{"dtype":"F32"}})", 0), HasSubstr("no shape"));
  EXPECT_THAT(error_of(R"({"a":{"dtype":"F32","shape":[-1]}})", 0), HasSubstr("extent"));
  EXPECT_THAT(error_of(R"({"a":{"dtype":"F32","shape":[1.5]}})", 0), HasSubstr("extent"));
  EXPECT_THAT(error_of(R"({"a":{"dtype":"F32","shape":[1]}})", 0), HasSubstr("data_offsets"));
  EXPECT_THAT(error_of(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4,8]}})", 8),
              HasSubstr("data_offsets"));
  EXPECT_THAT(error_of(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[-4,0]}})", 8),
              HasSubstr("data_offsets"));
  const std::string deep = std::string(100, '[') + std::string(100, ']');
  EXPECT_THAT(error_of("{\"a\":" + deep + "}", 0), HasSubstr("levels"));
}

TEST(Safetensors, RefusesRangesOutsideTheFile) {
  EXPECT_THAT(error_of(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 7),
              AllOf(HasSubstr("\"a\" lies outside the file"), HasSubstr("[0, 8)")));
  EXPECT_THAT(error_of(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[8,4]}})", 8),
              HasSubstr("outside"));
  EXPECT_THAT(error_of(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[18446744073709551614,)"
                       R"(18446744073709551615]}})",
                       8),
              HasSubstr("outside"));
}

TEST(Safetensors, RefusesSizesThatDoNotAgreeWithTheShape) {
  EXPECT_THAT(error_of(R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", 8),
              AllOf(HasSubstr("got 8 bytes"), HasSubstr("expected 12")));
  // 2^62 * 4 elements wrap to 0 in 64 bits.
  EXPECT_THAT(error_of(R"({"a":{"dtype":"F32","shape":[4611686018427387904,4],)"
                       R"("data_offsets":[0,0]}})",
                       0),
              HasSubstr("more than fit 64 bits"));
  EXPECT_THAT(error_of(R"({"a":{"dtype":"F4","shape":[3],"data_offsets":[0,1]}})", 1),
              HasSubstr("does not fill"));
}

TEST(Safetensors, RefusesOverlapsHolesAndLeftovers) {
  EXPECT_THAT(error_of(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
                       R"("b":{"dtype":"U8","shape":[4],"data_offsets":[3,7]}})",
                       7),
              HasSubstr("\"b\" overlaps"));
  EXPECT_THAT(error_of(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
                       R"("b":{"dtype":"U8","shape":[4],"data_offsets":[5,9]}})",
                       9),
              HasSubstr("hole before tensor \"b\""));
  EXPECT_THAT(error_of(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})", 5),
              AllOf(HasSubstr("bytes after the last tensor; got 5 bytes of data, expected 4"),
                    HasSubstr("download it again")));
}

TEST(Safetensors, RefusesTheSameNameTwice) {
  EXPECT_THAT(error_of(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
                       R"("a":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}})",
                       8),
              HasSubstr("\"a\" is there twice"));
}

TEST(Safetensors, OtherTypesAreAnErrorOnlyWhenAskedFor) {
  const auto bytes =
      safetensors_bytes(R"({"a":{"dtype":"U64","shape":[1],"data_offsets":[0,8]},)"
                        R"("b":{"dtype":"float32","shape":[9],"data_offsets":[8,12]},)"
                        R"("c":{"dtype":"F32","shape":[1,1,1,1,1],"data_offsets":[12,16]}})",
                        16);
  const auto file = value_of(Safetensors::parse(bytes, "x"));
  EXPECT_THAT(file.view("a").status().message(), HasSubstr("got \"U64\", expected F32"));
  // A type whose size is unknown must not pass the check of sizes.
  EXPECT_THAT(file.view("b").status().message(), HasSubstr("got \"float32\""));
  EXPECT_THAT(file.view("c").status().message(), HasSubstr("too many axes"));
}

TEST(Safetensors, ErrorsAreOneShortLineWhateverTheNames) {
  const std::string name = "line\\nbreak\\u0007" + std::string(100'000, 'x');
  const std::string message = error_of("{\"" + name + "\":1}", 0);
  EXPECT_THAT(message, HasSubstr("line\\nbreak"));
  EXPECT_THAT(message, Not(HasSubstr("\n")));
  EXPECT_LT(message.size(), 400U);
}

}  // namespace
}  // namespace quire::testing
