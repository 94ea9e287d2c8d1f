#include "hub/package/package_index.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "base/ascii.h"
#include "base/json.h"
#include "base/text.h"
#include "base/text_input.h"

namespace quire::hub {
namespace {

constexpr size_t kMaxFiles = 100'000;
constexpr size_t kMaxNameBytes = 96;  // of a package or a version
constexpr size_t kSha256Digits = 64;
constexpr size_t kMaxTagBytes = 8192;  // of an anchor; longer ones are skipped

// PEP 503: lower case, and one '-' for each run of '-', '_' and '.'.
std::string normalized(std::string_view name) {
  std::string out;
  for (const char c : lowered(name)) {
    const bool is_separator = c == '-' || c == '_' || c == '.';
    if (!is_separator) {
      out += c;
    } else if (!out.ends_with('-')) {
      out += '-';
    }
  }
  return out;
}

bool has_only(std::string_view text, std::string_view others) {
  return !text.empty() && text.size() <= kMaxNameBytes && is_alphanumeric(text.front()) &&
         is_alphanumeric(text.back()) && std::ranges::all_of(text, [&](char c) {
           return is_alphanumeric(c) || others.find(c) != std::string_view::npos;
         });
}

bool is_sha256(std::string_view text) {
  return text.size() == kSha256Digits &&
         std::ranges::all_of(text, [](char c) { return hex_digit(c) >= 0; });
}

// Removes the address's fragment, which may contain the hash: "#sha256=…".
IndexFile make_file(std::string_view name, std::string_view url) {
  const size_t hash = url.find('#');
  IndexFile file = {std::string(name), std::string(url.substr(0, hash))};
  constexpr std::string_view kHash = "#sha256=";
  if (hash == std::string_view::npos || !url.substr(hash).starts_with(kHash)) return file;
  const std::string_view digits = url.substr(hash + kHash.size());
  if (is_sha256(digits)) file.sha256 = lowered(digits);
  return file;
}

Status too_many_files() {
  return invalid_argument(
      fmt::format("[hub] the package index lists more than {} files; expected those of one package",
                  kMaxFiles));
}

Result<std::vector<IndexFile>> parse_json_page(std::string_view page) {
  QUIRE_ASSIGN_OR_RETURN(const JsonDocument document,
                         JsonDocument::parse(page, "the package index's page"));
  simdjson::dom::array entries;
  if (document.root()["files"].get_array().get(entries)) {
    return invalid_argument(
        "[hub] the package index's page has no list `files`; expected one as in PEP 691");
  }
  std::vector<IndexFile> files;
  for (const simdjson::dom::element entry : entries) {
    std::string_view name;
    std::string_view url;
    std::string_view sha256;
    if (entry["filename"].get_string().get(name) || entry["url"].get_string().get(url)) continue;
    if (files.size() == kMaxFiles) return too_many_files();
    files.push_back(make_file(name, url));
    if (!entry["hashes"]["sha256"].get_string().get(sha256) && is_sha256(sha256)) {
      files.back().sha256 = lowered(sha256);
    }
    int64_t num_bytes = 0;
    if (!entry["size"].get_int64().get(num_bytes)) {
      files.back().num_bytes = std::max<int64_t>(num_bytes, 0);
    }
  }
  return files;
}

// Replaces the character references of HTML that occur in addresses and names of files.
std::string unescaped(std::string_view html) {
  constexpr std::array<std::pair<std::string_view, char>, 6> kReferences = {{{"&amp;", '&'},
                                                                             {"&lt;", '<'},
                                                                             {"&gt;", '>'},
                                                                             {"&quot;", '"'},
                                                                             {"&#39;", '\''},
                                                                             {"&#x27;", '\''}}};
  std::string text;
  while (!html.empty()) {
    const auto found = std::ranges::find_if(
        kReferences, [&](const auto& reference) { return html.starts_with(reference.first); });
    text += found == kReferences.end() ? html.front() : found->second;
    html.remove_prefix(found == kReferences.end() ? 1 : found->first.size());
  }
  return text;
}

// Returns the value of an attribute; empty: absent. `tag` is the text inside the angle brackets.
std::string_view attribute(std::string_view tag, std::string_view name) {
  for (size_t at = tag.find(name); at != std::string_view::npos; at = tag.find(name, at + 1)) {
    std::string_view rest = trimmed(tag.substr(at + name.size()));
    const bool is_name =
        at > 0 && (tag[at - 1] == ' ' || tag[at - 1] == '\n' || tag[at - 1] == '\t');
    if (!is_name || !rest.starts_with('=')) continue;
    rest = trimmed(rest.substr(1));
    if (rest.empty() || (rest.front() != '"' && rest.front() != '\'')) continue;
    const size_t end = rest.find(rest.front(), 1);
    return end == std::string_view::npos ? "" : rest.substr(1, end - 1);
  }
  return "";
}

// PEP 503: the page has an anchor per file, whose text is the file's name.
Result<std::vector<IndexFile>> parse_html_page(std::string_view page) {
  std::vector<IndexFile> files;
  for (size_t at = page.find("<a"); at != std::string_view::npos; at = page.find("<a", at)) {
    at += 2;
    const size_t close = page.find('>', at);
    if (close == std::string_view::npos) break;
    const size_t end = page.find('<', close);
    if (end == std::string_view::npos) break;
    const std::string_view tag = page.substr(at, close - at);
    const std::string_view url = tag.size() > kMaxTagBytes ? "" : attribute(tag, "href");
    const std::string_view name = trimmed(page.substr(close + 1, end - close - 1));
    at = end;
    if (url.empty() || name.empty()) continue;
    if (files.size() == kMaxFiles) return too_many_files();
    files.push_back(make_file(unescaped(name), unescaped(url)));
  }
  return files;
}

struct WheelName {
  std::string version;
  bool is_universal = false;  // for Python 3, any ABI and any platform
};

// NAME-VERSION[-BUILD]-PYTHON-ABI-PLATFORM.whl; nullopt if it is not a wheel of this package.
std::optional<WheelName> parse_wheel_name(std::string_view file, std::string_view package) {
  constexpr std::string_view kEnd = ".whl";
  if (!file.ends_with(kEnd)) return std::nullopt;
  const auto parts = split(file.substr(0, file.size() - kEnd.size()), '-');
  if ((parts.size() != 5 && parts.size() != 6) || normalized(parts[0]) != package) {
    return std::nullopt;
  }
  const size_t n = parts.size();
  const bool runs_on_python_3 = parts[n - 3].find("py3") != std::string_view::npos;
  return WheelName{lowered(parts[1]),
                   runs_on_python_3 && parts[n - 2] == "none" && parts[n - 1] == "any"};
}

}  // namespace

std::string lowered(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), to_lower);
  return out;
}

