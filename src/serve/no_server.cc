// In place of server.cc where there is no HTTP library.
#include "serve/server.h"
#include "units/error.h"

namespace placet {

void serve(const Catalog&, const ServeChoice&,
           const std::function<void(const std::string& address)>&) {
  throw InputError({.where = "placet serve",
                    .value = "",
                    .problem = "this build cannot serve: there was no libcpp-httplib-dev",
                    .allowed = "a build with that package of Debian"});
}

}  // namespace placet
