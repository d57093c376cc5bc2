#include "lower/refusal.h"

#include "units/error.h"

namespace placet {

void refuse(const std::string& where, const std::string& value, const std::string& problem,
            const std::string& allowed) {
  throw InputError({.where = where,
                    .value = value,
                    .problem = problem,
                    .allowed = allowed,
                    .nearest = {},
                    .excerpt = {}});
}

}  // namespace placet
