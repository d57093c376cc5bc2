// Which operators multiply in fewer bits than their operands have, and what backward keeps of such
// an operand (docs/theory.md §3.11).
#pragma once

#include "model/model.h"
#include "profile/job.h"

namespace placet {

/// Whether an operator is a product in the format of Precision::products: a linear layer of a
/// block, of an expert or of an adapter. Routers, embeddings and, unless the engine says otherwise,
/// the output matrix multiply in the format of the stream.
bool has_products_format(const Job& job, const UnitKind& kind, const Operator& op);

/// Whether backward keeps such an operator's inputs in the products' format and not as they came.
/// Case: x in bf16 is read by a norm, which keeps it, and by a product in fp8: 2 bytes and 1.
bool keeps_narrow_inputs(const Job& job, const UnitKind& kind, const Operator& op);

}  // namespace placet
