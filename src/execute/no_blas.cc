// Where libraries cannot be opened.
#include "execute/blas.h"

namespace placet::execute {

const Blas& blas() {
  static const Blas kNone;
  return kNone;
}

}  // namespace placet::execute
