#include "hub/cache/model_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "base/ascii.h"
#include "base/file.h"
#include "base/text.h"
#include "hub/cache/gguf_sets.h"
#include "hub/cache/model_folder.h"
#include "hub/cache/named_models.h"
#include "tensor/checkpoint.h"
#include "tokenizer/tokenizer.h"

namespace quire::hub {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxNameBytes = 96;  // of one part, as on the hub
constexpr size_t kMaxRevisionBytes = 255;
constexpr size_t kMaxRefBytes = 256;
constexpr std::string_view kFolderStart = "models--";

// Returns whether the hub allows this name of an organization or a model: letters, digits, '-', '_'
// and '.', without '-' or '.' at its start or end, and without "--" and "..".
bool is_name_part(std::string_view part) {
  const auto is_edge = [](char c) { return c == '-' || c == '.'; };
  return !part.empty() && part.size() <= kMaxNameBytes && !is_edge(part.front()) &&
         !is_edge(part.back()) && part.find("--") == std::string_view::npos &&
         part.find("..") == std::string_view::npos && std::ranges::all_of(part, [&](char c) {
           return is_alphanumeric(c) || c == '_' || is_edge(c);
         });
}

// Returns whether the text can be a branch such as "main" or "refs/pr/1", a tag or a commit. It
// becomes a path below refs/.
bool is_revision(std::string_view text) {
  return !text.empty() && text.size() <= kMaxRevisionBytes && text.front() != '/' &&
         text.back() != '/' && text.find("//") == std::string_view::npos &&
         text.find("..") == std::string_view::npos && text.front() != '.' &&
         text.find("/.") == std::string_view::npos && std::ranges::all_of(text, [](char c) {
           return is_alphanumeric(c) || std::string_view("-_./+").find(c) != std::string_view::npos;
         });
}

// The hub's address at the start of the text, such as "hf.co/" or "https://huggingface.co/"; empty
// if the text does not begin with it.
std::string_view host_before(std::string_view text) {
  for (const std::string_view host :
       {"hf.co/", "huggingface.co/", "https://hf.co/", "https://huggingface.co/"}) {
    if (text.starts_with(host)) return host;
  }
  return {};
}

bool is_there(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

std::vector<std::string> entries(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    names.push_back(it->path().filename().string());
  }
  std::ranges::sort(names);
  return names;
}

std::string folder_name(std::string_view repository) {
  std::string name(kFolderStart);
  for (const char c : repository) name += c == '/' ? std::string("--") : std::string(1, c);
  return name;
}

// The name of the setting in errors. It depends on which files are read.
std::string_view setting(Needs needs) {
  return needs == Needs::kTokenizer ? "[tokenizer] tokenizer" : "[model] model";
}

// Returns the repository of a model's folder; empty for any other folder. The first "--" stands for
// the slash of the name; names contain no "--".
std::string repository_of(std::string_view folder) {
  if (!folder.starts_with(kFolderStart)) return "";
  std::string name(folder.substr(kFolderStart.size()));
  const size_t slash = name.find("--");
  if (slash != std::string::npos) name.replace(slash, 2, "/");
  return parse_model_name(name) ? name : "";
}

// Returns a model of the cache whose name differs in case only; empty if no name does.
std::string name_in_other_case(const ModelName& name, const fs::path& cache) {
  const std::string wanted = folder_name(name.repository);
  for (const std::string& folder : entries(cache)) {
    if (!equals_ignoring_case(folder, wanted)) continue;
    return repository_of(folder);
  }
  return "";
}

Status not_in_cache(const ModelName& name, const fs::path& cache, Needs needs) {
  const std::string other = name_in_other_case(name, cache);
  const std::string_view repository = name.repository;
  const bool can_be_pulled =
      repository.find('/') != std::string::npos || find_named_model(name.text()) != nullptr;
  const Result<fs::path> models = models_directory();
  return not_found(fmt::format(
      "{}: {} is neither a directory nor a model in the hub's cache, {}{}{}; `quire pull {}` "
      "downloads {}",
      setting(needs), name.text(), cache.string(),
      other.empty() ? "" : fmt::format(", which has {}", other),
      models.ok() ? fmt::format(", or in the model folder, {}", models->string()) : "",
      can_be_pulled ? name.text() : kDefaultModel,
      can_be_pulled ? "it" : "a small model, and `quire pull ORG/NAME` one of the hub"));
}

// The branches and tags that the cache has, such as "main" and "refs/pr/1".
std::vector<std::string> revisions(const fs::path& refs) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::recursive_directory_iterator it(refs, error), end; !error && it != end;
       it.increment(error)) {
    std::error_code ignored;
    if (it->is_regular_file(ignored)) names.push_back(it->path().lexically_relative(refs).string());
  }
  std::ranges::sort(names);
  return names;
}

