// What the lists of the catalogue have in common: their flags, and how they are shown.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "report/catalogue.h"

namespace placet {

struct CatalogueCall {
  bool json = false;
  bool names = false;
  std::string html;
  std::string name;  // only entries of this name, and their variants; empty: all
};

/// Adds NAME, --json, --html and --names. `call` must outlive the parse.
void add_catalogue_flags(CLI::App& command, CatalogueCall& call);

/// Prints the list as the flags ask; gives the exit status. Throws InputError where nothing has the
/// name that is asked for.
int show_catalogue(const CatalogueCall& call, Catalogue list);

}  // namespace placet
