// Stubs inside the library xgrammar for two front ends that Quire does not use: structural tags and
// Lark. Leaving out their sources saves a sixth of the code.
#include <stdexcept>

#include "lark_converter.h"
#include "structural_tag.h"

namespace xgrammar {

Grammar LarkToGrammar(const std::string&, const std::optional<TokenizerInfo>&,
                      const std::vector<NamedGrammar>&) {
  throw std::runtime_error("Lark grammars are not built in");
}

Result<Grammar, StructuralTagError> StructuralTagToGrammar(const std::string&,
                                                           const std::optional<TokenizerInfo>&) {
  throw std::runtime_error("structural tags are not built in");
}

}  // namespace xgrammar
