// Tests schemas whose meaning depends on names, escapes and numbers: every text that is drawn is
// valid.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <set>

#include "grammar/grammar_compiler.h"
#include "grammar/schema_validator.h"
#include "grammar/walk.h"

namespace quire::testing {
namespace {

using ::testing::HasSubstr;
using Kind = GrammarSpec::Kind;

constexpr std::array kEos = {kEmbeddedEosId};

class SchemaMeaning : public ::testing::Test {
 protected:
  void compile(const std::string& schema) {
    auto factory = compiler_.compile({.kind = Kind::kJsonSchema, .text = schema});
    ASSERT_TRUE(factory.ok()) << schema << ": " << factory.status().message();
    factory_ = *factory;
  }
  std::string refusal(const std::string& schema) {
    return compiler_.compile({.kind = Kind::kJsonSchema, .text = schema}).status().message();
  }
  // Returns whether the text is a complete match.
  bool allows(std::string_view text) const {
    const auto constraint = factory_();
    const auto ids = embedded_tokenizer()->encode(text, false);
    return std::ranges::all_of(*ids, [&](int32_t id) { return constraint->accept(id); }) &&
           constraint->accept(kEmbeddedEosId);
  }

  GrammarCompiler compiler_{*embedded_tokenizer(), kEos, ample_time()};
  ConstraintFactory factory_;
};

std::string json(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

std::string object_of(const std::string& properties, const std::string& required) {
  return R"({"type":"object","additionalProperties":false,"required":[)" + required +
         R"(],"properties":{)" + properties + "}}";
}

TEST_F(SchemaMeaning, SchemasThatDifferBelowAnyNameAreTwo) {
  for (const char* name : {"title", "default", "description", "examples", "deprecated", "readOnly",
                           "writeOnly", "$comment", "$schema", "plain"}) {
    SCOPED_TRACE(name);
    const std::string key = json(name);
    const std::string flag = object_of(key + R"(:{"type":"boolean"})", key);
    const std::string null = object_of(key + R"(:{"type":"null"})", key);
    compile(object_of("\"a\":" + flag + ",\"b\":" + null, R"("a","b")"));
    EXPECT_TRUE(allows("{\"a\":{" + key + ":true},\"b\":{" + key + ":null}}"));
    EXPECT_FALSE(allows("{\"a\":{" + key + ":true},\"b\":{" + key + ":true}}"));
    compile(object_of("\"a\":{\"const\":{" + key + ":1}},\"b\":{\"const\":{" + key + ":2}}",
                      R"("a","b")"));
    EXPECT_TRUE(allows("{\"a\":{" + key + ":1},\"b\":{" + key + ":2}}"));
    EXPECT_FALSE(allows("{\"a\":{" + key + ":1},\"b\":{" + key + ":1}}"));
  }
}

TEST_F(SchemaMeaning, NamesLikeJsonAreNames) {
  const std::string name = json(R"(x":{"type":"null"},"y)");
  const std::string one = object_of(name + R"(:{"type":"null"})", "");
  const std::string two = object_of(R"("x":{"type":"null"},"y":{"type":"null"})", "");
  compile(object_of("\"a\":" + one + ",\"b\":" + two, R"("a","b")"));
  EXPECT_TRUE(allows("{\"a\":{" + name + ":null},\"b\":{\"x\":null,\"y\":null}}"));
  EXPECT_FALSE(allows(R"({"a":{"x":null,"y":null},"b":{"x":null,"y":null}})"));
}

TEST_F(SchemaMeaning, ANamedPropertyIsNeverAnAdditionalOne) {
  compile(R"({"type":"object","properties":{"é":{"type":"null"},"a":{"type":"null"},
      "s/t":{"type":"null"},"q\"\\\n":{"type":"null"},"":{"type":"null"}},
      "additionalProperties":{"type":"string"}})");
  EXPECT_TRUE(allows(R"({"é":null,"a":null,"s/t":null,"q\"\\\n":null,"":null})"));
  for (const char* key :
       {R"(é)", R"(\u00e9)", R"(\u00E9)", "a", R"(\u0061)", "s/t", R"(s\/t)", R"(\u0073/t)",
        R"(s/\u0074)", R"(q\"\\\n)", R"(q\u0022\\\n)", R"(q\"\u005c\n)", R"(q\"\\\u000a)", ""}) {
    EXPECT_FALSE(allows(std::string(R"({")") + key + R"(":"x"})")) << key;
  }
  for (const char* key : {"è", "éé", "ab", R"(a\u0061)", "日本", "s", "s/", "s/u", R"(q\")",
                          R"(q\"\\)", R"(q\"\\\n\u0061)", R"(\n)", R"(q\n)", "q "}) {
    EXPECT_TRUE(allows(std::string(R"({")") + key + R"(":"x"})")) << key;
  }
  // These keys are not JSON.
  for (const char* key : {"q\"", "q\"\\\n", "q\\\"\\\\\n", "q\\", "\n"}) {
    EXPECT_FALSE(allows(std::string(R"({")") + key + R"(":"x"})")) << key;
  }
}

TEST_F(SchemaMeaning, PatternsMatchTheValueAndTextsAreJson) {
  struct Case {
    const char* pattern;  // as JSON
    std::vector<const char*> allowed, refused;
  };
  const Case cases[] = {
      {R"(^a\"b$)", {R"(a\"b)"}, {"a\"b", "ab"}},
      {R"(^(ab\"c|d)$)", {R"(ab\"c)", "d"}, {"ab\"c"}},
      {R"(^a\\\\b$)", {R"(a\\b)"}, {R"(a\b)"}},
      {R"(^a\\nb$)", {R"(a\nb)"}, {"a\nb"}},
      {R"(^a\nb$)", {R"(a\nb)"}, {"a\nb"}},
      {R"(^\\x22\\u0022$)", {R"(\"\")"}, {"\"\""}},
      {R"(^[\"'\\\\x]+$)", {"'x"}, {"\"", "\\"}},
      {R"(^[\\x00-z]+$)", {"ab!"}, {"\"", "\\", "\n"}},
      {R"(^é.[^a]\\S*$)", {"éabc", "é日b"}, {"é\"b", "éa\"", "éa\\", "éa\n", "éab\""}},
      {R"(^é[\"b]*$)", {"é", "ébb"}, {"é\""}},
      {R"(^.[^a]\\S*$)", {"xbc"}, {"x\"", "\"b", "xb\\", "x\n"}},
  };
  const auto check = [&](const Case& pattern, const std::string& before, const std::string& after) {
    for (const char* text : pattern.allowed) EXPECT_TRUE(allows(before + text + after)) << text;
    for (const char* text : pattern.refused) EXPECT_FALSE(allows(before + text + after)) << text;
  };
  for (const Case& pattern : cases) {
    SCOPED_TRACE(pattern.pattern);
    const std::string quoted = std::string("\"") + pattern.pattern + '"';
    const std::string string = R"({"type":"string","pattern":)" + quoted + "}";
    compile(string);
    check(pattern, "\"", "\"");
    compile(R"({"type":"object","patternProperties":{)" + quoted + R"(:{"type":"null"}}})");
    check(pattern, "{\"", "\":null}");
    compile(R"({"type":"object","propertyNames":)" + string + "}");
    check(pattern, "{\"", "\":null}");
  }
  compile(R"({"type":"string","pattern":"^é[\"\\n]$"})");
  for (const char* text : {R"("é\"")", R"("é\n")"}) EXPECT_TRUE(allows(text)) << text;
  for (const char* text : {R"("é"")", R"("é\\")", R"("é")"}) EXPECT_FALSE(allows(text)) << text;
}

TEST_F(SchemaMeaning, FormatsAreJson) {
  compile(R"({"type":"string","format":"json-pointer"})");
  EXPECT_TRUE(allows(R"("/a/~0b/é")"));
  for (const char* text : {"\"/\"\"", "\"/\\\"", "\"/\n\""}) EXPECT_FALSE(allows(text)) << text;
  compile(R"({"type":"string","format":"email"})");
  EXPECT_TRUE(allows(R"("\"a b\"@x.org")"));
  EXPECT_TRUE(allows(R"("\"\\a\"@x.org")"));
  EXPECT_FALSE(allows(R"("\"\a\"@x.org")"));
  EXPECT_FALSE(allows("\"\"a\"@x.org\""));
}

TEST_F(SchemaMeaning, NumbersKeepTheirSpelling) {
  compile(R"({"enum":[0.1,18446744073709551615,-2.5e-7,{"n":[1.3]}]})");
  for (const char* text : {"0.1", "18446744073709551615", R"({"n":[1.3]})"}) {
    EXPECT_TRUE(allows(text)) << text;
  }
  EXPECT_FALSE(allows("0.10000000000000001"));
  EXPECT_FALSE(allows("18446744073709551616"));
}

TEST_F(SchemaMeaning, AReferenceToNoSchemaIsRefused) {
  EXPECT_THAT(refusal(R"({"type":"object","required":["a"],"additionalProperties":
                          {"$ref":"#/additionalProperties"}})"),
              HasSubstr("refers only to itself"));
}

// One property of a model, as pydantic and zod write its schema: instructor, pydantic-ai, langchain
// and OpenAI's clients send these.
struct ClientField {
  const char* type;
  const char* schema;
  std::vector<const char*> allowed, refused;  // values
  const char* reason = nullptr;               // set: the schema is refused for it
};

const ClientField kClientFields[] = {
    {"HttpUrl",
     R"({"format":"uri","maxLength":2083,"minLength":1,"title":"X","type":"string"})",
     {R"("https://example.org")", R"("http://a-b.example.org:8080/p/a.html?q=1&r=%20#top")",
      R"("ftp://x/~me/@v?")"},
     {R"("example.org")", R"("https://a b")", R"("https://x/%2")", R"("https://x:y")",
      R"("https://x/#a#b")", R"("")"}},
    {"uri of at most 64 characters",
     R"({"format":"uri","maxLength":64,"type":"string"})",
     {R"("https://aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa")",
      R"("https://aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa%20")"},
     {R"("https://aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa")",
      R"("abcdefghijklmnopqrstuvwxyzabcdefg:")"}},
    {"AnyUrl",
     R"({"format":"uri","minLength":1,"type":"string"})",
     {R"("https://example.org")", R"("urn:isbn:1")", R"("mailto:a@b.org")"},
     {R"("")", R"("1:x")"}},
    {"PostgresDsn",
     R"({"format":"multi-host-uri","minLength":1,"type":"string"})",
     {},
     {},
     R"(the "format" "multi-host-uri", which is not supported; leave it out, or write it as a)"},
    {"EmailStr",
     R"({"format":"email","type":"string"})",
     {R"("a.b+c@example.org")"},
     {R"("a@")", R"("@b")", R"("a b@c.org")"}},
    {"z.string().email().max(254)",
     R"({"format":"email","maxLength":254,"type":"string"})",
     {R"("a.b+c@mail.example-x.org")"},
     {R"("a@")", R"("a@-b")", R"("a@b-")"}},
    {"Hostname",
     R"({"format":"hostname","maxLength":253,"type":"string"})",
     {R"("a-1.example.org")"},
     {R"("-a")", R"("a..b")"}},
    {"UUID",
     R"({"format":"uuid","type":"string"})",
     {R"("123e4567-e89b-12d3-a456-426614174000")"},
     {R"("123e4567e89b12d3a456426614174000")"}},
    {"UUID4",
     R"({"format":"uuid4","type":"string"})",
     {R"("123e4567-e89b-42d3-a456-426614174000")"},
     {R"("123e4567-e89b-12d3-a456-426614174000")"}},
    {"date",
     R"({"format":"date","type":"string"})",
     {R"("2024-02-29")", R"("2000-02-29")", R"("2023-12-31")", R"("1999-11-30")",
      R"("0001-01-01")"},
     {R"("2023-02-29")", R"("1900-02-29")", R"("2023-04-31")", R"("2023-13-01")", R"("0000-01-01")",
      R"("2023-00-10")", R"("2023-01-00")", R"("0000-02-29")"}},
    {"date of bounded length",
     R"({"format":"date","maxLength":10,"type":"string"})",
     {R"("2024-02-29")"},
     {}},
    {"datetime",
     R"({"format":"date-time","type":"string"})",
     {R"("2024-02-29T23:59:59Z")", R"("2024-01-01T00:00:00.123456+05:30")"},
     {R"("2023-02-29T00:00:00Z")", R"("2024-01-01T24:00:00Z")", R"("2024-01-01T00:00:60Z")",
      R"("2024-01-01T00:00:00.1234567890Z")", R"("2024-01-01T00:00:00")"}},
    {"time", R"({"format":"time","type":"string"})", {R"("12:30:00Z")"}, {R"("12:60:00Z")"}},
    {"timedelta", R"({"format":"duration","type":"string"})", {R"("P1DT2H")"}, {R"("P")"}},
    {"date-time that is too short",
     R"({"format":"date-time","maxLength":19,"type":"string"})",
     {},
     {},
     R"(the "format" "date-time" beside this "minLength" or "maxLength", which is not)"},
    {"Decimal",
     R"({"anyOf":[{"type":"number"},{"pattern":"^(?!^[-+.]*$)[+-]?0*\\d*\\.?\\d*$","type":"string"}]})",
     {"1.5", R"("-1.50")", R"("00.5")", R"("5.")", R"(".5")"},
     {R"("")", R"("-")", R"(".")", R"("1.2.3")"}},
    {"Decimal of 6 digits",
     R"({"anyOf":[{"type":"number"},{"pattern":"^(?!^[-+.]*$)[+-]?0*(?:\\d{0,4})$","type":"string"}]})",
     {},
     {},
     "has a lookahead (?!…) at character 2, which is not supported; write the texts"},
    {"Enum", R"({"enum":["red","blue"],"type":"string"})", {R"("red")"}, {R"("green")", "1"}},
    {"IntEnum", R"({"enum":[1,2],"type":"integer"})", {"2"}, {"3", "1.5"}},
    {"Literal", R"({"enum":["a",1,null]})", {R"("a")", "1", "null"}, {"2", "true"}},
    {"Optional[int]",
     R"({"anyOf":[{"type":"integer"},{"type":"null"}],"default":null})",
     {"7", "null"},
     {"1.5", R"("7")"}},
    {"int | str | Address",
     R"({"anyOf":[{"type":"integer"},{"type":"string"},{"$ref":"#/$defs/Address"}]})",
     {"1", R"("a")", R"({"street":"s"})"},
     {"1.5", R"({"x":1})"}},
    {"Address",
     R"({"$ref":"#/$defs/Address"})",
     {R"({"street":"s","tags":["a"]})", R"({"street":"s"})"},
     {R"({"tags":[]})"}},
    {"Node",
     R"({"$ref":"#/$defs/Node"})",
     {R"({"value":1,"children":[{"value":2,"children":[]}]})"},
     {R"({"children":[]})"}},
    {"dict[str, Address]",
     R"({"additionalProperties":{"$ref":"#/$defs/Address"},"type":"object"})",
     {"{}", R"({"a":{"street":"s"}})"},
     {R"({"a":1})"}},
    {"dict[Color, int]",
     R"({"additionalProperties":{"type":"integer"},"propertyNames":{"enum":["red","blue"]},
         "type":"object"})",
     {R"({"red":1})"},
     {R"({"green":1})"}},
    {"dict[str, list[dict[str, float]]]",
     R"({"additionalProperties":{"items":{"additionalProperties":{"type":"number"},
         "type":"object"},"type":"array"},"type":"object"})",
     {R"({"a":[{"b":0.5}]})"},
     {R"({"a":[1]})"}},
    {"tuple[int, str]",
     R"({"maxItems":2,"minItems":2,"prefixItems":[{"type":"integer"},{"type":"string"}],
         "type":"array"})",
     {R"([1,"a"])"},
     {"[1]", R"([1,"a",2])", R"(["a",1])"}},
    {"tuple[int, ...]",
     R"({"items":{"type":"integer"},"type":"array"})",
     {"[]", "[1,2]"},
     {"[0.5]"}},
    {"constr(pattern)",
     R"({"pattern":"^[A-Z]{3}-\\d+$","type":"string"})",
     {R"("ABC-12")"},
     {R"("AB-1")"}},
    {"constr(pattern, length)",
     R"({"maxLength":5,"minLength":3,"pattern":"^[a-z0-9_-]+$","type":"string"})",
     {R"("a-1")", R"("abcde")"},
     {R"("ab")", R"("abcdef")", R"("AB1")"}},
    {"constr(pattern of that length)",
     R"({"maxLength":9,"minLength":3,"pattern":"^[A-Z]{2}-\\d{1,4}$","type":"string"})",
     {R"("AB-1")"},
     {R"("AB")"}},
    {"constr(pattern of another length)",
     R"({"maxLength":4,"pattern":"^[A-Z]+-\\d+$","type":"string"})",
     {},
     {},
     R"("maxLength" beside a "pattern" of other lengths, which is not supported; write the length)"},
    {"constr(impossible)",
     R"({"minLength":4,"pattern":"^[A-Z]{1,3}$","type":"string"})",
     {},
     {},
     R"("minLength" 4 and "pattern" ^[A-Z]{1,3}$, which leave no value)"},
    {"constr(min_length, max_length)",
     R"({"maxLength":3,"minLength":2,"type":"string"})",
     {R"("ab")", R"("日本語")"},
     {R"("a")", R"("abcd")"}},
    {"constr(no case)",
     R"({"pattern":"(?i)^ab[c-e]$","type":"string"})",
     {R"("aBD")"},
     {R"("abf")"}},
    {"conint(ge, le)",
     R"({"maximum":100,"minimum":1,"type":"integer"})",
     {"1", "100"},
     {"0", "101"}},
    {"conint(gt, lt)",
     R"({"exclusiveMaximum":10,"exclusiveMinimum":0,"type":"integer"})",
     {"1", "9"},
     {"0", "10"}},
    {"conint(multiple_of)", R"({"multipleOf":5,"type":"integer"})", {"10"}, {"7"}},
    {"confloat(ge, le)",
     R"({"maximum":1,"minimum":0,"type":"number"})",
     {"0.5", "1"},
     {"1.5", "-0.5"}},
    {"conlist(int, 1, 3)",
     R"({"items":{"type":"integer"},"maxItems":3,"minItems":1,"type":"array"})",
     {"[1]", "[1,2,3]"},
     {"[]", "[1,2,3,4]"}},
    {"set[int]",
     R"({"items":{"type":"integer"},"type":"array","uniqueItems":true})",
     {},
     {},
     R"("uniqueItems", which is not supported; leave it out (in pydantic: list instead of set))"},
    {"Cat | Dog by kind",
     R"({"discriminator":{"propertyName":"kind"},
         "oneOf":[{"$ref":"#/$defs/Cat"},{"$ref":"#/$defs/Dog"}]})",
     {R"({"kind":"cat","lives":9})", R"({"kind":"dog","name":"rex"})"},
     {R"({"kind":"cat","name":"rex"})", R"({"kind":"dog","name":"Rex"})"}},
    {"SecretStr", R"({"format":"password","type":"string","writeOnly":true})", {R"("x")"}, {"1"}},
    {"Path", R"({"format":"path","type":"string"})", {R"("/a")"}, {"1"}},
    {"IPv4Address", R"({"format":"ipv4","type":"string"})", {R"("10.0.0.1")"}, {R"("10.0.0")"}},
    {"z.email() of zod 4",
     R"X({"type":"string","format":"email","pattern":"^(?!\\.)(?!.*\\.\\.)([A-Za-z0-9_'+\\-\\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\\-]*\\.)+[A-Za-z]{2,}$"})X",
     {R"("a.b+c@mail.example-x.org")", R"("o'b@x.co")"},
     {R"(".a@b.org")", R"("a..b@c.org")", R"("a.@b.org")", R"("a'@b.org")", R"("a@b")"}},
    {"z.iso.datetime() of zod 4",
     R"X({"type":"string","format":"date-time","pattern":"^(?:(?:\\d\\d[2468][048]|\\d\\d[13579][26]|\\d\\d0[48]|[02468][048]00|[13579][26]00)-02-29|\\d{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\\d|30)|(?:02)-(?:0[1-9]|1\\d|2[0-8])))T(?:(?:[01]\\d|2[0-3]):[0-5]\\d(?::[0-5]\\d(?:\\.\\d+)?)?(?:Z))$"})X",
     {R"("2024-02-29T23:59:59.5Z")", R"("2024-02-29T23:59Z")"},
     {R"("2023-02-29T00:00:00Z")", R"("2024-01-01T00:00:00+01:00")"}},
    {"z.iso.duration() of zod 4",
     R"X({"type":"string","format":"duration","pattern":"^P(?:(\\d+W)|(?!.*W)(?=\\d|T\\d)(\\d+Y)?(\\d+M)?(\\d+D)?(T(?=\\d)(\\d+H)?(\\d+M)?(\\d+([.,]\\d+)?S)?)?)$"})X",
     {R"("P3W")", R"("P1Y2D")", R"("P1DT2H")", R"("PT3M1.5S")"},
     {R"("P")", R"("P1DT")", R"("P1W2D")"}},
    {"z.base64() of zod 4",
     R"X({"type":"string","format":"base64","contentEncoding":"base64","pattern":"^$|^(?:[0-9a-zA-Z+/]{4})*(?:(?:[0-9a-zA-Z+/]{2}==)|(?:[0-9a-zA-Z+/]{3}=))?$"})X",
     {R"("")", R"("YWI=")", R"("YQ==")"},
     {R"("YWI")", R"("a===")"}},
    {"z.union([z.string(), z.number()]).optional() of zod 3",
     R"({"anyOf":[{"not":{}},{"type":["string","number"]}]})",
     {R"("a")", "1.5"},
     {"null", "[]"}},
    {"z.number().positive() of zod 3 for OpenAPI",
     R"({"type":"integer","exclusiveMinimum":true,"minimum":0,"nullable":true})",
     {"1", "null"},
     {"0", "-1"}},
    {"Tuple[int, str] of pydantic 1",
     R"({"type":"array","minItems":2,"maxItems":2,"items":[{"type":"integer"},{"type":"string"}]})",
     {R"([1,"a"])"},
     {"[1]", R"([1,"a",2])", R"(["a",1])"}},
    {"Literal of pydantic 1",
     R"({"title":"X","enum":["a","b"],"type":"string"})",
     {R"("a")"},
     {R"("c")"}},
    {"model with a default of pydantic 1",
     R"({"title":"X","default":{"street":"s"},"allOf":[{"$ref":"#/$defs/Address"}]})",
     {R"({"street":"s"})"},
     {R"({"x":1})"}},
    {"Any", R"({"title":"X"})", {"1", "[]", R"({"a":null})"}, {}},
    {"intersection",
     R"({"allOf":[{"$ref":"#/$defs/Cat"},{"$ref":"#/$defs/Dog"}]})",
     {},
     {},
     R"(an "allOf" of several schemas, which is not supported; write one schema)"},
};

TEST_F(SchemaMeaning, ModelsOfClientsCompileOrNameTheWayRound) {
  constexpr const char* kDefs =
      R"("$defs":{"Address":{"properties":{"street":{"type":"string"},
         "tags":{"default":[],"items":{"type":"string"},"type":"array"}},"required":["street"],
         "type":"object"},"Node":{"properties":{"value":{"type":"integer"},"children":{"items":
         {"$ref":"#/$defs/Node"},"type":"array"}},"required":["value"],"type":"object"},
         "Cat":{"properties":{"kind":{"const":"cat","type":"string"},"lives":{"maximum":9,
         "minimum":0,"type":"integer"}},"required":["kind","lives"],"type":"object"},
         "Dog":{"properties":{"kind":{"const":"dog","type":"string"},"name":{"maxLength":8,
         "minLength":1,"pattern":"^[a-z]+$","type":"string"}},"required":["kind","name"],
         "type":"object"}})";
  for (const ClientField& field : kClientFields) {
    SCOPED_TRACE(field.type);
    const std::string schema = std::string("{") + kDefs + R"(,"properties":{"x":)" + field.schema +
                               R"(},"required":["x"],"type":"object"})";
    if (field.reason != nullptr) {
      EXPECT_THAT(refusal(schema), HasSubstr(field.reason));
      continue;
    }
    compile(schema);
    if (HasFatalFailure()) return;
    for (const char* value : field.allowed) {
      EXPECT_TRUE(allows(R"({"x":)" + std::string(value) + "}")) << value;
    }
    for (const char* value : field.refused) {
      EXPECT_FALSE(allows(R"({"x":)" + std::string(value) + "}")) << value;
    }
  }
}

// Lengths above 128 are a budget of the matcher instead of states.
TEST_F(SchemaMeaning, LongStringsHaveExactLengths) {
  const auto text = [](int length, std::string_view character) {
    std::string json = "\"";
    for (int i = 0; i < length; ++i) json += character;
    return json + '"';
  };
  for (const std::string_view character : {"a", "é", "日", " "}) {
    compile(R"({"type":"string","minLength":2,"maxLength":130})");
    for (const int length : {2, 3, 129, 130})
      EXPECT_TRUE(allows(text(length, character))) << length;
    for (const int length : {0, 1, 131, 200})
      EXPECT_FALSE(allows(text(length, character))) << length;
    compile(R"({"type":"array","items":{"type":"string","maxLength":129},"maxItems":2})");
    const std::string longest = text(129, character);
    EXPECT_TRUE(allows("[" + longest + ", " + longest + "]"));
    EXPECT_FALSE(allows("[" + longest + ", " + text(130, character) + "]"));
  }
}

// Each spelling of a character counts as one, and so does the pair of escapes of a surrogate pair.
TEST_F(SchemaMeaning, EscapesAreCharactersOfBoundedStrings) {
  compile(R"({"type":"string","minLength":2,"maxLength":3})");
  for (const char* text :
       {R"("\n\n")", R"("\"a\\")", R"("\ud83e\udd17a")", R"("\ud83e\udd17\ud83e\udd17🤗")",
        R"("\u00e9\u00e9\u00E9")", R"("\/\b\t")", R"("é\u001f")"}) {
    EXPECT_TRUE(allows(text)) << text;
  }
  for (const char* text : {R"("\n")", R"("\ud83e\udd17")", R"("\n\n\n\n")", R"("aaa\ud83e\udd17")",
                           R"("aaaa")", R"("\ud83e\ud83e")", R"("\udd17a")", R"("\ud83ea")",
                           R"("\xaa")", R"("\u00e")", "\"a\nb\"", R"("ab\")"}) {
    EXPECT_FALSE(allows(text)) << text;
  }
  for (const int most : {1, 5, 64, 200}) {
    compile(R"({"type":"array","items":{"type":"string","minLength":1,"maxLength":)" +
            std::to_string(most) + "}}");
    const auto array_of = [](int count, std::string_view character) {
      std::string text;
      for (int i = 0; i < count; ++i) text += character;
      return "[\"" + text + "\", \"" + text + "\"]";
    };
    for (const char* character : {"a", "\\n", "\\\\", "\\ud83e\\udd17", "日", "\\u00e9"}) {
      EXPECT_TRUE(allows(array_of(most, character))) << character;
      EXPECT_FALSE(allows(array_of(most + 1, character))) << character;
      EXPECT_FALSE(allows(array_of(0, character)));
    }
  }
}

TEST_F(SchemaMeaning, EscapesAreCharactersOfPatterns) {
  compile(R"({"type":"string","pattern":"^.{2,9}$"})");
  for (const char* text : {R"("\"\\")", R"("\t🤗")", R"("\u0001\u001f")"}) {
    EXPECT_TRUE(allows(text)) << text;
  }
  for (const char* text : {R"("\n\n")", R"("\"")", R"("\\\\\\\\\\\\\\\\\\\\")"}) {
    EXPECT_FALSE(allows(text)) << text;
  }
  compile(R"({"type":"string","pattern":"^a[^b]c$"})");
  for (const char* text : {R"("a\"c")", R"("a\nc")", R"("a\u0000c")", R"("aéc")"}) {
    EXPECT_TRUE(allows(text)) << text;
  }
  EXPECT_FALSE(allows(R"("abc")"));
}

TEST_F(SchemaMeaning, BoundsWithoutAValueAreNamed) {
  for (
      const auto& [schema, reason] : std::initializer_list<std::pair<const char*, const char*>>{
          {R"({"type":"integer","minimum":3,"maximum":1})", R"("minimum" 3 and "maximum" 1)"},
          {R"({"type":"integer","exclusiveMinimum":3,"exclusiveMaximum":4})",
           R"("exclusiveMinimum" 3 and "exclusiveMaximum" 4)"},
          {R"({"type":"number","minimum":1.5,"exclusiveMaximum":1.5})",
           R"("minimum" 1.5 and "exclusiveMaximum" 1.5, which leave no value)"},
          {R"({"type":"integer","multipleOf":7,"minimum":8,"maximum":13})",
           R"("multipleOf" 7 beside bounds without a multiple of it; expected bounds from 8 to 13)"},
          {R"({"type":"integer","maximum":9223372036854775808})",
           "must be from -9223372036854775808 to 9223372036854775807"},
          {R"({"type":"string","minLength":3,"maxLength":2})",
           R"("minLength" 3 and "maxLength" 2)"},
          {R"({"type":"string","maxLength":2,"pattern":"^[a-z]{3}$"})",
           R"("maxLength" 2 and "pattern" ^[a-z]{3}$)"},
          {R"({"type":"array","minItems":3,"maxItems":2})", R"("minItems" 3 and "maxItems" 2)"},
          {R"({"type":"array","prefixItems":[{},{}],"maxItems":1})",
           R"("prefixItems" with 2 schemas beside "maxItems" 1)"},
          {R"({"type":"array","prefixItems":[{}],"items":false,"minItems":2})",
           R"("minItems" 2 and "prefixItems" of 1 without further "items")"},
          {R"({"type":"object","minProperties":3,"maxProperties":2})",
           R"("minProperties" 3 and "maxProperties" 2)"},
          {R"({"type":"object","properties":{"a":false}})", R"("false" in place of a schema)"}}) {
    EXPECT_THAT(refusal(schema), HasSubstr(reason)) << schema;
  }
}

// A part that only XGrammar finds to be wrong is refused without its words.
TEST_F(SchemaMeaning, MessagesAreNotXGrammars) {
  const std::string reason =
      refusal(R"({"type":"object","required":["a","b"],"properties":{"a":{},"b":{}},
                  "maxProperties":1})");
  EXPECT_THAT(reason, HasSubstr("cannot be compiled, although its parts are supported; simplify"));
}

// Draws schemas of names and values that are easily misread.
class RandomSchema {
 public:
  explicit RandomSchema(uint64_t seed) : random_(seed) {}

