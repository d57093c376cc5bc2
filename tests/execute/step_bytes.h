// What all ranks send and hold in a step, beside what their program says.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "program/program.h"

namespace placet::testing {

/// Runs one declared step and compares, rank by rank, bytes and calls by collective and axes with
/// the program's tally, and the most bytes held on device and host with its liveness. Each
/// difference in words; empty: none.
std::vector<std::string> differences_in_step(const Program& program);

/// What a test of an engine is called: its name with an underscore for each other character.
std::string name_of_engine(const ::testing::TestParamInfo<std::string>& engine);

}  // namespace placet::testing
