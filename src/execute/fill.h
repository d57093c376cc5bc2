// What a run begins with: initial parameters, and the samples of each step. A number depends on the
// seed, the name of the tensor and its place in it, so that every placement begins with the same.
#pragma once

#include <vector>

#include "execute/meanings.h"
#include "ranks/reference_run.h"

namespace placet::execute {

/// The numbers of a parameter, an optimizer's state or a number of the step when training begins.
/// Vectors that are factors are near one, those that are added near zero, matrices are as wide as
/// keeps their products of the size of their inputs. All are of binary32.
std::vector<double> initial_numbers(const Program& program, const ranks::ReferenceTensor& tensor,
                                    const Meanings& meanings);

/// The samples of a step, counted from 0: ids, of which labels are those that follow; one token in
/// eight has no weight. Ids are bytes of the corpus from a place that is drawn, modulo the words of
/// the vocabulary; without a corpus they follow each other by a rule that can be learnt, with some
/// noise. Throws InputError for a corpus with fewer bytes than a sample has tokens.
std::vector<double> step_numbers(const Program& program, const ranks::ReferenceRun& reference,
                                 const ranks::ReferenceTensor& tensor, const Meanings& meanings,
                                 int step);

}  // namespace placet::execute
