# Builds the sources that scripts/fetch_deps.sh downloads as the static library `xgrammar`. XGrammar
# parses untrusted text and cannot be interrupted. So it is compiled from modified copies of its
# sources, in which each loop iteration is charged to a budget (src/grammar/work_budget.h), and a
# grammar that takes too long ends with an exception. Loops in its headers and in the standard
# library's algorithms are not charged.
set(QUIRE_XGRAMMAR_DIR ${CMAKE_SOURCE_DIR}/.deps/xgrammar)

include(quire_fetched)
quire_require_fetched(xgrammar cmake/xgrammar_pin.txt scripts/fetch_deps.sh "")

# Writes the file only if its text differs, so that a new configuration does not cause a rebuild.
function(quire_write_changed path text)
  if(EXISTS ${path})
    file(READ ${path} old)
    if(old STREQUAL text)
      return()
    endif()
  endif()
  file(WRITE ${path} "${text}")
endfunction()

# Replaces `place` in the text. Fails if an update of XGrammar has moved or changed it.
function(quire_replace text_variable path place replacement)
  string(FIND "${${text_variable}}" "${place}" at)
  if(at EQUAL -1)
    message(FATAL_ERROR "cmake/xgrammar.cmake no longer fits ${path}; adapt the places it changes")
  endif()
  string(REPLACE "${place}" "${replacement}" text "${${text_variable}}")
  set(${text_variable} "${text}" PARENT_SCOPE)
endfunction()

# Inserts `addition` after `place`.
macro(quire_mark text_variable path place addition)
  quire_replace(${text_variable} ${path} "${place}" "${place}${addition}")
endmacro()

