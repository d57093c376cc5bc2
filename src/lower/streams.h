// Movements run beside computation (docs/theory.md §6.4). Inside of lower/.
#pragma once

#include "program/program.h"

namespace placet {

/// The same program with collectives and host copies on queues of their own. Each begins when what
/// was written before it is done; the next instruction that touches one of its buffers waits for
/// it, at the latest the end of the body in which it stands.
Program with_streams(Program program);

}  // namespace placet
