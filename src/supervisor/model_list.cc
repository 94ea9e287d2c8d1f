#include "supervisor/model_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>

#include "base/ascii.h"
#include "base/file.h"
#include "base/model_name.h"
#include "base/text.h"

namespace quire::supervisor {
namespace {

namespace fs = std::filesystem;

Status ini_error(std::string_view source, int line, std::string_view what) {
  return invalid_argument(fmt::format("[supervisor] {}:{}: {}", source, line, what));
}

class IniParser {
 public:
  explicit IniParser(std::string_view source) : source_(source) {}

  Status read_line(std::string_view line) {
    ++line_;
    line = trimmed(line);
    if (line.empty() || line.front() == ';' || line.front() == '#') return {};
    if (line.front() == '[') return begin_section(line);
    const size_t equals = line.find('=');
    if (equals == std::string_view::npos) {
      return fail(fmt::format("got '{}', expected [NAME], or KEY = VALUE", clipped(line)));
    }
    return add_value(trimmed(line.substr(0, equals)), trimmed(line.substr(equals + 1)));
  }

  std::vector<IniSection> take() { return std::move(sections_); }

 private:
  Status fail(std::string_view what) const { return ini_error(source_, line_, what); }

  Status begin_section(std::string_view line) {
    const std::string name(trimmed(line.substr(1, line.size() - 2)));
    if (line.back() != ']' || name.empty()) {
      return fail(fmt::format("got '{}', expected the name of a model as [NAME]", clipped(line)));
    }
    constexpr size_t kMaxNameBytes = 256;
    if (name.size() > kMaxNameBytes) {
      return fail(fmt::format("got the section [{}] with a name of {} bytes, expected at most {}",
                              clipped(name), name.size(), kMaxNameBytes));
    }
    const auto found = std::ranges::find(sections_, name, &IniSection::name);
    if (found != sections_.end()) {
      return fail(fmt::format("got the section [{}] again, expected one; the first is in line {}",
                              clipped(name), found->line));
    }
    sections_.push_back({.name = name, .line = line_});
    return {};
  }

  Status add_value(std::string_view key, std::string_view value) {
    if (key.empty()) return fail("got no key before '=', expected KEY = VALUE");
    if (sections_.empty()) {
      if (key == "version" && value == "1") return {};
      if (key == "version") {
        return fail(fmt::format("got version {}, expected 1", clipped(value)));
      }
      return fail(fmt::format(
          "got the key '{}' before the first section, expected it in [NAME], or in [*] for all "
          "models",
          clipped(key)));
    }
    IniSection& section = sections_.back();
    if (std::ranges::find(section.values, key, &IniValue::key) != section.values.end()) {
      return fail(fmt::format("section [{}] has the key '{}' twice, expected it once",
                              clipped(section.name), clipped(key)));
    }
    QUIRE_RETURN_IF_ERROR(unquote(value));
    section.values.push_back({.key = std::string(key), .value = std::string(value), .line = line_});
    return {};
  }

  // Removes quotes around a whole value. Fails for other quotes at its begin, and for a comment
  // after a value without quotes: both would become a part of the value.
  Status unquote(std::string_view& value) const {
    const char quote = value.empty() ? '\0' : value.front();
    if (quote == '"' || quote == '\'') {
      if (value.find(quote, 1) + 1 != value.size()) {
        return fail(
            fmt::format("got the value {}, which begins with a quote; expected quotes around the "
                        "whole value, or none, and comments on lines of their own",
                        clipped(value)));
      }
      value = value.substr(1, value.size() - 2);
      return {};
    }
    for (size_t i = 1; i < value.size(); ++i) {
      const bool begins = value[i] == ';' || value[i] == '#';
      if (!begins || (value[i - 1] != ' ' && value[i - 1] != '\t')) continue;
      return fail(
          fmt::format("got the comment '{}' after a value, expected it on a line of its "
                      "own; a value with such a text needs quotes around it",
                      clipped(value.substr(i))));
    }
    return {};
  }

  std::string_view source_;
  int line_ = 0;
  std::vector<IniSection> sections_;
};

bool is_gguf(const fs::path& path) {
  return equals_ignoring_case(path.extension().string(), ".gguf");
}

// A projector of images, which llama.cpp keeps beside the model.
bool is_projector(const fs::path& path) {
  return path.filename().string().starts_with("mmproj");
}

// "x-00002-of-00003.gguf": only the first part stands for the model.
bool is_later_part(const fs::path& path) {
  const std::string stem = path.stem().string();
  const size_t of = stem.rfind("-of-");
  return of != std::string::npos && of >= 5 && stem.substr(of - 5, 5) != "00001" &&
         std::ranges::all_of(stem.substr(of - 5, 5), is_digit);
}

bool is_model_file(const fs::path& path) {
  std::error_code error;
  return is_gguf(path) && !is_projector(path) && !is_later_part(path) &&
         fs::is_regular_file(path, error);
}

// The path that `quire serve` takes for a sub-folder: the folder of a checkpoint, or its only GGUF
// file. Empty: the folder has no model.
Result<fs::path> model_in(const fs::path& folder) {
  std::error_code error;
  if (fs::exists(folder / "config.json", error)) return folder;
  std::vector<fs::path> found;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (is_model_file(entry->path())) found.push_back(entry->path());
  }
  if (found.size() > 1) {
    std::ranges::sort(found);
    return invalid_argument(fmt::format(
        "[supervisor] {} has {} GGUF files, expected one; name {} or another of them in a "
        "file of --models",
        folder.string(), found.size(), found.front().string()));
  }
  return found.empty() ? fs::path() : found.front();
}

// Gathers the identities of files.
class FileStamp {
 public:
  void add_file(const fs::path& path) {
    if (++num_files_ > kMostFiles) return;
    const Result<FileIdentity> file = identity_of(path);
    if (!file.ok()) return;
    lines_.push_back(fmt::format("{} {} {} {}", file->num_bytes, file->written_ns, file->changed_ns,
                                 path.string()));
  }
  template <typename Iterator>
  void add_folder(const fs::path& folder) {
    std::error_code error;
    for (Iterator entry(folder, error), end; !error && entry != end && num_files_ <= kMostFiles;
         entry.increment(error)) {
      add_file(entry->path());
    }
    if (error) is_whole_ = false;
  }
  void add(const fs::path& path) {
    add_file(path);
    std::error_code ignored;
    if (fs::is_directory(path, ignored)) add_folder<fs::recursive_directory_iterator>(path);
  }
  std::optional<std::string> take() {
    if (!is_whole_ || num_files_ > kMostFiles) return std::nullopt;
    std::ranges::sort(lines_);  // the order in which a folder lists its entries may change
    return fmt::format("{}", fmt::join(lines_, "\n"));
  }

