#include "supervisor/metrics_merge.h"

#include <gtest/gtest.h>

namespace quire::supervisor {
namespace {

TEST(MergeMetrics, KeepsEachFamilyTogetherAndNamesTheModel) {
  const std::string a =
      "# HELP x_total Things.\n# TYPE x_total counter\nx_total{model_name=\"a\",e=\"0\"} 1\n"
      "# HELP cpu CPU.\n# TYPE cpu gauge\ncpu 2.5\n";
  const std::string b =
      "# HELP cpu CPU.\n# TYPE cpu gauge\ncpu{v=\"1\"} 3\n"
      "# HELP x_total Things.\n# TYPE x_total counter\nx_total{model_name=\"b\"} 4\n"
      "# HELP y Only b.\n# TYPE y gauge\ny 5\n";
  EXPECT_EQ(merge_metrics({{"a", a}, {"b\"", b}}),
            "# HELP x_total Things.\n# TYPE x_total counter\n"
            "x_total{model_name=\"a\",e=\"0\"} 1\nx_total{model_name=\"b\"} 4\n"
            "# HELP cpu CPU.\n# TYPE cpu gauge\n"
            "cpu{model_name=\"a\"} 2.5\ncpu{model_name=\"b\\\"\",v=\"1\"} 3\n"
            "# HELP y Only b.\n# TYPE y gauge\ny{model_name=\"b\\\"\"} 5\n");
  EXPECT_EQ(merge_metrics({}), "");
  EXPECT_EQ(merge_metrics({{"a", "garbage without a family"}}), "");
}

}  // namespace
}  // namespace quire::supervisor
