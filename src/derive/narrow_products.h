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

/// Whether a product or attention casts what comes in to the format of computation, or its
/// weights, and keeps the result: under Profile::autocasts, what is wider. Each makes a copy of its
/// own of what comes in. Case: query, key and value of an fp32 norm's result: three copies in bf16.
/// Adapters in fp32 over a base in bf16 copy what they take, too (PEFT, _cast_input_dtype).
bool casts_inputs(const Job& job, const UnitKind& kind, const Operator& op);
bool casts_weights(const Job& job, const UnitKind& kind, const Operator& op);

/// Whether backward keeps such an operator's inputs in the products' format and not as they came.
/// Case: x in bf16 is read by a norm, which keeps it, and by a product in fp8: 2 bytes and 1.
bool keeps_narrow_inputs(const Job& job, const UnitKind& kind, const Operator& op);

/// The format of copies that products make of what they take: theirs, or that of computation.
StorageFormat format_of_copies(const Job& job);

/// The format in which a value is gathered for the products of a parallel region: theirs, of 8
/// bits, where all that reads it there is such a product and the library casts before it sends;
/// none: as it is. Case: a norm's result for query, key and value in fp8: one byte an element.
const StorageFormat* gathered_in(const Job& job, const UnitKind& kind, int value);

/// The same of a value's gradient, gathered for the products that made the value, whose derivatives
/// take it (biases between them add up their own part of it).
const StorageFormat* gradient_gathered_in(const Job& job, const UnitKind& kind, int value);

}  // namespace placet