Status no_such_revision(const ModelName& name, const fs::path& folder, Needs needs) {
  std::vector<std::string> have = revisions(folder / "refs");
  std::erase(have, name.revision);  // its snapshot is missing
  for (const std::string& commit : entries(folder / "snapshots")) have.push_back(commit);
  return not_found(fmt::format(
      "{}: the hub's cache has {}, but not its revision {}{}; `quire pull {}` downloads it",
      setting(needs), name.repository, name.revision,
      have.empty() ? ""
                   : fmt::format(" (it has {})", clipped(fmt::format("{}", fmt::join(have, ", ")))),
      name.text()));
}

// Returns the commit of a revision; empty if it is not in the cache.
Result<std::string> commit_of(const ModelName& name, const fs::path& folder) {
  const fs::path ref = folder / "refs" / name.revision;
  std::error_code error;
  if (!fs::is_regular_file(ref, error)) return is_commit(name.revision) ? name.revision : "";
  QUIRE_ASSIGN_OR_RETURN(const std::string text, read_file(ref, kMaxRefBytes));
  const std::string commit(trimmed(text));
  if (is_commit(commit)) return commit;
  return invalid_argument(
      fmt::format("[hub] {} has no commit; got '{}', expected 40 hexadecimal "
                  "digits; `quire pull {}` writes it again",
                  ref.string(), clipped(commit), name.text()));
}

// The needed files that the snapshot lacks. A link without its blob counts as missing.
Result<std::vector<std::string>> missing_files(const fs::path& snapshot, Needs needs) {
  std::vector<std::string> missing;
  const auto check = [&](std::string_view name) {
    if (!is_there(snapshot / name)) missing.emplace_back(name);
  };
  if (needs == Needs::kTokenizer) {
    const bool has_any = std::ranges::any_of(
        kTokenizerFiles, [&](std::string_view name) { return is_there(snapshot / name); });
    if (!has_any) check(kTokenizerFiles.front());
    return missing;
  }
  check("config.json");
  if (needs == Needs::kConfig || is_there(snapshot / kWeightsFile)) return missing;
  const fs::path index = snapshot / kWeightsIndexFile;
  if (!is_there(index)) {
    check(kWeightsFile);
    return missing;
  }
  QUIRE_ASSIGN_OR_RETURN(const std::vector<std::string> shards, read_shard_names(index));
  for (const std::string& shard : shards) check(shard);
  return missing;
}

std::string listed(const std::vector<std::string>& names) {
  constexpr size_t kMaxListed = 4;
  const size_t num_listed = std::min(names.size(), kMaxListed);
  std::string text = fmt::format("{}", fmt::join(names.begin(), names.begin() + num_listed, ", "));
  if (names.size() > num_listed) text += fmt::format(" and {} more", names.size() - num_listed);
  return text;
}

// Returns the GGUF file of the snapshot that the name's tag selects.
Result<fs::path> find_gguf(const ModelName& name, const fs::path& snapshot, Needs needs) {
  const std::vector<GgufSet> sets = group_gguf_files(gguf_files_of(snapshot));
  const GgufSet* const set = choose_gguf(sets, name.gguf_tag);
  if (set == nullptr) {
    return not_found(fmt::format(
        "{}: the hub's cache has no GGUF file {} of {}{}; `quire pull {}` downloads it",
        setting(needs), name.gguf_tag, name.repository,
        sets.empty() ? "" : fmt::format(" (it has {})", list_of_tags(sets)), name.text()));
  }
  if (set->is_complete()) return snapshot / set->files.front();
  return not_found(fmt::format(
      "{}: {} is only partly in the hub's cache: {} has {} of {} files; `quire pull {}` downloads "
      "the rest",
      setting(needs), name.text(), snapshot.string(), set->files.size(), set->num_files,
      name.text()));
}

}  // namespace

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

fs::path expanded(const std::string& path) {
  if (path == "~" || path.starts_with("~/")) return fs::path(variable("HOME") + path.substr(1));
  return path;
}

std::string ModelName::text() const {
  std::string text = revision == kMainRevision ? repository : repository + "@" + revision;
  return gguf_tag.empty() ? text : text + ":" + gguf_tag;
}

std::optional<ModelName> parse_model_name(std::string_view text) {
  ModelName name;
  const std::string_view host = host_before(text);
  text.remove_prefix(host.size());
  bool must_have_org = !host.empty();
  if (const size_t colon = text.find(':'); colon != std::string_view::npos) {
    name.gguf_tag = text.substr(colon + 1);
    if (!is_revision(name.gguf_tag)) return std::nullopt;  // the text may be a path
    if (name.gguf_tag == "latest") name.gguf_tag.clear();
    text = text.substr(0, colon);
    must_have_org = true;
  }
  const size_t at = text.find('@');
  const std::string_view repository = text.substr(0, at);
  if (at != std::string_view::npos) name.revision = text.substr(at + 1);
  const size_t slash = repository.find('/');
  const bool has_org = slash != std::string_view::npos;
  if ((must_have_org && !has_org) || !host_before(repository).empty()) return std::nullopt;
  if (has_org && !is_name_part(repository.substr(0, slash))) return std::nullopt;
  if (!is_name_part(has_org ? repository.substr(slash + 1) : repository)) return std::nullopt;
  if (!is_revision(name.revision)) return std::nullopt;
  name.repository = repository;
  return name;
}

