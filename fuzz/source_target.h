// A configuration of an engine: what is read has a line for every setting, and what --fix would
// write is a text again.
#pragma once

#include <string>

#include "interop/import.h"
#include "interop/lint_fix.h"
#include "target.h"

namespace placet::fuzz {

inline void read_configuration(std::string_view text, SourceForm form) {
  static const Catalog kCatalog = find_catalog();
  const std::string copy(text);
  const Source source = parse_source(copy, form, "f");
  for (const Setting& setting : source.settings) {
    ensure(setting.line > 0, "a setting has a line");
  }
  const Imported imported =
      import_sources(kCatalog, {.sources = {source}, .dialect = {}, .given = {}});
  // What a dialect knows of a script's operands has lines too.
  const std::size_t said = source.settings.size() + source.idle.size();
  const std::size_t lines = imported.ledger.size();
  ensure(lines >= said && lines <= said + source.operands.size(),
         "the ledger has every setting once");
  fixed_text(copy, form, imported.findings);
}

}  // namespace placet::fuzz
