// What of a job lowering covers (docs/theory.md §6.4). Inside of lower/.
#pragma once

#include "profile/job.h"

namespace placet {

/// Throws InputError at the first part of the job that has no step program yet, by name and with
/// what is lowered instead. Nothing that a job says is left out of its program in silence: what
/// passes here is either in the program or changes neither what is computed nor what is sent.
void require_lowerable(const Job& job);

}  // namespace placet
