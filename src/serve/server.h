// The page and the one entry of calls over HTTP, on this machine alone (docs/formats.md, section
// 17).
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "catalog/catalog.h"

namespace placet {

struct ServeChoice {
  int port = 0;                // 0: any that is free
  std::filesystem::path page;  // the built page, one file
};

/// Listens at 127.0.0.1 until the process is told to end. `told` is given the address, with its
/// token, as soon as it answers. Throws InputError: the port is taken, the page cannot be read, or
/// this build has no HTTP library.
void serve(const Catalog& catalog, const ServeChoice& choice,
           const std::function<void(const std::string& address)>& told);

}  // namespace placet
