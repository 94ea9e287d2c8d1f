#include "server/page/page.h"

#include <algorithm>

#include "base/embed.h"

QUIRE_EMBED(quire_page_index_html, QUIRE_PAGE_DIR "/index.html")
QUIRE_EMBED(quire_page_style_css, QUIRE_PAGE_DIR "/style.css")
QUIRE_EMBED(quire_page_icon_svg, QUIRE_PAGE_DIR "/icon.svg")
QUIRE_EMBED(quire_page_theme_js, QUIRE_PAGE_DIR "/theme.js")
QUIRE_EMBED(quire_page_chat_js, QUIRE_PAGE_DIR "/chat.js")
QUIRE_EMBED(quire_page_api_js, QUIRE_PAGE_DIR "/api.js")
QUIRE_EMBED(quire_page_sse_js, QUIRE_PAGE_DIR "/sse.js")
QUIRE_EMBED(quire_page_conversation_js, QUIRE_PAGE_DIR "/conversation.js")
QUIRE_EMBED(quire_page_store_js, QUIRE_PAGE_DIR "/store.js")
QUIRE_EMBED(quire_page_chat_list_js, QUIRE_PAGE_DIR "/chat_list.js")
QUIRE_EMBED(quire_page_attachments_js, QUIRE_PAGE_DIR "/attachments.js")
QUIRE_EMBED(quire_page_message_js, QUIRE_PAGE_DIR "/message.js")
QUIRE_EMBED(quire_page_markdown_js, QUIRE_PAGE_DIR "/markdown.js")
QUIRE_EMBED(quire_page_inline_js, QUIRE_PAGE_DIR "/inline.js")
QUIRE_EMBED(quire_page_dom_js, QUIRE_PAGE_DIR "/dom.js")
QUIRE_EMBED(quire_page_settings_js, QUIRE_PAGE_DIR "/settings.js")
QUIRE_EMBED(quire_page_panel_js, QUIRE_PAGE_DIR "/panel.js")

namespace quire::server {
namespace {

constexpr std::string_view kHtml = "text/html; charset=utf-8";
constexpr std::string_view kCss = "text/css; charset=utf-8";
constexpr std::string_view kSvg = "image/svg+xml";
constexpr std::string_view kScript = "text/javascript; charset=utf-8";

}  // namespace

std::span<const PageFile> page_files() {
  static const PageFile files[] = {
      {"/", kHtml, QUIRE_EMBEDDED_TEXT(quire_page_index_html)},
      {"/page/style.css", kCss, QUIRE_EMBEDDED_TEXT(quire_page_style_css)},
      {"/page/icon.svg", kSvg, QUIRE_EMBEDDED_TEXT(quire_page_icon_svg)},
      {"/page/theme.js", kScript, QUIRE_EMBEDDED_TEXT(quire_page_theme_js)},
      {"/page/chat.js", kScript, QUIRE_EMBEDDED_TEXT(quire_page_chat_js)},
      {"/page/api.js", kScript, QUIRE_EMBEDDED_TEXT(quire_page_api_js)},
      {"/page/sse.js", kScript, QUIRE_EMBEDDED_TEXT(quire_page_sse_js)},
      {"/page/conversation.js", kScript, QUIRE_EMBEDDED_TEXT(quire_page_conversation_js)},
      {"/page/store.js", kScript, QUIRE_EMBEDDED_TEXT(quire_page_store_js)},
      {"/page/chat_list.js", kScript, QUIRE_EMBEDDED_TEXT(quire_page_chat_list_js)},
      {"/page/attachments.js", kScript, QUIRE_EMBEDDED_TEXT(quire_page_attachments_js)},
      {"/page/message.js", kScript, QUIRE_EMBEDDED_TEXT(quire_page_message_js)},
      {"/page/markdown.js", kScript, QUIRE_EMBEDDED_TEXT(quire_page_markdown_js)},
      {"/page/inline.js", kScript, QUIRE_EMBEDDED_TEXT(quire_page_inline_js)},
      {"/page/dom.js", kScript, QUIRE_EMBEDDED_TEXT(quire_page_dom_js)},
      {"/page/settings.js", kScript, QUIRE_EMBEDDED_TEXT(quire_page_settings_js)},
      {"/page/panel.js", kScript, QUIRE_EMBEDDED_TEXT(quire_page_panel_js)},
  };
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
         "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
}

}  // namespace quire::server
