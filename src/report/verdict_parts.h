// The words of verdicts. Inside of report/verdict.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "algebra/verify.h"
#include "check/check.h"
#include "profile/job.h"

namespace placet {

inline constexpr std::array kConditions = {
    Condition::gradient_integrity, Condition::state_consistency, Condition::update_integrity,
    Condition::input_integrity, Condition::order};

/// What a condition says, for people.
std::string_view meaning_of(Condition condition);

/// "gradient integrity".
std::string plain_name_of(Condition condition);

/// "two steps on 8 devices are the two steps of one device."
std::string sentence_of(const Verdict& verdict);

/// Why a method is another training, and what it keeps.
std::string sentence_of(const Method& method);

/// "3 entries of 4 ranks agree with the reference in 2 steps, 2 seeds."
std::string sentence_of(const Verification& run);

/// What was found by search and where, or that nothing was.
std::string cure_sentence(const Cure& cure);

/// Of a witness: its entry as "[3,0]".
std::string index_of(const Witness& witness);

}  // namespace placet
