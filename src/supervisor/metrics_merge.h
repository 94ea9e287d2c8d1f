// Joins the Prometheus texts of several processes.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace quire::supervisor {

// Returns one text in which each family appears once, with the samples of all texts. A sample
// without the label model_name gets it, with the name that belongs to its text, unless that is
// empty.
std::string merge_metrics(const std::vector<std::pair<std::string, std::string>>& texts_by_model);

}  // namespace quire::supervisor
