#include "base/digest.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace quire {
namespace {

std::vector<uint8_t> bytes_of(std::string_view text) {
  return {text.begin(), text.end()};
}

// From FIPS 180-4's examples, and of no bytes.
TEST(Digest, OfPiecesIsThatOfTheWhole) {
  Hasher hasher;
  for (int round = 0; round < 2; ++round) {
    hasher.add("a");
    hasher.add("bc");
    EXPECT_EQ(hasher.finish_hexadecimal(), to_hexadecimal(sha256_of("abc")));
  }
  hasher.add("forgotten");
  hasher.restart();
  EXPECT_EQ(hasher.finish_hexadecimal(), to_hexadecimal(sha256_of("")));
  Hasher sha1(Hasher::Kind::kSha1);
  sha1.add("abc");
  EXPECT_EQ(sha1.finish_hexadecimal(), "a9993e364706816aba3e25717850c26c9cd0d89d");
}

TEST(Digest, IsSha256) {
  EXPECT_EQ(to_hexadecimal(sha256_of("abc")),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(to_hexadecimal(sha256_of("")),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

// The test vectors of RFC 4648.
TEST(Base64, GoesThereAndBack) {
  for (const auto& [text, digits] :
       std::vector<std::pair<std::string, std::string>>{{"", ""},
                                                        {"f", "Zg=="},
                                                        {"fo", "Zm8="},
                                                        {"foo", "Zm9v"},
                                                        {"foob", "Zm9vYg=="},
                                                        {"fooba", "Zm9vYmE="},
                                                        {"foobar", "Zm9vYmFy"},
                                                        {"\xff\xfe\xfd", "//79"}}) {
    EXPECT_EQ(to_base64(bytes_of(text)), digits);
    EXPECT_EQ(from_base64(digits), text);
  }
}

TEST(Base64, RefusesMalformedDigits) {
  for (const char* digits : {"Z", "Zg=", "Zg", "=", "====", "Z===", "Zg=a", "Zm9v====", "Zm9v\n",
                             "Zm 9", "Zm-_", "Z\xc3\xa4=", "Zm8=Zm8="}) {
    EXPECT_EQ(from_base64(digits), "") << digits;
  }
}

}  // namespace
}  // namespace quire
