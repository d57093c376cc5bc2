// In place of server.cc in a program that is linked without an HTTP library.
#include "serve/server.h"
#include "units/error.h"

namespace placet {

void serve(const Catalog&, const ServeChoice&,
           const std::function<void(const std::string& address)>&) {
  throw InputError({.where = "placet serve",
                    .value = "",
                    .problem = "this program alone cannot serve: placet-net is not beside it",
                    .allowed = "both in one folder, as a build makes them where Debian's "
                               "libcpp-httplib-dev is there"});
}

}  // namespace placet
