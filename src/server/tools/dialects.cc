#include "server/tools/dialects.h"

#include <algorithm>
#include <iterator>
#include <stdexcept>

#include "base/embed.h"

QUIRE_EMBED(quire_dialect_cohere_command3, QUIRE_DIALECTS_DIR "/cohere_command3.json")
QUIRE_EMBED(quire_dialect_deepseek_v3, QUIRE_DIALECTS_DIR "/deepseek_v3.json")
QUIRE_EMBED(quire_dialect_deepseek_v31, QUIRE_DIALECTS_DIR "/deepseek_v31.json")
QUIRE_EMBED(quire_dialect_deepseek_v32, QUIRE_DIALECTS_DIR "/deepseek_v32.json")
QUIRE_EMBED(quire_dialect_deepseek_v4, QUIRE_DIALECTS_DIR "/deepseek_v4.json")
QUIRE_EMBED(quire_dialect_ernie45, QUIRE_DIALECTS_DIR "/ernie45.json")
QUIRE_EMBED(quire_dialect_exaone4, QUIRE_DIALECTS_DIR "/exaone4.json")
QUIRE_EMBED(quire_dialect_gemma4, QUIRE_DIALECTS_DIR "/gemma4.json")
QUIRE_EMBED(quire_dialect_glm45, QUIRE_DIALECTS_DIR "/glm45.json")
QUIRE_EMBED(quire_dialect_granite, QUIRE_DIALECTS_DIR "/granite.json")
QUIRE_EMBED(quire_dialect_granite_20b_fc, QUIRE_DIALECTS_DIR "/granite_20b_fc.json")
QUIRE_EMBED(quire_dialect_hermes, QUIRE_DIALECTS_DIR "/hermes.json")
QUIRE_EMBED(quire_dialect_hunyuan, QUIRE_DIALECTS_DIR "/hunyuan.json")
QUIRE_EMBED(quire_dialect_kimi_k2, QUIRE_DIALECTS_DIR "/kimi_k2.json")
QUIRE_EMBED(quire_dialect_laguna, QUIRE_DIALECTS_DIR "/laguna.json")
QUIRE_EMBED(quire_dialect_lfm2, QUIRE_DIALECTS_DIR "/lfm2.json")
QUIRE_EMBED(quire_dialect_llama3_json, QUIRE_DIALECTS_DIR "/llama3_json.json")
QUIRE_EMBED(quire_dialect_llama4_json, QUIRE_DIALECTS_DIR "/llama4_json.json")
QUIRE_EMBED(quire_dialect_mimo, QUIRE_DIALECTS_DIR "/mimo.json")
QUIRE_EMBED(quire_dialect_minimax_m2, QUIRE_DIALECTS_DIR "/minimax_m2.json")
QUIRE_EMBED(quire_dialect_mistral, QUIRE_DIALECTS_DIR "/mistral.json")
QUIRE_EMBED(quire_dialect_muse, QUIRE_DIALECTS_DIR "/muse.json")
QUIRE_EMBED(quire_dialect_nemotron, QUIRE_DIALECTS_DIR "/nemotron.json")
QUIRE_EMBED(quire_dialect_nemotron_json, QUIRE_DIALECTS_DIR "/nemotron_json.json")
QUIRE_EMBED(quire_dialect_olmo3, QUIRE_DIALECTS_DIR "/olmo3.json")
QUIRE_EMBED(quire_dialect_openai, QUIRE_DIALECTS_DIR "/openai.json")
QUIRE_EMBED(quire_dialect_phi4_mini_json, QUIRE_DIALECTS_DIR "/phi4_mini_json.json")
QUIRE_EMBED(quire_dialect_pythonic, QUIRE_DIALECTS_DIR "/pythonic.json")
QUIRE_EMBED(quire_dialect_qwen3_coder, QUIRE_DIALECTS_DIR "/qwen3_coder.json")
QUIRE_EMBED(quire_dialect_seed_oss, QUIRE_DIALECTS_DIR "/seed_oss.json")
QUIRE_EMBED(quire_dialect_smollm3, QUIRE_DIALECTS_DIR "/smollm3.json")
QUIRE_EMBED(quire_dialect_step3, QUIRE_DIALECTS_DIR "/step3.json")
QUIRE_EMBED(quire_dialect_think, QUIRE_DIALECTS_DIR "/think.json")

