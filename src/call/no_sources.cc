// In place of sources.cc where no files of others are read, as in a page.
#include "call/sources.h"
#include "units/error.h"

namespace placet {

JobRequest request_of_sources(const Catalog&, const SourceWords& words, AskedOf,
                              std::set<std::string>&) {
  throw InputError({.where = "--from",
                    .value = words.sources.front(),
                    .problem = "cannot be read, as this build reads no configurations of engines",
                    .allowed = "the job in words, or the installed program",
                    .nearest = {},
                    .excerpt = {}});
}

}  // namespace placet
