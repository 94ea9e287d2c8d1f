// Embeds files as read-only data of the binary. The assembler's .incbin copies them into the object
// file, without generated source and without compile time.
#pragma once

#include <string_view>

// Used in a source file, outside any namespace: QUIRE_EMBED(quire_page_css, QUIRE_PAGE_DIR
// "/page.css"). The source's CMake target must name the files in OBJECT_DEPENDS.
#define QUIRE_EMBED(symbol, path)         \
  asm(".pushsection .rodata\n"            \
      ".balign 4096\n" #symbol            \
      "_begin:\n"                         \
      ".incbin \"" path "\"\n" #symbol    \
      "_end:\n"                           \
      ".popsection\n");                   \
  extern "C" const char symbol##_begin[]; \
  extern "C" const char symbol##_end[];

#define QUIRE_EMBEDDED_TEXT(symbol) \
  std::string_view(symbol##_begin, static_cast<size_t>(symbol##_end - symbol##_begin))
