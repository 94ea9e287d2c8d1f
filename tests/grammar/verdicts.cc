// Says which texts the grammar of a schema accepts, for jsonschema_test.py. Reads one JSON object
// per line: {"schema": text, "texts": […], "num_walks": n}. Writes one per line: {"refusal": text},
// or {"accepted": […], "walks": […]} with the ends of random walks.
#include <algorithm>
#include <array>
#include <iostream>
#include <string>

#include "base/json.h"
#include "base/json_writer.h"
#include "grammar/grammar_compiler.h"
#include "grammar/walk.h"

namespace quire {
namespace {

constexpr std::array kEos = {testing::kEmbeddedEosId};

bool accepts(const ConstraintFactory& factory, std::string_view text) {
  const auto constraint = factory();
  const auto ids = testing::embedded_tokenizer()->encode(text, false);
  return ids.ok() &&
         std::ranges::all_of(*ids, [&](int32_t id) { return constraint->accept(id); }) &&
         constraint->accept(testing::kEmbeddedEosId);
}

std::string answer(GrammarCompiler& compiler, simdjson::dom::element request) {
  const std::string schema(request["schema"].get_string().value());
  const auto factory = compiler.compile({.kind = GrammarSpec::Kind::kJsonSchema, .text = schema});
  JsonWriter json;
  json.begin_object();
  if (!factory.ok()) {
    json.field("refusal", factory.status().message());
  } else {
    json.key("accepted");
    json.begin_array();
    const simdjson::dom::array texts = request["texts"].get_array().value();
    for (const simdjson::dom::element text : texts) {
      json.value(accepts(*factory, text.get_string().value()));
    }
    json.end_array();
    json.key("walks");
    json.begin_array();
    const int64_t num_walks = request["num_walks"].get_int64().value();
    for (int64_t seed = 0; seed < num_walks; ++seed) {
      const auto constraint = (*factory)();
      const auto walk =
          testing::random_walk(*constraint, *testing::embedded_tokenizer(), kEos,
                               static_cast<uint64_t>(seed), /*num_free=*/20, /*max_tokens=*/200);
      if (walk.ended) json.value(walk.text);
    }
    json.end_array();
  }
  json.end_object();
  return json.text();
}

int run() {
  GrammarCompiler compiler(*testing::embedded_tokenizer(), kEos, testing::ample_time());
  for (std::string line; std::getline(std::cin, line);) {
    const auto request = JsonDocument::parse(line, "request");
    if (!request.ok()) {
      std::cerr << request.status().message() << '\n';
      return 1;
    }
    std::cout << answer(compiler, request->root()) << std::endl;
  }
  return 0;
}

}  // namespace
}  // namespace quire

int main() {
  return quire::run();
}
