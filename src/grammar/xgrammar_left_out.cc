// Stands in, inside the library xgrammar, for two of its front ends that Quire has no use for:
// structural tags and Lark. Their sources are a sixth of its code.
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
