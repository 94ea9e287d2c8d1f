// Compares the description of the routes with the code and with the pages: /openapi.json has the
// limits of RequestLimits and all routes, and the pages have the tables of fields that the server
// reads. QUIRE_UPDATE_DOCS=1 writes these tables.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "base/ascii.h"
#include "base/json.h"
#include "server/openai/field_table.h"
#include "server/openai/requests.h"
#include "server/routes/routes.h"
#include "support/value_of.h"

namespace quire::server {
namespace {

class OpenApi : public ::testing::Test {
 protected:
  void SetUp() override {
    document_.emplace(testing::value_of(JsonDocument::parse(openapi_json(), "the description")));
  }

  int64_t number_at(const std::string& pointer) const {
    int64_t value = -1;
    EXPECT_FALSE(document_->root().at_pointer("/components/schemas/" + pointer).get(value))
        << pointer;
    return value;
  }
  bool has(const std::string& pointer) const {
    return document_->root().at_pointer(pointer).error() == simdjson::SUCCESS;
  }

  std::optional<JsonDocument> document_;
};

TEST_F(OpenApi, ArgumentsOfCallsAreATextOrAnObjectInBothOfOpenAisApis) {
  const auto schemas = simdjson::minify(document_->root()["components"]["schemas"]);
  constexpr std::string_view kArguments =
      R"("arguments":{"$ref":"#/components/schemas/CallArguments"})";
  const size_t first = schemas.find(kArguments);
  ASSERT_NE(first, std::string::npos);
  EXPECT_NE(schemas.find(kArguments, first + 1), std::string::npos);
  EXPECT_TRUE(has("/components/schemas/CallArguments/anyOf/2"));
}

// The limits in JSON schemas that are written by hand; the tables have the others themselves.
TEST_F(OpenApi, HasTheLimitsOfCalls) {
  const RequestLimits limits;
  for (const std::string request : {"CompletionRequest", "ChatRequest"}) {
    const std::string fields = request + "/properties/";
    EXPECT_EQ(number_at(fields + "stop/anyOf/1/anyOf/1/maxItems"), limits.max_stops);
    EXPECT_EQ(number_at(fields + "logit_bias/anyOf/1/maxProperties"), limits.max_biases);
    EXPECT_EQ(number_at(fields + "n/maximum"), limits.max_sequences);
  }
  EXPECT_EQ(number_at("OllamaOptions/properties/stop/anyOf/1/anyOf/1/maxItems"), limits.max_stops);
  EXPECT_EQ(number_at("Prompts/anyOf/2/maxItems"), limits.max_prompts);
  EXPECT_EQ(number_at("EmbeddingInputs/anyOf/2/maxItems"), limits.max_embedding_inputs);
  EXPECT_EQ(number_at("ScoredTexts/anyOf/1/maxItems"), limits.max_prompts);
  EXPECT_EQ(number_at("ResponseInput/anyOf/1/maxItems"), limits.max_messages);
  EXPECT_EQ(number_at("GuidedJson/anyOf/2/maxLength"),
            static_cast<int64_t>(limits.grammar.max_text_bytes));
}

// The JSON pointer of a route: `/` is `~1`, and the method is in lower case.
std::string pointer_of(const Route& route) {
  std::string pointer = "/paths/";
  for (const char c : route.path) pointer += c == '/' ? "~1" : std::string(1, c);
  pointer += '/';
  for (const char c : route.method) pointer += to_lower(c);
  return pointer;
}

TEST_F(OpenApi, HasAllRoutes) {
  for (const Route& route : routes()) {
    EXPECT_TRUE(has(pointer_of(route) + "/responses/200")) << route.path;
    EXPECT_TRUE(has(pointer_of(route) + "/responses/500")) << route.path;
  }
}

void check_references(simdjson::dom::element value, const simdjson::dom::element& root) {
  simdjson::dom::object members;
  simdjson::dom::array items;
  if (!value.get_array().get(items)) {
    for (const auto item : items) check_references(item, root);
  }
  if (value.get_object().get(members)) return;
  for (const auto& [key, member] : members) {
    std::string_view target;
    if (key == "$ref" && !member.get_string().get(target)) {
      EXPECT_FALSE(root.at_pointer(target.substr(1)).error()) << target;
    }
    check_references(member, root);
  }
}

TEST_F(OpenApi, RefersOnlyToSchemasThatItHas) {
  check_references(document_->root(), document_->root());
}

TEST(FieldTables, DescribeEachFieldOnceAndInFewWords) {
  constexpr size_t kMaxHelp = 100;
  for (const ObjectSchema& object : request_schemas()) {
    std::set<std::string_view> names;
    for (const Field& field : object.fields) {
      EXPECT_TRUE(names.insert(field.name).second) << object.name << ' ' << field.name;
      EXPECT_LE(field.help.size(), kMaxHelp) << object.name << ' ' << field.name;
      const bool needs_help =
          field.use != FieldUse::kNoEffect && field.type.kind != FieldType::Kind::kNull;
      EXPECT_EQ(field.help.empty() && needs_help, false) << object.name << ' ' << field.name;
    }
  }
}

const ObjectSchema& schema_of(const std::vector<ObjectSchema>& all, std::string_view name) {
  for (const ObjectSchema& object : all) {
    if (object.name == name) return object;
  }
  ADD_FAILURE() << "there is no object " << name;
  return all.front();
}

// Makes the table that a comment asks for: `fields of NAME`, `fields of NAME without OTHER` (those
// that OTHER does not have equally), or `fields of NAME: field field`.
std::string table_of(const std::string& request) {
  const std::vector<ObjectSchema> all = request_schemas();
  std::istringstream words(request);
  std::string name;
  std::string word;
  words >> name;
  const bool names_fields = name.ends_with(':');
  if (names_fields) name.pop_back();
  const ObjectSchema& object = schema_of(all, name);
  ObjectSchema shown = {object.name};
  if (names_fields) {
    while (words >> word) shown.add(object, {word});
  } else if (words >> word >> word) {
    const ObjectSchema& other = schema_of(all, word);
    for (const Field& field : object.fields) {
      const bool is_shared = std::ranges::any_of(other.fields, [&](const Field& one) {
        return one.name == field.name && one.help == field.help;
      });
      if (!is_shared) shown.add(field);
    }
  } else {
    shown.fields = object.fields;
  }
  return markdown_table(shown);
}

// Returns the page with the tables between the comments `<!-- fields of … -->` and `<!-- end -->`.
std::string with_tables(const std::string& page) {
  constexpr std::string_view kBegin = "<!-- fields of ";
  constexpr std::string_view kEnd = "<!-- end -->";
  std::string out;
  size_t at = 0;
  for (size_t begin = page.find(kBegin); begin != std::string::npos;
       begin = page.find(kBegin, at)) {
    const size_t name = begin + kBegin.size();
    const size_t close = page.find(" -->", name);
    const size_t end = page.find(kEnd, close);
    if (end == std::string::npos) break;
    out += page.substr(at, page.find('\n', close) + 1 - at) + '\n';
    out += table_of(page.substr(name, close - name)) + '\n';
    at = end;
  }
  return out + page.substr(at);
}

TEST(FieldTables, AreThoseOfThePages) {
  const char* const source = std::getenv("QUIRE_SOURCE_DIR");
  if (source == nullptr) GTEST_SKIP() << "QUIRE_SOURCE_DIR is not set; ctest sets it";
  for (const char* const name : {"api.md", "serving.md"}) {
    const auto path = std::filesystem::path(source) / "docs" / name;
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    const std::string expected = with_tables(text.str());
    if (std::getenv("QUIRE_UPDATE_DOCS") != nullptr) std::ofstream(path) << expected;
    EXPECT_EQ(text.str(), expected) << "docs/" << name << " differs from the tables; write it by "
                                    << "QUIRE_UPDATE_DOCS=1 ctest --test-dir build -R openapi_test";
  }
}

}  // namespace
}  // namespace quire::server
