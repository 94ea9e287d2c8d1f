#include "hub/pull/repository_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "base/ascii.h"
#include "base/json.h"
#include "base/numbers.h"
#include "base/text.h"
#include "hub/cache/gguf_sets.h"
#include "hub/cache/model_cache.h"
#include "tensor/checkpoint.h"
#include "tokenizer/tokenizer.h"

namespace quire::hub {
namespace {

constexpr size_t kMaxFiles = 100'000;
constexpr size_t kMaxNameBytes = 1024;
constexpr int64_t kMaxWeightsBytes = int64_t{1} << 42;  // 4 TiB, of a file of weights
constexpr int64_t kMaxOtherBytes = int64_t{1} << 30;    // 1 GiB, of any other file

constexpr std::string_view kConfigFile = "config.json";
// The files that Quire reads besides the weights, their index and kTokenizerFiles. Embedding models
// have the last two.
constexpr std::array<std::string_view, 7> kConfigFiles = {kConfigFile,
                                                          "generation_config.json",
                                                          "hf_quant_config.json",
                                                          "tokenizer_config.json",
                                                          "chat_template.jinja",
                                                          "modules.json",
                                                          "1_Pooling/config.json"};

// Weights in formats that Quire does not read, by the ends and starts of their files' names.
struct OtherFormat {
  std::string_view name;
  std::vector<std::string_view> suffixes;
  std::vector<std::string_view> prefixes = {""};

