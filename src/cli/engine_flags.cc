#include "cli/engine_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

#include "attn/backend.h"
#include "base/ascii.h"
#include "base/log.h"
#include "base/machine.h"
#include "base/text.h"
#include "cli/output.h"
#include "engine/engine_internals.h"
#include "hub/cache/model_cache.h"
#include "hub/cache/model_folder.h"
#include "hub/cache/named_models.h"
#include "platform/platform.h"
#include "start/settings.h"

namespace quire::cli {
namespace {

// The words of a setting, in the form that FlagSet::choice() takes.
struct Choices {
  std::vector<std::string> values;
  FlagSet::Synonyms synonyms;
  FlagSet::Synonyms remedies;
};

Choices choices_of(const Setting& setting) {
  Choices choices;
  for (const SettingWord& word : setting.words) {
    if (word.is_value()) {
      choices.values.emplace_back(word.word);
    } else if (word.remedy.empty()) {
      choices.synonyms.emplace_back(word.word, word.value);
    } else {
      choices.remedies.emplace_back(word.word, word.remedy);
    }
  }
  return choices;
}

// Returns the backends of this build, and a remedy for each other backend.
Choices backend_choices() {
  Choices choices = {.values = {"auto"}, .synonyms = {}, .remedies = {}};
  for (const BackendName& backend : backend_names()) {
    if (is_built_for(backend.device)) {
      choices.values.emplace_back(backend.name);
    } else {
      choices.remedies.emplace_back(
          backend.name, fmt::format("{} needs a GPU, and this build has no CUDA", backend.name));
    }
  }
  return choices;
}

// Parses an integer, or one of the setting's words.
Result<int64_t> parse_setting(const Setting& setting, std::string_view text) {
  const auto word = std::ranges::find(setting.words, text, &SettingWord::word);
  if (word != setting.words.end()) {
    if (!word->remedy.empty()) return unexpected(text, word->remedy);
    return parse_integer(word->is_value() ? word->word : word->value, {});
  }
  if (setting.is_choice()) return unexpected(text, setting.listed_values());
  if (setting.notation == Notation::kBytes) {
    QUIRE_ASSIGN_OR_RETURN(const int64_t count, parse_bytes(text));
    if (setting.range.contains(static_cast<double>(count))) return count;
    return unexpected(text, "at most " + bytes_text(static_cast<int64_t>(setting.range.max)));
  }
  if (setting.notation == Notation::kCount) return parse_count(text, setting.range);
  Result<int64_t> number = parse_integer(text, setting.range);
  if (number.ok() || setting.words.empty()) return number;
  return unexpected(
      text, fmt::format("{} or an integer {}", setting.words.front().word, setting.range.text()));
}

// Adds the flag of a setting, by the type of its member.
struct SettingFlag {
  FlagSet& flags;
  const Setting& setting;
  std::string name = setting.flag_name();
  std::string help = std::string(setting.help);

