// The program behind main: from arguments to an exit status.
#pragma once

namespace placet {

/// Exit statuses: done and the judgement is good, done and it is bad, the input is wrong, our
/// fault.
inline constexpr int kGood = 0;
inline constexpr int kBad = 1;
inline constexpr int kWrongInput = 2;
inline constexpr int kOurFault = 3;

/// Runs one call; gives kGood or kBad. Throws InputError for wrong arguments and files; help and
/// version print and give kGood.
int run(int argc, const char* const* argv);

}  // namespace placet