  std::string draw(int depth) {
    switch (random_() % (depth > 0 ? 9 : 6)) {
      case 0:
        return R"({"type":"null"})";
      case 1:
        return R"({"type":"boolean"})";
      case 2:
        return one_of({R"({"enum":[0.1,-2.5,3.0,18446744073709551615]})",
                       R"({"const":1,"enum":[1.0]})", R"({"enum":["é\"\\\n/"]})"});
      case 3:
        return "{\"const\":{" + name() + ":" + one_of({"1", "2", "\"\\\"\""}) + "}}";
      case 4:
        return R"({"type":"string","pattern":")" +
               one_of({R"(^(a\"|é)b$)", "^[^é]{2}$", R"(^.\\\\\\S$)", R"(^a?\\n$)"}) + "\"}";
      case 5:
        return R"({"type":"string","maxLength":2})";
      case 6:
        return R"({"type":"array","maxItems":2,"items":)" + draw(depth - 1) + "}";
      default:
        return object(depth);
    }
  }

 private:
  std::string one_of(const std::vector<std::string>& texts) {
    return texts[random_() % texts.size()];
  }
  std::string name() {
    return one_of({"\"title\"", "\"default\"", "\"$comment\"", "\"a\"", "\"é\"", "\"\"", R"("q\"")",
                   R"("\\")", R"("n\n")", R"("s/t")", R"("x\":{\"y")"});
  }
  std::string object(int depth) {
    std::set<std::string> names;
    for (uint64_t i = random_() % 4; i > 0; --i) names.insert(name());
    std::string properties, required;
    for (const std::string& key : names) {
      properties += (properties.empty() ? "" : ",") + key + ":" + draw(depth - 1);
      if (random_() % 2 == 0) required += (required.empty() ? "" : ",") + key;
    }
    std::string schema = R"({"type":"object","maxProperties":4,"properties":{)" + properties +
                         R"(},"required":[)" + required + "]";
    if (random_() % 2 == 0) schema += ",\"additionalProperties\":" + draw(depth - 1);
    return schema + "}";
  }

  std::mt19937_64 random_;
};

TEST_F(SchemaMeaning, TextsOfRandomSchemasAreValid) {
  int num_ended = 0;
  constexpr int kNumSchemas = 300;
  constexpr int kNumWalks = 4;
  for (uint64_t seed = 0; seed < kNumSchemas; ++seed) {
    const std::string schema = RandomSchema(seed).draw(3);
    compile(schema);
    if (HasFatalFailure()) return;
    for (uint64_t walk_seed = 0; walk_seed < kNumWalks; ++walk_seed) {
      const auto constraint = factory_();
      const auto walk = random_walk(*constraint, *embedded_tokenizer(), kEos, walk_seed, 30, 300);
      ASSERT_FALSE(walk.dead_end) << schema << " after " << walk.text;
      if (!walk.ended) continue;
      ++num_ended;
      ASSERT_EQ(validate_json(walk.text, schema), "") << schema << ": " << walk.text;
    }
  }
  EXPECT_GT(num_ended, kNumSchemas * kNumWalks / 2);
}

}  // namespace
}  // namespace quire::testing
