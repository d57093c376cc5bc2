// What few calls need and what takes longer to load than most calls take, libraries of HTTP with
// TLS and of MPI, is linked by a second program beside this one.
#pragma once

namespace placet {

/// Goes on as placet-net with the arguments of this call, and does not return. Returns where this
/// is that program already, and where there is none: then what is asked says what is missing.
/// Throws InputError where it is there and cannot be run.
void go_on_in_net_program();

}  // namespace placet
