// Properties of every derivation, over random placements of every model of the catalogue:
//   totals are the sums of their terms; deriving twice gives the same bytes;
//   dividing more never leaves a device with more at rest;
//   an axis of n1 x n2 and two axes of n1 and n2 are the same;
//   bytes at rest over all devices are the whole state times the devices that hold each part;
//   the replay has as many bytes alive as the derivation says;
//   names of axes and of strategies carry no meaning.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "amount.h"
#include "catalog/renamed_words.h"
#include "derive/derivation_properties.h"
#include "placement/grammar.h"
#include "report/json.h"
#include "units/error.h"

namespace placet::testing {
namespace {

// 5,000 placements over 4 shards; models per shard differ by one at most. placements_slow_test.cc
// draws 320,000.
class EveryPlacement : public ::testing::TestWithParam<int> {};

TEST_P(EveryPlacement, KeepsTheProperties) {
  const auto shard = static_cast<std::size_t>(GetParam());
  const int jobs =
      check_placements(static_cast<std::uint32_t>(20260 + GetParam()), amount_of(32, 4), shard);
  EXPECT_GE(jobs, amount_of(1'250, 4));
}

INSTANTIATE_TEST_SUITE_P(OfEveryModel, EveryPlacement, ::testing::Range(0, 4));

bool counts_by_element(const Optimizer& optimizer) {
  return std::ranges::all_of(optimizer.states, [](const OptimizerState& state) {
    return state.extent == OptimizerState::Extent::element;
  });
}

/// M of gradients is the business of cuts that leave parameters whole; see the test below.
bool consumes_gradients_of_parts(const Job& job) {
  const auto consumes = [](const How& how) {
    return how.cut != Cut::batch && how.cut != Cut::sequence &&
           how.modes.gradients == Mode::materialized;
  };
  return std::ranges::any_of(job.placement.axes, [&](const AxisPlacement& axis) {
    return consumes(axis.how) || std::ranges::any_of(axis.overrides, [&](const Override& one) {
             return consumes(one.how);
           });
  });
}

TEST(RestingBytes, OfAllDevicesAreTheWholeStateTimesItsHolders) {
  RandomJobs random(4, {.most_axes = 4, .most_devices = 24, .engines = false});
  for (const std::string& name : random.models()) {
    Job job;
    job.model = random.model(name);
    for (int i = 0; i < amount_of(6, 3); ++i) {
      random.place(job);
      if (consumes_gradients_of_parts(job)) continue;
      const auto summed = summed_resting_bytes(job);
      for (const State state : {State::parameters, State::optimizer, State::gradients}) {
        if (state == State::optimizer && !counts_by_element(job.optimizer)) continue;
        ASSERT_EQ(summed[static_cast<std::size_t>(state)], counted_bytes(job, state))
            << name_of(state) << ", " << random.describe(job);
      }
    }
  }
}

// One mode per line of the table: what all devices of a batch axis of 6 hold together of a model's
// state is the whole once where it is divided, six times where it is not, and nothing for M.
TEST(RestingBytes, FollowTheTableOfModes) {
  RandomJobs random(1, {});
  Job job;
  job.model = random.model("gpt2");
  job.profile.saved = plain_saved_table();
  job.batch = {.sequence = 1024, .global = 6, .micro = 1};
  job.optimizer.states = {{.what = "first moment"}, {.what = "second moment"}};
  AxisPlacement axis;
  axis.axis = AxisName("dp");
  axis.degree = 6;
  job.attention.resize(1);
  const std::int64_t parameters = count_parameters(job.model).total;
  const std::map<Mode, std::int64_t> copies = {{Mode::replicated, 6},
                                               {Mode::sharded_gather, 1},
                                               {Mode::materialized, 0},
                                               {Mode::offloaded, 1}};
  for (const auto& [mode, expected] : copies) {
    axis.how.modes.parameters = mode;
    job.placement.axes = {axis};
    EXPECT_EQ(summed_resting_bytes(job)[0], 2 * parameters * expected) << symbol_of(mode);
  }
  axis.how.modes = {
      .parameters = Mode::replicated, .optimizer = Mode::sharded, .gradients = Mode::materialized};
  job.placement.axes = {axis};
  const auto summed = summed_resting_bytes(job);
  EXPECT_EQ(summed[1], 12 * parameters);  // fp32 master and two moments
  EXPECT_EQ(summed[2], 0);
}

std::string json_of(Job job) {
  auto shared = std::make_shared<const Job>(std::move(job));
  return derivation_json({.job = shared, .derivation = derive(*shared)});
}

TEST(Derivation, PrintsTheSameBytesTwice) {
  RandomJobs random(8, {});
  for (std::size_t m = 0; m < random.models().size(); m += 8) {
    Job job;
    job.model = random.model(random.models()[m]);
    for (int i = 0; i < 8; ++i) {
      random.place(job);
      ASSERT_EQ(json_of(job), json_of(job)) << random.describe(job);
    }
  }
}

void replace_all(std::string& text, const std::string& from, const std::string& to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at)) {
    text.replace(at, from.size(), to);
    at += to.size();
  }
}

TEST(Derivation, NamesOfAxesCarryNoMeaning) {
  RandomJobs random(15, {});
  const std::vector<std::string> names = {"tp", "dp.x", "data", "z-3", "expert", "Shard_2"};
  for (std::size_t m = 0; m < random.models().size(); m += 8) {
    Job job;
    job.model = random.model(random.models()[m]);
    for (int i = 0; i < amount_of(8, 2); ++i) {
      random.place(job);
      for (std::size_t a = 0; a < job.placement.axes.size(); ++a) {
        job.placement.axes[a].axis = AxisName("QQQ" + std::to_string(a));
      }
      std::string placeholders = json_of(job);
      for (std::size_t a = 0; a < job.placement.axes.size(); ++a) {
        replace_all(placeholders, "QQQ" + std::to_string(a), names[a]);
        job.placement.axes[a].axis = AxisName(names[a]);
      }
      ASSERT_EQ(placeholders, json_of(job)) << random.describe(job);
    }
  }
}

/// The job as it is read from its text in the words of another catalogue; none where the text needs
/// more than words.
Job reread(const Job& job, const std::string& text, const StrategyCatalog& strategies) {
  Job out = job;
  out.placement = parse_placement(text, strategies.vocabulary);
  out.schedule = schedule_of(strategies, out.placement);
  out.attention = attention_of(strategies, out.placement);
  return out;
}

/// The engine's own lists of schedules and exchanges in the words of another catalogue.
void translate_refusals(Profile& profile, const std::map<std::string, std::string>& new_name) {
  for (auto& refusal : profile.refusals) {
    for (When& when : refusal.when) {
      for (std::vector<std::string>* names : {&when.schedule_beyond, &when.exchange_beyond}) {
        for (std::string& name : *names) {
          if (const auto known = new_name.find(name); known != new_name.end()) name = known->second;
        }
      }
    }
  }
}

TEST(Derivation, NamesOfStrategiesCarryNoMeaning) {
  RandomJobs random(16, {});
  const RenamedCatalog other = renamed(random.strategies(), 5);
  for (std::size_t m = 0; m < random.models().size(); m += 8) {
    Job job;
    job.model = random.model(random.models()[m]);
    for (int i = 0; i < amount_of(12, 3); ++i) {
      random.place(job);
      if (job.placement.axes.empty()) continue;  // no text spells it
      const std::string text = print_placement(job.placement, random.strategies().vocabulary);
      const Job ours = reread(job, text, random.strategies());
      Job theirs = reread(job, translated(text, other), other.catalog);
      translate_refusals(theirs.profile, other.new_name);
      ASSERT_TRUE(same_figures(derive(ours), derive(theirs))) << random.describe(job);
      std::string expected = json_of(ours);
      std::string found = json_of(theirs);
      for (const auto& [name, word] : other.new_name) replace_all(found, word, name);
      ASSERT_EQ(found, expected) << random.describe(job);
    }
  }
}

// Modes that mean nothing, sizes beyond any cluster: a derivation or an InputError, nothing else.
TEST(Derivation, OfNonsenseEndsInAnInputErrorAtWorst) {
  RandomJobs random(23, {.meaningful = false});
  for (std::size_t m = 0; m < random.models().size(); m += 4) {
    Job job;
    job.model = random.model(random.models()[m]);
    for (int i = 0; i < 40; ++i) {
      random.place(job);
      EXPECT_NO_THROW({
        const Derivation derivation = derive(job);
        EXPECT_TRUE(terms_add_up(job, derivation)) << random.describe(job);
      }) << random.describe(job);
    }
  }
}

bool speaks_of_size(const InputError& error) {
  const std::string text = error.what();
  return text.find("exceeds") != std::string::npos || text.find("too large") != std::string::npos;
}

TEST(Derivation, OfHugeSizesIsAnInputErrorOrAFigure) {
  RandomJobs random(42, {});
  int refused = 0;
  for (std::size_t m = 0; m < random.models().size(); m += 4) {
    Job job;
    job.model = random.model(random.models()[m]);
    for (int i = 0; i < 20; ++i) {
      random.place(job);
      job.batch.sequence = std::int64_t{1} << random.pick(10, 40);
      job.batch.micro = std::int64_t{1} << random.pick(0, 40);
      job.batch.global = std::int64_t{1} << random.pick(0, 62);
      for (AxisPlacement& axis : job.placement.axes) {
        if (axis.how.cut != Cut::layer && axis.shares.empty()) {
          axis.degree = std::int64_t{1} << random.pick(0, 31);
        }
      }
      try {
        derive(job);
      } catch (const InputError& error) {
        ++refused;
        EXPECT_TRUE(speaks_of_size(error)) << error.what();
      } catch (const std::exception& error) {
        ADD_FAILURE() << error.what() << "\n" << random.describe(job);
      }
    }
  }
  EXPECT_GT(refused, 100);
}

}  // namespace
}  // namespace placet::testing