std::optional<PackageName> parse_package_name(std::string_view text) {
  const size_t equals = text.find("==");
  if (equals == std::string_view::npos) return std::nullopt;
  const std::string_view name = text.substr(0, equals);
  const std::string_view version = text.substr(equals + 2);
  if (!has_only(name, "-_.") || !has_only(version, "._+!-")) return std::nullopt;
  return PackageName{normalized(name), lowered(version)};
}

Result<std::vector<IndexFile>> parse_index_page(std::string_view page) {
  return trimmed(page).starts_with('{') ? parse_json_page(page) : parse_html_page(page);
}

Result<IndexFile> choose_wheel(const std::vector<IndexFile>& files, const PackageName& package) {
  std::vector<const IndexFile*> found;
  std::set<std::string> versions;
  for (const IndexFile& file : files) {
    const std::optional<WheelName> wheel = parse_wheel_name(file.name, package.name);
    if (!wheel) continue;
    versions.insert(wheel->version);
    if (wheel->version != package.version) continue;
    if (wheel->is_universal) return file;
    found.push_back(&file);
  }
  if (found.size() == 1) return *found.front();
  if (!found.empty()) {
    return invalid_argument(fmt::format(
        "[hub] {} has {} wheels, each for another platform; expected one for all platforms",
        package.text(), found.size()));
  }
  return not_found(fmt::format(
      "[hub] the package index has no wheel of {}; {}", package.text(),
      versions.empty() ? std::string("it has none of another version either")
                       : "it has " + clipped(fmt::to_string(fmt::join(versions, ", ")))));
}

}  // namespace quire::hub
