// Products of matrices in a format of their own: which units of a device multiply
// them, and how often a matrix rests for them (docs/theory.md §3.11).
#pragma once

#include <cstdint>

#include "profile/job.h"

namespace placet {

/// The format in which products of numbers of a type are multiplied.
MatmulFormat matmul_format_of(Dtype dtype);

/// Sets of a matrix's numbers in the products' format. A product needs its operands in the order in
/// which it sums, and forward and backward sum along different dims. Numbers with a scale per block
/// are another set in each order; others need a second set only where some device of `cluster`
/// reads one order alone (or none is known). Where they stand is the engine's: in place of the
/// matrix at rest, or beside it from one micro-batch to the next; where neither, they are made for
/// each product and counted nowhere.
/// Case: mxfp8: 2. fp8 with one scale per tensor: 2 on H100, 1 on B200.
WeightCopies weight_copies(const Precision& precision, const Profile& profile,
                           const std::optional<Cluster>& cluster);

}  // namespace placet
