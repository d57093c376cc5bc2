// What strategies, schedules, models, clusters, devices and engines answer: what the catalogue
// holds.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/catalog.h"
#include "report/catalogue.h"

namespace placet {

/// A list of the catalogue, as a subcommand is called.
struct ListKind {
  std::string_view name;     // "models"
  std::string_view summary;  // "Models by name"
};

/// All lists, in the order of the program's help.
std::vector<ListKind> list_kinds();

/// The list of a kind. A file of the user's own that cannot be read is told of by `warn` and passed
/// over. Throws InternalError for a kind that is none.
Catalogue listed_of(const Catalog& catalog, std::string_view kind,
                    const std::function<void(const std::string&)>& warn);

/// Leaves the entries of this name, their versions and variants. Throws InputError: there is none.
void keep_named(Catalogue& list, const std::string& name);

}  // namespace placet