namespace quire::server {
namespace {

std::vector<ResponseTemplate> read_dialects() {
  const std::string_view files[] = {
      QUIRE_EMBEDDED_TEXT(quire_dialect_cohere_command3),
      QUIRE_EMBEDDED_TEXT(quire_dialect_deepseek_v3),
      QUIRE_EMBEDDED_TEXT(quire_dialect_deepseek_v31),
      QUIRE_EMBEDDED_TEXT(quire_dialect_deepseek_v32),
      QUIRE_EMBEDDED_TEXT(quire_dialect_deepseek_v4),
      QUIRE_EMBEDDED_TEXT(quire_dialect_ernie45),
      QUIRE_EMBEDDED_TEXT(quire_dialect_exaone4),
      QUIRE_EMBEDDED_TEXT(quire_dialect_gemma4),
      QUIRE_EMBEDDED_TEXT(quire_dialect_glm45),
      QUIRE_EMBEDDED_TEXT(quire_dialect_granite),
      QUIRE_EMBEDDED_TEXT(quire_dialect_granite_20b_fc),
      QUIRE_EMBEDDED_TEXT(quire_dialect_hermes),
      QUIRE_EMBEDDED_TEXT(quire_dialect_hunyuan),
      QUIRE_EMBEDDED_TEXT(quire_dialect_kimi_k2),
      QUIRE_EMBEDDED_TEXT(quire_dialect_laguna),
      QUIRE_EMBEDDED_TEXT(quire_dialect_lfm2),
      QUIRE_EMBEDDED_TEXT(quire_dialect_llama3_json),
      QUIRE_EMBEDDED_TEXT(quire_dialect_llama4_json),
      QUIRE_EMBEDDED_TEXT(quire_dialect_mimo),
      QUIRE_EMBEDDED_TEXT(quire_dialect_minimax_m2),
      QUIRE_EMBEDDED_TEXT(quire_dialect_mistral),
      QUIRE_EMBEDDED_TEXT(quire_dialect_muse),
      QUIRE_EMBEDDED_TEXT(quire_dialect_nemotron),
      QUIRE_EMBEDDED_TEXT(quire_dialect_nemotron_json),
      QUIRE_EMBEDDED_TEXT(quire_dialect_olmo3),
      QUIRE_EMBEDDED_TEXT(quire_dialect_openai),
      QUIRE_EMBEDDED_TEXT(quire_dialect_phi4_mini_json),
      QUIRE_EMBEDDED_TEXT(quire_dialect_pythonic),
      QUIRE_EMBEDDED_TEXT(quire_dialect_qwen3_coder),
      QUIRE_EMBEDDED_TEXT(quire_dialect_seed_oss),
      QUIRE_EMBEDDED_TEXT(quire_dialect_smollm3),
      QUIRE_EMBEDDED_TEXT(quire_dialect_step3),
      QUIRE_EMBEDDED_TEXT(quire_dialect_think),
  };
  std::vector<ResponseTemplate> all;
  for (const std::string_view file : files) {
    Result<ResponseTemplate> dialect = parse_response_template(file, "a built-in dialect");
    if (!dialect.ok()) throw std::runtime_error(dialect.status().message());
    all.push_back(std::move(*dialect));
  }
  return all;
}

const ResponseTemplate* find_name(std::string_view name,
                                  std::vector<std::string> ResponseTemplate::*names) {
  for (const ResponseTemplate& dialect : dialects()) {
    const std::vector<std::string>& known = dialect.*names;
    if (std::ranges::find(known, name) != known.end()) return &dialect;
  }
  return nullptr;
}

}  // namespace

const std::vector<ResponseTemplate>& dialects() {
  static const std::vector<ResponseTemplate> all = read_dialects();
  return all;
}

const ResponseTemplate* find_dialect(std::string_view name) {
  return name.empty() ? nullptr : find_name(name, &ResponseTemplate::names);
}

const ResponseTemplate* find_reasoning_dialect(std::string_view name) {
  return name.empty() ? nullptr : find_name(name, &ResponseTemplate::reasoning_names);
}

}  // namespace quire::server
