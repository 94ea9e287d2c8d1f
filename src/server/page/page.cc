#include "server/page/page.h"

#include <algorithm>

#include "base/embed.h"

#define QUIRE_KATEX_FONT(FILE, symbol, name)                     \
  FILE(katex_##symbol, "/page/katex/fonts/KaTeX_" name ".woff2", \
       QUIRE_KATEX_DIR "/fonts/KaTeX_" name ".woff2", kFont)

// The page's files: FILE(symbol, path, file, type).
#define QUIRE_PAGE_FILES(FILE)                                                               \
  FILE(index_html, "/", QUIRE_PAGE_DIR "/index.html", kHtml)                                 \
  FILE(style_css, "/page/style.css", QUIRE_PAGE_DIR "/style.css", kCss)                      \
  FILE(icon_svg, "/page/icon.svg", QUIRE_PAGE_DIR "/icon.svg", kSvg)                         \
  FILE(theme_js, "/page/theme.js", QUIRE_PAGE_DIR "/theme.js", kScript)                      \
  FILE(chat_js, "/page/chat.js", QUIRE_PAGE_DIR "/chat.js", kScript)                         \
  FILE(api_js, "/page/api.js", QUIRE_PAGE_DIR "/api.js", kScript)                            \
  FILE(sse_js, "/page/sse.js", QUIRE_PAGE_DIR "/sse.js", kScript)                            \
  FILE(conversation_js, "/page/conversation.js", QUIRE_PAGE_DIR "/conversation.js", kScript) \
  FILE(store_js, "/page/store.js", QUIRE_PAGE_DIR "/store.js", kScript)                      \
  FILE(chat_list_js, "/page/chat_list.js", QUIRE_PAGE_DIR "/chat_list.js", kScript)          \
  FILE(attachments_js, "/page/attachments.js", QUIRE_PAGE_DIR "/attachments.js", kScript)    \
  FILE(message_js, "/page/message.js", QUIRE_PAGE_DIR "/message.js", kScript)                \
  FILE(answer_js, "/page/answer.js", QUIRE_PAGE_DIR "/answer.js", kScript)                   \
  FILE(answering_js, "/page/answering.js", QUIRE_PAGE_DIR "/answering.js", kScript)          \
  FILE(context_js, "/page/context.js", QUIRE_PAGE_DIR "/context.js", kScript)                \
  FILE(models_js, "/page/models.js", QUIRE_PAGE_DIR "/models.js", kScript)                   \
  FILE(key_js, "/page/key.js", QUIRE_PAGE_DIR "/key.js", kScript)                            \
  FILE(markdown_js, "/page/markdown.js", QUIRE_PAGE_DIR "/markdown.js", kScript)             \
  FILE(inline_js, "/page/inline.js", QUIRE_PAGE_DIR "/inline.js", kScript)                   \
  FILE(formula_js, "/page/formula.js", QUIRE_PAGE_DIR "/formula.js", kScript)                \
  FILE(highlight_js, "/page/highlight.js", QUIRE_PAGE_DIR "/highlight.js", kScript)          \
  FILE(dom_js, "/page/dom.js", QUIRE_PAGE_DIR "/dom.js", kScript)                            \
  FILE(settings_js, "/page/settings.js", QUIRE_PAGE_DIR "/settings.js", kScript)             \
  FILE(sheets_js, "/page/sheets.js", QUIRE_PAGE_DIR "/sheets.js", kScript)                   \
  FILE(panel_js, "/page/panel.js", QUIRE_PAGE_DIR "/panel.js", kScript)                      \
  FILE(katex_js, "/page/katex/katex.min.js", QUIRE_KATEX_DIR "/katex.min.js", kScript)       \
  FILE(katex_css, "/page/katex/katex.min.css", QUIRE_KATEX_DIR "/katex.min.css", kCss)       \
  QUIRE_KATEX_FONT(FILE, AMS_Regular, "AMS-Regular")                                         \
  QUIRE_KATEX_FONT(FILE, Caligraphic_Bold, "Caligraphic-Bold")                               \
  QUIRE_KATEX_FONT(FILE, Caligraphic_Regular, "Caligraphic-Regular")                         \
  QUIRE_KATEX_FONT(FILE, Fraktur_Bold, "Fraktur-Bold")                                       \
  QUIRE_KATEX_FONT(FILE, Fraktur_Regular, "Fraktur-Regular")                                 \
  QUIRE_KATEX_FONT(FILE, Main_Bold, "Main-Bold")                                             \
  QUIRE_KATEX_FONT(FILE, Main_BoldItalic, "Main-BoldItalic")                                 \
  QUIRE_KATEX_FONT(FILE, Main_Italic, "Main-Italic")                                         \
  QUIRE_KATEX_FONT(FILE, Main_Regular, "Main-Regular")                                       \
  QUIRE_KATEX_FONT(FILE, Math_BoldItalic, "Math-BoldItalic")                                 \
  QUIRE_KATEX_FONT(FILE, Math_Italic, "Math-Italic")                                         \
  QUIRE_KATEX_FONT(FILE, SansSerif_Bold, "SansSerif-Bold")                                   \
  QUIRE_KATEX_FONT(FILE, SansSerif_Italic, "SansSerif-Italic")                               \
  QUIRE_KATEX_FONT(FILE, SansSerif_Regular, "SansSerif-Regular")                             \
  QUIRE_KATEX_FONT(FILE, Script_Regular, "Script-Regular")                                   \
  QUIRE_KATEX_FONT(FILE, Size1_Regular, "Size1-Regular")                                     \
  QUIRE_KATEX_FONT(FILE, Size2_Regular, "Size2-Regular")                                     \
  QUIRE_KATEX_FONT(FILE, Size3_Regular, "Size3-Regular")                                     \
  QUIRE_KATEX_FONT(FILE, Size4_Regular, "Size4-Regular")                                     \
  QUIRE_KATEX_FONT(FILE, Typewriter_Regular, "Typewriter-Regular")

#define QUIRE_EMBED_FILE(symbol, path, file, type) QUIRE_EMBED(quire_page_##symbol, file)
QUIRE_PAGE_FILES(QUIRE_EMBED_FILE)

namespace quire::server {
namespace {

constexpr std::string_view kHtml = "text/html; charset=utf-8";
constexpr std::string_view kCss = "text/css; charset=utf-8";
constexpr std::string_view kSvg = "image/svg+xml";
constexpr std::string_view kScript = "text/javascript; charset=utf-8";
constexpr std::string_view kFont = "font/woff2";

}  // namespace

std::span<const PageFile> page_files() {
#define QUIRE_PAGE_FILE(symbol, path, file, type) \
  {path, type, QUIRE_EMBEDDED_TEXT(quire_page_##symbol)},
  static const PageFile files[] = {QUIRE_PAGE_FILES(QUIRE_PAGE_FILE)};
#undef QUIRE_PAGE_FILE
  return files;
}

const PageFile* find_page_file(std::string_view path) {
  const std::span<const PageFile> files = page_files();
  const auto file = std::ranges::find(files, path, &PageFile::path);
  return file == files.end() ? nullptr : &*file;
}

// The page shows model output as text only. This policy is a second protection: it prevents the
// browser from executing any of the output.
std::string_view page_security_policy() {
  return "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
         "img-src 'self' data:; font-src 'self'; base-uri 'none'; form-action 'none'; "
         "frame-ancestors 'none'";
}

}  // namespace quire::server
