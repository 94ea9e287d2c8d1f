#include "supervisor/metrics_merge.h"

#include <algorithm>
#include <map>

#include "server/metrics/server_metrics.h"

namespace quire::supervisor {
namespace {

struct Family {
  std::string comments;
  std::string samples;
};

// The line with the label, unless it has one.
std::string labelled(std::string_view line, const std::string& model) {
  const size_t name_end = std::min(line.find_first_of("{ "), line.size());
  const bool has_labels = name_end < line.size() && line[name_end] == '{';
  if (model.empty()) return std::string(line);
  if (has_labels && line.find("model_name=\"", name_end) != std::string_view::npos) {
    return std::string(line);
  }
  const std::string label = "model_name=\"" + server::escape_label(model) + "\"";
  const std::string_view rest = line.substr(name_end);
  return std::string(line.substr(0, name_end)) +
         (has_labels ? "{" + label + "," + std::string(rest.substr(1))
                     : "{" + label + "}" + std::string(rest));
}

// "vllm:x" of "# HELP vllm:x …" and "# TYPE vllm:x …"
std::string family_of_comment(std::string_view line) {
  constexpr size_t kNameBegin = 7;
  line.remove_prefix(std::min(kNameBegin, line.size()));
  return std::string(line.substr(0, line.find(' ')));
}

}  // namespace

std::string merge_metrics(const std::vector<std::pair<std::string, std::string>>& texts_by_model) {
  std::vector<std::string> order;
  std::map<std::string, Family> families;
  for (const auto& [model, text] : texts_by_model) {
    Family* family = nullptr;
    bool is_new = false;
    for (std::string_view rest = text; !rest.empty();) {
      const std::string_view line = rest.substr(0, rest.find('\n'));
      rest.remove_prefix(std::min(line.size() + 1, rest.size()));
      if (line.starts_with("# HELP ") || line.starts_with("# TYPE ")) {
        const std::string name = family_of_comment(line);
        if (family == nullptr || &families[name] != family) {
          is_new = !families.contains(name) || families[name].comments.empty();
          if (is_new) order.push_back(name);
          family = &families[name];
        }
        if (is_new) family->comments += std::string(line) + "\n";
      } else if (!line.empty() && !line.starts_with('#') && family != nullptr) {
        family->samples += labelled(line, model) + "\n";
      }
    }
  }
  std::string merged;
  for (const std::string& name : order) merged += families[name].comments + families[name].samples;
  return merged;
}

}  // namespace quire::supervisor
