// In place of server.cc in a program that is linked without an HTTP library.
#include "serve/server.h"
#include "units/error.h"

namespace placet {

void serve(const Catalog&, const ServeChoice&,
           const std::function<void(const std::string& address)>&) {
  throw InputError({.where = "placet serve",
                    .value = "",
                    .problem =
                        "this program alone cannot serve: placet-net is not beside it, or was "
                        "built without HTTP (Debian: libcpp-httplib-dev)",
                    .allowed = "both programs in one folder"});
}

}  // namespace placet