function(quire_budget_source from to)
  file(READ ${from} text)
  # Loops start at the beginning of a line; the `while` of a do follows the closing brace.
  string(REGEX REPLACE "(\n *)for \\(" "\\1QUIRE_FOR(" text "${text}")
  string(REGEX REPLACE "(\n *|} )while \\(" "\\1QUIRE_WHILE(" text "${text}")
  string(REGEX MATCH "[^\n]*[^A-Za-z0-9_](for|while) *\\([^\n]*" unmarked "${text}")
  if(unmarked)
    message(FATAL_ERROR "cmake/xgrammar.cmake leaves a loop of ${from} without a budget:${unmarked}")
  endif()
  get_filename_component(name ${from} NAME)
  if(name STREQUAL "grammar_compiler.cc")
    quire_mark(text ${from} "= grammar_matcher.GetAdaptiveTokenMask(is_root_rule);\n"
               "QUIRE_SPEND_COMPILE_BYTES(MemorySize(cur_adaptive_token_mask_cache));\n")
  elseif(name STREQUAL "grammar_builder.cc")
    # A rule's name may be as long as the grammar's text, and XGrammar derives the names of
    # thousands of rules from it. The builder stores each name twice.
    quire_replace(text ${from} "  grammar_->rules_.push_back(rule);\n"
      "  QUIRE_SPEND_COMPILE_BYTES(sizeof(Rule) + 2 * rule.name.size());
  grammar_->rules_.push_back(rule);\n")
    quire_mark(text ${from} "exceeds 2^31 elements\";\n"
               "  QUIRE_SPEND_COMPILE_BYTES(sizeof(int32_t) * (3 + static_cast<size_t>(grammar_expr.data_len)));\n")
  elseif(name STREQUAL "grammar.cc")
    # XGrammar's own count omits the rules' names.
    quire_replace(text ${from} "  return impl.rules_.size() * sizeof(Grammar::Impl::Rule) +\n"
      "  size_t rule_bytes = 0;
  QUIRE_FOR (const auto& rule : impl.rules_) rule_bytes += sizeof(rule) + rule.name.capacity();
  return rule_bytes +\n")
  elseif(name STREQUAL "earley_parser.cc")
    quire_mark(text ${from} "  scanable_state_history_.PushBack(tmp_states_to_be_added_);\n"
               "QUIRE_SPEND_STATES(tmp_states_to_be_added_.size() + rule_id_to_completable_states_.Back().data_len);\n")
  elseif(name STREQUAL "json_schema_converter.cc")
    # Without this, strings of bounded length would allow raw control characters, which JSON
    # forbids.
    quire_mark(text ${from} "AddCharacterClass({{'\"', '\"'}, " "{0, 0x1f}, ")
    # Between tokens, allows a space, or a new line with its indentation, but no other white space.
    quire_replace(text ${from} "  return Repeat(
      \"whitespace\",
      builder_.AddCharacterClass(elements),
      0,
      static_cast<int32_t>(*max_whitespace_cnt_)
  );"
      "  if (!whitespace_expr_id_.has_value()) {
    const int32_t indent = Repeat(\"indent\", builder_.AddCharacterClass({{' ', ' '}, {'\\t', '\\t'}}), 0,
                                  static_cast<int32_t>(*max_whitespace_cnt_));
    const int32_t body = Choice({Empty(), ByteString(\" \"), Sequence({ByteString(\"\\n\"), indent})});
    whitespace_expr_id_ = RuleRef(builder_.AddRuleWithHint(\"whitespace\", body));
  }
  return *whitespace_expr_id_;")
    # This key distinguishes schemas. A name in kSkippedKeys may also be the name of a property or a
    # key of an enum's value, and plain_schema writes no annotations, so no name is skipped.
    quire_replace(text ${from} [==[
      if (kSkippedKeys.count(kv.first) == 0) {
        sorted_kv.push_back(kv);
      }
]==] [==[
      sorted_kv.push_back(kv);
]==])
    quire_replace(text ${from} [==["\"" + key + "\":" + ComputeCacheKey(value)]==]
                  [==[picojson::value(key).serialize() + ":" + ComputeCacheKey(value)]==])
    # The trie excludes the names in `properties` from the keys of additional properties. It works
    # on code points and follows one spelling of each. Where a name could continue, a key must use
    # neither another spelling nor \u.
    quire_replace(text ${from} [==[
  choices.push_back(Sequence({ByteString("\\"), RuleRef(kBasicEscape), RuleRef(kBasicStringSub)}));
  QUIRE_FOR(const auto& [character, child] : node.children) {
    choices.push_back(Sequence(
        {ByteString(std::string(1, static_cast<char>(character))), BuildTrieBody(child, rule_name)}
    ));
  }
]==] [==[
  if (node.children.empty()) {
    choices.push_back(Sequence({ByteString("\\"), RuleRef(kBasicEscape), RuleRef(kBasicStringSub)}));
    return Choice(choices);
  }
  std::vector<CharacterClassElement> escapes;
  const std::string escaped = "\"\\/\b\f\n\r\t", letters = "\"\\/bfnrt";
  QUIRE_FOR(size_t i = 0; i < escaped.size(); ++i) {
    if (node.children.count(escaped[i]) == 0) escapes.push_back({letters[i], letters[i]});
  }
  if (!escapes.empty()) {
    choices.push_back(Sequence(
        {ByteString("\\"), builder_.AddCharacterClass(escapes), RuleRef(kBasicStringSub)}
    ));
  }
  QUIRE_FOR(const auto& [character, child] : children) {
    const std::string spelling = picojson::value(character).serialize();
    choices.push_back(Sequence(
        {ByteString(spelling.substr(1, spelling.size() - 2)), BuildTrieBody(*child, rule_name)}
    ));
  }
]==])
    quire_replace(text ${from} [==[
  QUIRE_FOR(const auto& [character, child] : node.children) {
    static_cast<void>(child);
    excluded.push_back({character, character});
  }
]==] [==[
  std::map<std::string, const TrieNode*> children;
  AddCharacters(node, "", &children);
  QUIRE_FOR(const auto& [character, child] : children) {
    const TCodepoint codepoint = ParseNextUTF8(character.c_str()).first;
    excluded.push_back({codepoint, codepoint});
  }
]==])
    quire_replace(text ${from} "int32_t JSONSchemaConverter::BuildTrieBody(" [==[
// The characters that follow a node of a trie of bytes.
template <typename Node>
static void AddCharacters(
    const Node& node, const std::string& begin, std::map<std::string, const Node*>* characters
) {
  QUIRE_FOR(const auto& [byte, child] : node.children) {
    const std::string bytes = begin + static_cast<char>(byte);
    const size_t num_bytes = std::get<1>(HandleUTF8FirstByte(bytes[0]));
    if (bytes.size() == num_bytes) {
      characters->emplace(bytes, &child);
    } else {
      AddCharacters(child, bytes, characters);
    }
  }
}

int32_t JSONSchemaConverter::BuildTrieBody(]==])
    # plain_schema writes enum values as JSON texts, because XGrammar would print their numbers
    # differently.
    quire_replace(text ${from} "spec.json_values.push_back(value.serialize());"
                  "spec.json_values.push_back(value.get<std::string>());")
    # A pattern's literals are matched in their JSON spelling. Its classes omit the characters that
    # JSON must escape, and surrogates, which UTF-8 does not have. XGrammar's automaton could only
    # omit characters, in literals too, so such patterns use the grammar instead.
    quire_replace(text ${from} "int32_t JSONSchemaConverter::RegexExpression(" [==[
class JSONStringForm : public GrammarMutator {
 protected:
  int32_t VisitByteString(const GrammarExpr& expr) final {
    const std::string json = picojson::value(base_grammar_->GetByteString(expr)).serialize();
    return builder_->AddByteString(json.substr(1, json.size() - 2));
  }
  int32_t VisitCharacterClass(const GrammarExpr& expr) final {
    return builder_->AddCharacterClass(Unescaped(expr), expr[0] != 0);
  }
  int32_t VisitCharacterClassStar(const GrammarExpr& expr) final {
    return builder_->AddCharacterClassStar(Unescaped(expr), expr[0] != 0);
  }

 private:
  using Element = GrammarBuilder::CharacterClassElement;
  static std::vector<Element> Unescaped(const GrammarExpr& expr) {
    const bool is_negative = expr[0] != 0;
    std::vector<Element> elements;
    QUIRE_FOR(int i = 1; i + 1 < expr.size(); i += 2) {
      const Element element = {expr[i], expr[i + 1]};
      QUIRE_FOR(const Element allowed : {Element{0x20, '"' - 1}, Element{'"' + 1, '\\' - 1},
                                         Element{'\\' + 1, 0xD7FF}, Element{0xE000, 0x10FFFF}}) {
        const Element part = {
            std::max(element.lower, allowed.lower), std::min(element.upper, allowed.upper)
        };
        if (part.lower <= part.upper) elements.push_back(part);
      }
    }
    if (is_negative) elements.insert(elements.end(), {{0, 0x1f}, {'"', '"'}, {'\\', '\\'}, {0xD800, 0xDFFF}});
    XGRAMMAR_CHECK(!elements.empty())
        << "A class of a pattern has only characters that a JSON string must escape; write them "
           "without [], as alternatives (a|b)";
    return elements;
  }
};

// Whether a pattern may have a literal that a JSON string must escape.
static bool MayHaveEscapedLiteral(const std::string& regex) {
  QUIRE_FOR(size_t i = 0; i < regex.size(); ++i) {
    if (regex[i] == '"') return true;
    if (regex[i] != '\\') continue;
    ++i;
    if (i < regex.size() && std::string("\"\\nrtfvaebxuc").find(regex[i]) != std::string::npos) {
      return true;
    }
  }
  return false;
}

int32_t JSONSchemaConverter::RegexExpression(]==])
    quire_replace(text ${from} "  bool can_use_fsm = !force_cfg_expansion;"
      "  bool can_use_fsm = !force_cfg_expansion && !(json_string && MayHaveEscapedLiteral(regex));")
    quire_replace(text ${from} "  return AddSubGrammar(Grammar::FromEBNF(RegexToEBNF(regex)));" [==[
  const Grammar grammar = Grammar::FromEBNF(RegexToEBNF(regex));
  return AddSubGrammar(json_string ? JSONStringForm().Apply(grammar) : grammar);]==])
    # Of all formats, only these two have classes and literals with characters that JSON must
    # escape.
    quire_replace(text ${from} "RegexExpression(*regex, false, true), ByteString(\"\\\"\")});
    }"
      "RegexExpression(*regex, *spec.format == \"json-pointer\", true), ByteString(\"\\\"\")});
    }")
    quire_replace(text ${from} [==["\\\\\"(\\\\[\\x20-\\x7E]|]==]
                  [==["\\\\\"(\\\\\\\\[\\x20\\x21\\x23-\\x5B\\x5D-\\x7E]|]==])
    quire_mark(text ${from} "#include \"support/json_parse.h\"\n" "#include \"support/encoding.h\"\n")
  elseif(name STREQUAL "regex_converter.cc")
    # In EBNF, \x takes all digits that follow and \u takes four.
    quire_replace(text ${from} "char_class += HandleEscapeInCharClass();"
      "const std::string escape = HandleEscapeInCharClass();
      char_class += escape.rfind(\"\\\\x\", 0) == 0 ? \"\\\\u00\" + escape.substr(2) : escape;")
  endif()
  quire_write_changed(${to} "${text}")
endfunction()

set(xgrammar_sources "")
foreach(source
    compiled_grammar.cc config.cc earley_parser.cc fsm.cc fsm_builder.cc grammar.cc
    grammar_builder.cc grammar_compiler.cc grammar_functor.cc grammar_matcher.cc grammar_parser.cc
    grammar_printer.cc json_schema_converter.cc regex_converter.cc suffix_automata.cc
    testing.cc tokenizer_info.cc converter_ext/cohere.cc
    converter_ext/deepseek.cc converter_ext/glm.cc converter_ext/kimi_k3.cc
    converter_ext/minimax.cc converter_ext/minimax_m3.cc converter_ext/qwen.cc
    support/recursion_guard.cc)
  quire_budget_source(${QUIRE_XGRAMMAR_DIR}/cpp/${source} ${CMAKE_BINARY_DIR}/xgrammar/${source})
  list(APPEND xgrammar_sources ${CMAKE_BINARY_DIR}/xgrammar/${source})
endforeach()

# These run once per grammar, so a fast build is worth more than fast code.
foreach(source
    fsm_builder.cc grammar_builder.cc grammar_functor.cc grammar_parser.cc
    json_schema_converter.cc)
  set_source_files_properties(${CMAKE_BINARY_DIR}/xgrammar/${source} PROPERTIES COMPILE_OPTIONS -O1)
endforeach()

add_library(xgrammar STATIC ${xgrammar_sources}
            ${CMAKE_SOURCE_DIR}/src/grammar/xgrammar_left_out.cc)
target_include_directories(xgrammar SYSTEM
  PUBLIC ${QUIRE_XGRAMMAR_DIR}/include ${QUIRE_XGRAMMAR_DIR}/3rdparty/dlpack/include
  PRIVATE ${QUIRE_XGRAMMAR_DIR}/cpp ${QUIRE_XGRAMMAR_DIR}/cpp/converter_ext
          ${QUIRE_XGRAMMAR_DIR}/cpp/support
          ${QUIRE_XGRAMMAR_DIR}/3rdparty/picojson)
# Sends messages to src/grammar/xgrammar_log.cc instead of standard error.
target_compile_definitions(xgrammar PRIVATE
  XGRAMMAR_LOG_CUSTOMIZE=1 XGRAMMAR_ENABLE_CPPTRACE=0 XGRAMMAR_ENABLE_INTERNAL_CHECK=0)
# Builds small sources together, because most of their build time is spent on the same headers.
set(xgrammar_small ${xgrammar_sources})
list(FILTER xgrammar_small INCLUDE REGEX
     "/(converter_ext/.*|config|grammar_printer|regex_converter|suffix_automata|testing|recursion_guard)\\.cc$")
set_source_files_properties(${xgrammar_small} PROPERTIES UNITY_GROUP small)
set_target_properties(xgrammar PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP CXX_STANDARD 17)
set(optimize -O2)  # a third of the build's time less than -O3
if(QUIRE_SANITIZE)
  set(optimize "")
endif()
target_compile_options(xgrammar PRIVATE
  -w ${optimize} -ffp-contract=off -fno-omit-frame-pointer
  -include ${CMAKE_SOURCE_DIR}/src/grammar/work_budget.h)
if(QUIRE_SANITIZE)
  target_compile_options(xgrammar PRIVATE -fsanitize=${QUIRE_SANITIZE} -fno-sanitize-recover=all)
endif()
if(QUIRE_FUZZ)
  target_compile_options(xgrammar PRIVATE -fsanitize=fuzzer-no-link)
endif()
