// The catalogue of this repository.
#pragma once

#include "catalog/catalog.h"

namespace placet {

inline const Catalog kCatalog{PLACET_SOURCE_DIR "/data"};

}  // namespace placet
