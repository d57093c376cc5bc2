// From the sizes in a row to the transformer that was trained.
#pragma once

#include "catalog/plain_decoder.h"
#include "validate/run_facts.h"

namespace placet {

/// What a row's columns say of its model.
PlainDecoder decoder_of(const RunShape& shape);

}  // namespace placet
