// Programs of engines and their closed forms, one family of facts at a time: what an engine changes
// of when parameters are gathered and gradients reduced changes both derivations alike.
#include <gtest/gtest.h>

#include <iostream>

#include "amount.h"
#include "meet/meet_jobs.h"

namespace placet::testing {
namespace {

struct FactFamily {
  const char* name;
  void (*facts)(Profile&);
  int jobs;     // drawn
  int changed;  // at least so many programs differ from those of the plain theory
};

void PrintTo(const FactFamily& family, std::ostream* out) { *out << family.name; }

class ProgramsOfEngines : public ::testing::TestWithParam<FactFamily> {};

TEST_P(ProgramsOfEngines, MeetTheirClosedForms) {
  MeetJobs jobs(910, dense_models());
  jobs.change(GetParam().facts);
  const Tallied tallied =
      jobs.compare(amount_of(GetParam().jobs, 3), {Figure::messages, Figure::rest, Figure::peak});
  EXPECT_GE(tallied.changed, amount_of(GetParam().changed, 3));
  EXPECT_TRUE(tallied.parted.empty()) << tallied.parted.size() << " part\n" << text_of(tallied);
  std::cout << tallied.changed << " programs changed\n" << text_of(tallied) << "\n";
}

INSTANTIATE_TEST_SUITE_P(
    OneFamily, ProgramsOfEngines,
    ::testing::Values(
        FactFamily{"reduced_once", [](Profile& p) { p.defers_scatter = true; }, 500, 8},
        FactFamily{"reduced_once_as_reduced",
                   [](Profile& p) {
                     p.defers_scatter = true;
                     p.defers_as_reduced = true;
                   },
                   500, 8},
        FactFamily{"held_over_pipeline", [](Profile& p) { p.layer_cut_defers_sharding = true; },
                   2000, 5},
        FactFamily{"replicas_with_scatter", [](Profile& p) { p.replicas_follow_scatter = true; },
                   1000, 8},
        FactFamily{"small_tensors_whole", [](Profile& p) { p.persistent_elements = 100'000; }, 1000,
                   6},
        FactFamily{"last_block_stays", [](Profile& p) { p.last_block_stays_gathered = true; }, 500,
                   10},
        FactFamily{"all_stays", [](Profile& p) { p.reuse_elements = std::int64_t{1} << 50; }, 500,
                   10},
        FactFamily{"head_stays", [](Profile& p) { p.last_unit_stays_gathered = true; }, 500, 6}),
    [](const auto& of) { return std::string(of.param.name); });

}  // namespace
}  // namespace placet::testing
