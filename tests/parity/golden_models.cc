#include "parity/golden_models.h"

#include "base/file.h"
#include "base/json.h"
#include "support/shared_data.h"

namespace quire::testing {

namespace {

GoldenCases read_cases(const std::filesystem::path& root) {
  const JsonDocument document = JsonDocument::load(root / "cases.json").value();
  const simdjson::dom::object object = document.root().get_object().value();
  GoldenCases golden;
  for (const simdjson::dom::element id : object["input_ids"].get_array()) {
    golden.input_ids.push_back(static_cast<int32_t>(id.get_int64().value()));
  }
  for (const simdjson::dom::element entry : object["cases"].get_array()) {
    const auto text = [&entry](const char* key) {
      return std::string(entry[key].get_string().value());
    };
    golden.cases.push_back(
        {text("name"), root / text("weights"), root / text("config"), root / text("logits")});
  }
  return golden;
}

}  // namespace

GoldenCases read_golden_cases() {
  return read_cases(source_path("tests/golden/models"));
}

GoldenCases read_integer_cases() {
  GoldenCases golden = read_cases(source_path("tests/golden/integers"));
  for (GoldenCase& entry : golden.cases) entry.has_integers = true;
  return golden;
}

ModelConfig read_config(const std::filesystem::path& path) {
  return parse_model_config(read_file(path, 1 << 20).value(), path.string()).value();
}

std::vector<float> read_logits(const GoldenCase& golden, int64_t num_tokens, int64_t vocab_size) {
  const MappedFile file = MappedFile::open(golden.logits).value();
  auto checkpoint = Checkpoint::from_memory(file.bytes(), golden.logits.string()).value();
  const TensorView view = checkpoint->tensor("logits", {num_tokens, vocab_size}).value();
  return {view.as<float>(), view.as<float>() + view.shape.num_elements()};
}

}  // namespace quire::testing