bool is_commit(std::string_view revision) {
  constexpr size_t kCommitDigits = 40;
  return revision.size() == kCommitDigits &&
         std::ranges::all_of(revision, [](char c) { return hex_digit(c) >= 0; });
}

Result<fs::path> hub_home() {
  if (const std::string home = variable("HF_HOME"); !home.empty()) return expanded(home);
  if (const std::string caches = variable("XDG_CACHE_HOME"); !caches.empty()) {
    return expanded(caches) / "huggingface";
  }
  const std::string home = variable("HOME");
  if (!home.empty()) return fs::path(home) / ".cache" / "huggingface";
  return not_found(
      "[hub] neither HF_HUB_CACHE, HF_HOME nor HOME is set; expected one of them, to "
      "find the hub's cache");
}

Result<fs::path> cache_directory() {
  for (const char* name : {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"}) {
    if (const std::string cache = variable(name); !cache.empty()) return expanded(cache);
  }
  QUIRE_ASSIGN_OR_RETURN(const fs::path home, hub_home());
  return home / "hub";
}

fs::path model_folder(const fs::path& cache, const ModelName& name) {
  return cache / folder_name(name.repository);
}

Result<FoundModel> find_model(const std::string& model, Needs needs) {
  QUIRE_ASSIGN_OR_RETURN(const bool is_path, path_exists(model));
  if (is_path) return FoundModel{model, ""};
  const std::string_view local_name = local_model_name(model);
  if (const fs::path file = local_model_file(local_name); !file.empty()) {
    return FoundModel{file, std::string(local_name)};
  }
  const std::optional<ModelName> name = parse_model_name(local_name);
  if (model.ends_with(".gguf") && (!name || name->gguf_tag.empty())) {
    return not_found(fmt::format(
        "{}: the file {} does not exist; expected the path of a GGUF file, or ORG/NAME:FILE for a "
        "file of the hub",
        setting(needs), model));
  }
  if (!name) {
    return not_found(fmt::format(
        "{}: {} does not exist; expected a directory with {}, or the name of a model in the hub's "
        "cache, such as Qwen/Qwen3-0.6B or Qwen/Qwen3-0.6B-GGUF:Q8_0",
        setting(needs), model,
        needs == Needs::kTokenizer ? kTokenizerFileList : "config.json and safetensors"));
  }
  QUIRE_ASSIGN_OR_RETURN(const fs::path cache, cache_directory());
  QUIRE_ASSIGN_OR_RETURN(const fs::path path, find_in_cache(*name, cache, needs));
  return FoundModel{path,
                    ModelName{.repository = name->repository, .gguf_tag = name->gguf_tag}.text()};
}

std::vector<std::pair<std::string, fs::path>> list_repositories(const fs::path& cache) {
  std::vector<std::pair<std::string, fs::path>> repositories;
  for (const std::string& folder : entries(cache)) {
    const std::string repository = repository_of(folder);
    std::error_code error;
    if (repository.empty() || !fs::is_directory(cache / folder, error)) continue;
    repositories.emplace_back(repository, cache / folder);
  }
  return repositories;
}

Result<fs::path> find_snapshot(const ModelName& name, const fs::path& cache, Needs needs) {
  const fs::path folder = model_folder(cache, name);
  if (!is_there(folder)) return not_in_cache(name, cache, needs);
  QUIRE_ASSIGN_OR_RETURN(const std::string commit, commit_of(name, folder));
  const fs::path snapshot = folder / "snapshots" / commit;
  if (commit.empty() || !is_there(snapshot)) return no_such_revision(name, folder, needs);
  return snapshot;
}

std::vector<std::string> gguf_files_of(const fs::path& snapshot) {
  std::vector<std::string> files;
  std::error_code error;
  for (fs::recursive_directory_iterator it(snapshot, error), end; !error && it != end;
       it.increment(error)) {
    std::error_code ignored;
    if (it->path().extension() != ".gguf" || !it->is_regular_file(ignored)) continue;
    files.push_back(it->path().lexically_relative(snapshot).generic_string());
  }
  return files;
}

Result<fs::path> find_in_cache(const ModelName& name, const fs::path& cache, Needs needs) {
  QUIRE_ASSIGN_OR_RETURN(const fs::path snapshot, find_snapshot(name, cache, needs));
  if (!name.gguf_tag.empty()) return find_gguf(name, snapshot, needs);
  QUIRE_ASSIGN_OR_RETURN(const std::vector<std::string> missing, missing_files(snapshot, needs));
  if (missing.empty()) return snapshot;
  std::vector<GgufSet> sets = group_gguf_files(gguf_files_of(snapshot));
  std::erase_if(sets, [](const GgufSet& set) { return !set.is_complete(); });
  if (const GgufSet* const set = choose_gguf(sets, "")) return snapshot / set->files.front();
  return not_found(fmt::format(
      "{}: {} is only partly in the hub's cache: {} lacks {}; `quire pull {}` downloads the rest",
      setting(needs), name.text(), snapshot.string(), listed(missing), name.text()));
}

}  // namespace quire::hub