 private:
  static constexpr int kMostFiles = 256;

  bool is_whole_ = true;  // every folder was read to its end
  int num_files_ = 0;
  std::vector<std::string> lines_;
};

}  // namespace

std::optional<std::string> stamp_of_files(const ModelEntry& model) {
  if (model.files.empty() && !model.is_embedded) return std::nullopt;
  FileStamp stamp;
  stamp.add(model.files);
  std::error_code ignored;
  // The other parts of a GGUF file, and its projector, are beside it.
  if (fs::is_regular_file(model.files, ignored)) {
    stamp.add_folder<fs::directory_iterator>(fs::absolute(model.files).parent_path());
  }
  // A name of the hub's cache may mean another snapshot after a pull, which writes to refs/.
  const fs::path folder = model.files.parent_path();
  if (folder.filename() == "snapshots") stamp.add(folder.parent_path() / "refs");
  for (std::string_view argument : model.arguments) {
    argument.remove_prefix(std::min(argument.find('=') + 1, argument.size()));
    // A value in JSON names a file between quotes.
    while (!argument.empty()) {
      const std::string_view part = argument.substr(0, argument.find('"'));
      argument.remove_prefix(std::min(part.size() + 1, argument.size()));
      if (fs::exists(part, ignored)) stamp.add(part);
    }
  }
  return stamp.take();
}

Result<std::vector<IniSection>> parse_ini(std::string_view text, std::string_view source) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  if (!is_valid_utf8(text) || text.find('\0') != std::string_view::npos) {
    return invalid_argument(
        fmt::format("[supervisor] {}: expected UTF-8 text without NUL", source));
  }
  IniParser parser(source);
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    QUIRE_RETURN_IF_ERROR(parser.read_line(text.substr(0, end)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parser.take();
}

Result<std::vector<ModelEntry>> list_models_directory(const fs::path& directory) {
  std::error_code error;
  std::vector<ModelEntry> models;
  fs::directory_iterator entry(directory, error);
  for (const fs::directory_iterator end; !error && entry != end; entry.increment(error)) {
    const fs::path& path = entry->path();
    std::error_code ignored;
    fs::path model;
    if (fs::is_directory(path, ignored)) {
      QUIRE_ASSIGN_OR_RETURN(model, model_in(path));
    } else if (is_model_file(path)) {
      model = path;
    }
    if (model.empty()) continue;
    const fs::path name = fs::is_directory(path, ignored) ? path.filename() : path.stem();
    models.push_back(
        {.name = name.string(), .arguments = {"--model=" + model.string()}, .files = model});
  }
  if (error) {
    return invalid_argument(
        fmt::format("[supervisor] --models-dir {}: {}; expected a folder that can be read",
                    directory.string(), error.message()));
  }
  if (models.empty()) {
    return invalid_argument(fmt::format(
        "[supervisor] --models-dir {}: got no model, expected *.gguf files, or folders with a "
        "config.json or a *.gguf file",
        directory.string()));
  }
  std::ranges::sort(models, {}, &ModelEntry::name);
  return models;
}

Status check_models(const std::vector<ModelEntry>& models) {
  std::vector<std::string> names;
  int num_defaults = 0;
  for (const ModelEntry& model : models) {
    std::vector<std::string> all = model.aliases;
    all.insert(all.begin(), model.name);
    for (const std::string& name : all) {
      if (name.empty() || !is_valid_utf8(name)) {
        return invalid_argument(
            fmt::format("[supervisor] the model '{}' has an empty name or alias, or one that is "
                        "not UTF-8; expected "
                        "names for requests",
                        clipped(model.name)));
      }
      const bool is_taken = std::ranges::any_of(
          names, [&](const std::string& other) { return is_same_model_name(other, name); });
      if (is_taken) {
        return invalid_argument(
            fmt::format("[supervisor] got the name '{}' twice, expected a different name or alias "
                        "for each model",
                        clipped(name)));
      }
      names.push_back(name);
    }
    if (model.is_default) ++num_defaults;
  }
  if (num_defaults > 1) {
    return invalid_argument(fmt::format(
        "[supervisor] got default = true {} times, expected it at most once", num_defaults));
  }
  return {};
}

}  // namespace quire::supervisor