  bool has(std::string_view path) const {
    const std::string_view file = path.substr(path.rfind('/') + 1);
    return std::ranges::any_of(suffixes, [&](auto suffix) { return file.ends_with(suffix); }) &&
           std::ranges::any_of(prefixes, [&](auto prefix) { return file.starts_with(prefix); });
  }
};
const std::vector<OtherFormat>& other_formats() {
  // The prefixes exclude PyTorch files that have the state of a training, such as optimizer.pt and
  // training_args.bin.
  static const std::vector<OtherFormat> formats = {
      {"PyTorch", {".bin", ".pth", ".pt", ".ckpt"}, {"pytorch_model", "model", "consolidated"}},
      {"ONNX", {".onnx"}},
      {"TensorFlow", {".h5", ".tflite"}},
      {"Flax", {".msgpack"}}};
  return formats;
}

// Whether Quire reads the file, other than weights and their index.
bool is_read_beside_weights(std::string_view name) {
  return std::ranges::find(kConfigFiles, name) != kConfigFiles.end() ||
         std::ranges::find(kTokenizerFiles, name) != kTokenizerFiles.end();
}

bool is_control(char c) {
  return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
}

// Whether the name is a relative path without ".", "..", '\\' and control characters.
bool is_safe_path(std::string_view name) {
  if (name.empty() || name.size() > kMaxNameBytes || std::ranges::any_of(name, is_control)) {
    return false;
  }
  for (size_t begin = 0; begin <= name.size();) {
    const size_t end = std::min(name.find('/', begin), name.size());
    const std::string_view part = name.substr(begin, end - begin);
    if (part.empty() || part == "." || part == "..") return false;
    begin = end + 1;
  }
  return name.find('\\') == std::string_view::npos;
}

Result<RepositoryFile> parse_file(simdjson::dom::element entry) {
  RepositoryFile file;
  std::string_view text;
  if (entry["rfilename"].get(text) || !is_safe_path(text)) {
    return invalid_argument(fmt::format(
        "[hub] the hub's list of files has '{}'; expected a relative path inside the repository",
        clipped(text)));
  }
  file.name = text;
  simdjson::dom::object large;
  file.is_large = !entry["lfs"].get(large);
  if (!(file.is_large ? large["sha256"].get(text) : entry["blobId"].get(text))) file.hash = text;
  const auto size = file.is_large ? large["size"] : entry["size"];
  if (size.get(file.size)) file.size = -1;
  return file;
}

std::string text_of_names(const std::vector<RepositoryFile>& files) {
  constexpr size_t kMaxListed = 4;
  std::string text;
  for (size_t i = 0; i < std::min(files.size(), kMaxListed); ++i) {
    text += (i == 0 ? "" : ", ") + clipped(files[i].name);
  }
  if (files.size() > kMaxListed) text += fmt::format(" and {} more", files.size() - kMaxListed);
  return text;
}

// Returns the error for a repository with neither kWeightsFile nor kWeightsIndexFile. It names the
// format that the repository has instead, and the remedy.
Status no_weights(const std::vector<RepositoryFile>& others) {
  for (const RepositoryFile& file : others) {
    if (file.name == "adapter_model.safetensors") {
      return unimplemented(
          "[hub] the repository has only an adapter (adapter_model.safetensors); expected a model "
          "into which the adapter is merged");
    }
    for (const OtherFormat& format : other_formats()) {
      if (!format.has(file.name)) continue;
      return unimplemented(
          fmt::format("[hub] the repository has {} weights ({}) and no {}; expected a repository "
                      "with safetensors or GGUF files; usually the original repository, from which "
                      "this one was converted",
                      format.name, clipped(file.name), kWeightsFile));
    }
  }
  return not_found(
      fmt::format("[hub] the repository has neither {} nor {} nor a GGUF file; expected a model "
                  "with safetensors or GGUF files",
                  kWeightsFile, kWeightsIndexFile));
}

std::vector<GgufSet> gguf_sets_of(const RepositoryList& list) {
  std::vector<std::string> names;
  for (const RepositoryFile& file : list.files) names.push_back(file.name);
  return group_gguf_files(std::move(names));
}

Status no_such_tag(const RepositoryList& list, const std::vector<GgufSet>& sets,
                   std::string_view tag) {
  if (sets.empty()) {
    return not_found(
        fmt::format("[hub] the repository has no GGUF file, and so no {}; leave out "
                    "the tag for safetensors, or name a repository with GGUF files",
                    clipped(tag)));
  }
  return not_found(fmt::format(
      "[hub] the repository has no GGUF file {}{}; expected one of {}", clipped(tag),
      list.find(kWeightsFile) == nullptr ? "" : " beside its safetensors", list_of_tags(sets)));
}

// Chooses a GGUF model. The caller has checked that there are no safetensors, or has a tag.
Result<FileChoice> choose_gguf_files(const RepositoryList& list, const std::vector<GgufSet>& sets,
                                     std::string_view tag) {
  const GgufSet* const set = choose_gguf(sets, tag);
  if (set == nullptr) return no_such_tag(list, sets, tag);
  if (!set->is_complete()) {
    return not_found(fmt::format(
        "[hub] the repository has only {} of {} files of {}; expected all; ask its author, or "
        "choose one of {}",
        set->files.size(), set->num_files, clipped(set->tag), list_of_tags(sets)));
  }
  FileChoice choice;
  choice.is_gguf = true;
  const std::set<std::string_view> chosen(set->files.begin(), set->files.end());
  for (const RepositoryFile& file : list.files) {
    if (chosen.contains(file.name)) {
      QUIRE_RETURN_IF_ERROR(check_file(file));
      choice.weights.push_back(file);
    } else if (is_gguf_companion(file.name)) {
      choice.others.push_back(file);
    }
  }
  std::ranges::sort(choice.weights, {}, &RepositoryFile::name);  // the first shard comes first
  return choice;
}

}  // namespace

const RepositoryFile* RepositoryList::find(std::string_view name) const {
  const auto found = std::ranges::find(files, name, &RepositoryFile::name);
  return found == files.end() ? nullptr : &*found;
}

Result<RepositoryList> parse_repository_list(std::string_view json) {
  QUIRE_ASSIGN_OR_RETURN(
      const JsonDocument document,
      JsonDocument::parse(json, "the hub's list of files", {.max_bytes = kMaxListBytes}));
  RepositoryList list;
  std::string_view commit;
  simdjson::dom::array siblings;
  if (document.root()["sha"].get(commit) || !is_commit(commit) ||
      document.root()["siblings"].get(siblings)) {
    return invalid_argument(
        "[hub] the hub's response is not a list of files; expected an object with `sha`, a commit, "
        "and `siblings`; check HF_ENDPOINT");
  }
  list.commit = commit;
  std::string_view architecture;
  if (!document.root()["gguf"]["architecture"].get(architecture)) {
    list.gguf_architecture = architecture;
  }
  std::set<std::string> names;
  for (const simdjson::dom::element entry : siblings) {
    if (list.files.size() == kMaxFiles) {
      return invalid_argument(
          fmt::format("[hub] the repository has too many files; expected at most {}", kMaxFiles));
    }
    QUIRE_ASSIGN_OR_RETURN(RepositoryFile file, parse_file(entry));
    if (!names.insert(file.name).second) {
      return invalid_argument(
          fmt::format("[hub] the hub lists {} twice; expected each file once", clipped(file.name)));
    }
    list.files.push_back(std::move(file));
  }
  return list;
}

Status check_file(const RepositoryFile& file) {
  constexpr size_t kSha256Digits = 64;
  constexpr size_t kSha1Digits = 40;
  const size_t num_digits = file.is_large ? kSha256Digits : kSha1Digits;
  const auto is_lower_hex = [](char c) { return is_digit(c) || (c >= 'a' && c <= 'f'); };
  if (file.hash.size() != num_digits || !std::ranges::all_of(file.hash, is_lower_hex)) {
    return invalid_argument(fmt::format(
        "[hub] the hub's list gives {} the hash '{}'; expected {} hexadecimal digits in lower "
        "case; a mirror (HF_ENDPOINT) must support ?blobs=true",
        clipped(file.name), clipped(file.hash), num_digits));
  }
  const bool has_weights = file.name != kWeightsIndexFile && !is_read_beside_weights(file.name);
  const int64_t max_bytes = has_weights ? kMaxWeightsBytes : kMaxOtherBytes;
  if (file.size < 0 || file.size > max_bytes) {
    return invalid_argument(
        fmt::format("[hub] the hub's list gives {} the size {}; expected 0 to {} bytes; a mirror "
                    "(HF_ENDPOINT) must support ?blobs=true",
                    clipped(file.name), file.size, max_bytes));
  }
  return {};
}

Result<FileChoice> choose_files(const RepositoryList& list, std::string_view gguf_tag) {
  const bool has_single = list.find(kWeightsFile) != nullptr;
  FileChoice choice;
  choice.has_index = !has_single && list.find(kWeightsIndexFile) != nullptr;
  const bool has_safetensors = has_single || choice.has_index;
  const std::vector<GgufSet> sets = gguf_sets_of(list);
  if (!gguf_tag.empty() || (!has_safetensors && !sets.empty())) {
    return choose_gguf_files(list, sets, gguf_tag);
  }
  for (const RepositoryFile& file : list.files) {
    const bool is_index = choice.has_index && file.name == kWeightsIndexFile;
    if (is_index || is_read_beside_weights(file.name)) {
      choice.small.push_back(file);
    } else if (file.name == kWeightsFile) {
      choice.weights.push_back(file);
    } else {
      choice.others.push_back(file);
    }
  }
  if (!has_safetensors) return no_weights(choice.others);
  if (list.find(kConfigFile) == nullptr) {
    return not_found(
        fmt::format("[hub] the repository has no {}; expected a checkpoint of a "
                    "language model in transformers' format",
                    kConfigFile));
  }
  for (const RepositoryFile& file : choice.small) QUIRE_RETURN_IF_ERROR(check_file(file));
  for (const RepositoryFile& file : choice.weights) QUIRE_RETURN_IF_ERROR(check_file(file));
  return choice;
}

Status choose_shards(const std::vector<std::string>& names, FileChoice& choice) {
  for (const std::string& name : names) {
    const auto found = std::ranges::find(choice.others, name, &RepositoryFile::name);
    if (found == choice.others.end()) {
      return not_found(fmt::format("[hub] the repository lacks the file {}, which {} lists",
                                   clipped(name), kWeightsIndexFile));
    }
    QUIRE_RETURN_IF_ERROR(check_file(*found));
    choice.weights.push_back(*found);
    choice.others.erase(found);
  }
  return {};
}

std::string describe_skipped(const std::vector<RepositoryFile>& others) {
  if (others.empty()) return "";
  Saturated bytes = 0;
  for (const RepositoryFile& file : others) bytes = bytes + std::max<int64_t>(file.size, 0);
  return fmt::format("{} file{} that Quire does not read ({}): {}", others.size(),
                     others.size() == 1 ? "" : "s", bytes_text(bytes.get()), text_of_names(others));
}

std::string bytes_text(int64_t bytes) {
  constexpr std::array<std::string_view, 4> kUnits = {"KB", "MB", "GB", "TB"};
  if (bytes < 1000) return fmt::format("{} byte{}", bytes, bytes == 1 ? "" : "s");
  double value = static_cast<double>(bytes) / 1000;
  size_t unit = 0;
  for (; value >= 999.95 && unit + 1 < kUnits.size(); ++unit) value /= 1000;
  return fmt::format("{:.1f} {}", value, kUnits[unit]);
}

}  // namespace quire::hub