  void operator()(bool* target) const {
    if (setting.text(EngineConfig()) == "true") {
      flags.on_by_default(name.substr(2), target, help);
    } else {
      flags.toggle(name, target, help);
    }
  }
  void operator()(std::string* target) const {
    if (setting.is_choice() || setting.notation == Notation::kBackend) {
      Choices choices = setting.is_choice() ? choices_of(setting) : backend_choices();
      flags.choice(name, std::move(choices.values), target, help, std::move(choices.synonyms),
                   std::move(choices.remedies));
      if (setting.notation == Notation::kBackend) flags.last().value_name = "NAME";
    } else if (setting.notation == Notation::kFile) {
      flags.file(name, target, help);
      flags.last().reserved = choices_of(setting).values;
    } else if (setting.notation == Notation::kDirectory) {
      flags.directory(name, target, help);
      flags.last().reserved = choices_of(setting).values;
    } else if (setting.notation == Notation::kModel) {
      flags.directory(name, target, help);
      flags.last().takes_model_name = true;
    } else if (setting.notation == Notation::kJson) {
      // Checks the value here, so that a wrong value ends the command before the model is read.
      const auto parse = [check =
                              setting.check_text](std::string_view text) -> Result<std::string> {
        if (text.empty()) return unexpected(text, "a JSON object, or no such flag");
        QUIRE_RETURN_IF_ERROR(check(text));
        return std::string(text);
      };
      flags.value(name, "JSON", target, "", help, parse);
    } else {
      flags.text(name, std::string(setting.value_name), target, help);
    }
  }
  void operator()(double* target) const { flags.number(name, target, setting.range, help); }
  void operator()(uint64_t* target) const { flags.seed(name, target, help); }
  template <typename Integer>
  void operator()(Integer* target) const {
    const auto parse = [&row = setting](std::string_view text) { return parse_setting(row, text); };
    const bool is_bytes = setting.notation == Notation::kBytes;
    flags.value(name, is_bytes ? "BYTES" : "N", target,
                is_bytes ? bytes_text(*target) : std::to_string(*target), help, parse);
    if (setting.is_choice()) {
      flags.last().choices = choices_of(setting).values;
      flags.last().value_name = fmt::format("{}", fmt::join(flags.last().choices, "|"));
    }
  }
};

// Returns whether the word is a name such as "Qwen/Qwen3-0.6B", also with @REVISION or :TAG. The
// organization must have a letter, so that the text "3/4" is not a name.
bool is_full_model_name(std::string_view word) {
  const auto is_letter = [](char c) { return is_alphanumeric(c) && !is_digit(c); };
  const std::string_view organization = word.substr(0, word.find('/'));
  return organization.size() < word.size() && hub::parse_model_name(word) &&
         std::ranges::any_of(organization, is_letter);
}

// Warns of settings that are valid but probably not what the user wants.
void warn_of(const EngineConfig& config) {
  const int num_cpus = num_usable_cpus();
  if (config.num_threads > num_cpus) {
    log_warning(
        "[cli] --threads {} is more than the {} usable CPUs; expected at most that many, because "
        "threads would wait for each other",
        config.num_threads, num_cpus);
  }
  const bool on_gpu = config.device == "cuda" || (config.device != "cpu" && cuda_status().ok());
  for (const Setting& setting : all_settings()) {
    const bool is_ignored = setting.only_on && (*setting.only_on == DeviceKind::kCuda) != on_gpu;
    if (!is_ignored || setting.is_default(config) || setting.text(config) == setting.off_value)
      continue;
    log_warning("[cli] {} has no effect on a {}", setting.flag_name(), on_gpu ? "GPU" : "CPU");
  }
  if (!on_gpu && config.tuning_table == "measured") {
    log_warning(
        "[cli] --tuning-table measured has no effect on a CPU: quire tune measures threads");
  }
}

LoadProgress show_layers(Progress& progress) {
  return [&](int num_done, int num_layers) {
    progress.update(static_cast<size_t>(num_done), static_cast<size_t>(num_layers),
                    [] { return "layers"; });
  };
}

}  // namespace

void add_setting(FlagSet& flags, EngineConfig* config, std::string_view name) {
  const Setting& row = setting(name);
  const SettingFlag flag = {.flags = flags, .setting = row};
  std::visit([&](auto member) { flag(&(config->*member)); }, row.member);
  flags.last().alias = row.alias;
  flags.last().field = row.name;
}

void add_tuned_cpu_flags(FlagSet& flags, EngineConfig* config) {
  for (const std::string_view name :
       {"device", "load_format", "quantization", "cpu_cores", "cpu_pinning", "cpu_activations"}) {
    add_setting(flags, config, name);
  }
}

void add_attention_flags(FlagSet& flags, EngineConfig* config) {
  add_setting(flags, config, "model");
  flags.choice("--dtype", {"auto", "f16", "bf16"}, &config->dtype,
               "Type of queries; auto: the model's", choices_of(setting("dtype")).synonyms);
  add_setting(flags, config, "block_size");
  add_setting(flags, config, "kv_cache_dtype");
}

bool names_model(std::string_view word) {
  for (const std::string_view start : {"/", "./", "../", "~/"}) {
    if (word.starts_with(start)) return true;
  }
  std::error_code error;
  return word.ends_with(".gguf") || is_full_model_name(word) || word == hub::kEmbeddedModel ||
         hub::find_named_model(word) != nullptr || !hub::local_model_file(word).empty() ||
         std::filesystem::exists(word, error);
}

Status check_first_word(std::string_view word, std::string_view text_name) {
  // Names of models have no spaces and begin with a letter or a digit.
  const bool may_be_name =
      !word.empty() && is_alphanumeric(word.front()) && std::ranges::all_of(word, [](char c) {
        return is_alphanumeric(c) || std::string_view("._-/:@").find(c) != std::string_view::npos;
      });
  if (!may_be_name) return {};
  return invalid_argument(
      fmt::format("'{}' is no model: there is neither such a path nor such a model in the model "
                  "folder; quire pull ORG/NAME or {} downloads one, and {} of several words needs "
                  "quotes",
                  clipped(word), hub::kDefaultModel, text_name));
}

DefaultModel default_model() {
  const Result<std::filesystem::path> models = hub::models_directory();
  if (const Status readable = models.ok() ? hub::check_models_folder(*models) : Status();
      !readable.ok()) {
    return {"",
            fmt::format("no model is named: using the embedded one, which solves word problems; "
                        "{}",
                        readable.message())};
  }
  const std::filesystem::path file = hub::local_model_file(hub::kDefaultModel);
  if (file.empty()) {
    return {"",
            fmt::format("no model is named: using the embedded one, which solves word problems; "
                        "quire pull {} downloads one that chats",
                        hub::kDefaultModel)};
  }
  return {file.string(), fmt::format("no model is named: using {} of {}; --model {} is the one in "
                                     "the binary",
                                     hub::kDefaultModel, file.parent_path().parent_path().string(),
                                     hub::kEmbeddedModel)};
}

void use_default_model(std::string* model) {
  if (!model->empty()) return;
  DefaultModel chosen = default_model();
  print_stderr("{}\n", chosen.note);
  *model = std::move(chosen.model);
}

Status set_model(std::string_view word, EngineConfig* config) {
  if (!config->model.empty() && config->model != word) {
    return invalid_argument(
        fmt::format("expected one model, got {} and --model {}", clipped(word), config->model));
  }
  config->model = word;
  return {};
}

Positional model_argument(EngineConfig* config, MissingModel missing) {
  std::string help = "The model, as --model MODEL";
  if (missing == MissingModel::kIsPulled) help += fmt::format(". {}", kPullsMissingModel);
  return {.name = "MODEL",
          .help = std::move(help),
          .kind = ValueKind::kDirectory,
          .set = [config](std::string_view word) { return set_model(word, config); }};
}

void add_chat_flags(FlagSet& flags, EngineConfig* config) {
  add_setting(flags, config, "chat_template");
  add_setting(flags, config, "allow_special_tokens_in_messages");
}

void add_engine_flags(FlagSet& flags, EngineConfig* config, SeedFlag seed) {
  for (const Setting& setting : all_settings()) {
    if (setting.group.empty() || (setting.name == "seed" && seed == SeedFlag::kOfCommand)) continue;
    flags.begin_group(std::string(setting.group));
    add_setting(flags, config, setting.name);
  }
  flags.add_check([config](Complaints& complaints) {
    for (const Status& error : find_conflicts(*config)) complaints.add(error);
  });
}

EngineConfig with_dummy_weights_of_config(EngineConfig config) {
  std::error_code error;
  const std::filesystem::path path = config.model;
  if (path.extension() == ".json" && std::filesystem::is_regular_file(path, error)) {
    config.load_format = "dummy";
  }
  return config;
}

Result<std::unique_ptr<Engine>> load_engine(const EngineConfig& config) {
  warn_of(config);
  Progress progress("loading");
  return Engine::create(config, show_layers(progress));
}

Status run_engine_node(const EngineConfig& config, const std::function<bool()>& should_stop) {
  warn_of(config);
  Progress progress("loading");
  return Engine::run_node(config, should_stop, show_layers(progress));
}

Status check_chat_template(const Engine& engine, const std::string& system) {
  if (engine.model_info().embedding_size > 0) {
    return invalid_argument(fmt::format(
        "[chat] {} embeds texts and does not generate; use quire serve and POST /v1/embeddings",
        engine.model_info().name));
  }
  std::vector<ChatMessage> messages;
  if (!system.empty()) messages.push_back({"system", system});
  messages.push_back({"user", "hello"});
  const Status& fault = EngineInternals::template_fault(engine);
  const Status status = fault.ok() ? engine.render_chat(messages).status() : fault;
  if (status.ok()) return status;
  std::string_view reason = status.message();
  if (reason.starts_with('[')) reason.remove_prefix(reason.find("] ") + 2);
  return {status.code(),
          fmt::format("[chat] {}: {}; quire generate without --chat takes plain prompts",
                      engine.model_info().name, reason)};
}

std::string engine_message(const Status& error) {
  EngineConfig config;
  FlagSet flags;
  for (const Setting& setting : all_settings()) {
    if (!setting.help.empty()) add_setting(flags, &config, setting.name);
  }
  return flags.name_flags(error.message());
}

}  // namespace quire::cli
