// Jobs of which the closed forms and the step program are known to differ in a figure, and why
// (docs/theory.md §6.10). The list only shrinks.
#pragma once

#include "meet/meeting.h"
#include "profile/job.h"

namespace placet::testing {

/// What lowering does not see yet, and so lowers as if it were not said. Null: it sees all.
const char* unseen(const Job& job);

/// What makes two figures differ, so that they are not compared. Null: they are.
const char* apart(const Job& job, Figure figure);

}  // namespace placet::testing
