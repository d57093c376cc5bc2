#include "execute/run.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "execute/fill.h"
#include "execute/poison.h"
#include "execute/spans.h"
#include "execute/team.h"
#include "execute/traffic.h"
#include "execute/watch.h"
#include "ranks/numbers.h"
#include "ranks/plan.h"
#include "units/at.h"
#include "units/error.h"
#include "units/nearest.h"

namespace placet {
namespace {

using namespace execute;  // NOLINT(google-build-using-namespace): this file is its only door
using namespace ranks;    // NOLINT(google-build-using-namespace): likewise

[[noreturn]] void refuse_size(const std::string& what, double value, double most) {
  throw InputError({.where = "program",
                    .value = what,
                    .problem = "is too large to run with all ranks: " +
                               std::to_string(static_cast<std::int64_t>(value)),
                    .allowed = "at most " + std::to_string(static_cast<std::int64_t>(most)) +
                               ": a program of fewer devices or shorter dims (placet check takes "
                               "any)"});
}

void check_work(const OperationList& list, const RunLimits& limits) {
  double products = 0;
  std::size_t inside = 0;
  for (const Operation& op : list.operations) {
    if (op.code == nullptr) continue;
    products += op.code->products;
    inside = std::max(inside, op.code->scratch);
  }
  if (inside > at(limits.elements)) {
    refuse_size("numbers inside a kernel", static_cast<double>(inside),
                static_cast<double>(limits.elements));
  }
  if (products > limits.products) {
    refuse_size("products in one step", products, limits.products);
  }
}

double to_double(const Number& x) {
  return std::ldexp(static_cast<double>(x.high), -kHighBits) +
         std::ldexp(static_cast<double>(x.parts[0]), -kHighBits - kPartBits);
}
double to_double(float x) { return static_cast<double>(x); }
double to_double(double x) { return x; }

void from_double(double x, Number& to) {
  bool fits = true;
  to = number_of_real(x, fits);
}
void from_double(double x, float& to) { to = static_cast<float>(x); }
void from_double(double x, double& to) { to = x; }

std::uint64_t bits_of_number(const Number& x) {
  auto bits =
      ranks::mixed(static_cast<std::uint64_t>(x.high)) ^ static_cast<std::uint64_t>(x.high >> 64);
  for (const std::int64_t part : x.parts) {
    bits = ranks::mixed(bits) ^ static_cast<std::uint64_t>(part);
  }
  return bits;
}
std::uint64_t bits_of_number(float x) { return std::bit_cast<std::uint32_t>(x); }
std::uint64_t bits_of_number(double x) { return std::bit_cast<std::uint64_t>(x); }

bool same_bits(const Number& a, const Number& b) { return a == b; }
bool same_bits(float a, float b) { return a == b || (std::isnan(a) && std::isnan(b)); }
bool same_bits(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

/// Half of the digits of the format: rounding errors of a training step stay below it.
double tolerance_of(Arithmetic arithmetic, const std::vector<Dtype>& formats) {
  if (arithmetic == Arithmetic::canonical) return 0;
  if (arithmetic == Arithmetic::binary64) return std::ldexp(1.0, -26);
  const auto has = [&](Dtype d) { return std::ranges::find(formats, d) != formats.end(); };
  if (arithmetic == Arithmetic::binary32) return std::ldexp(1.0, -12);
  if (has(Dtype::fp8)) return 0.25;
  if (has(Dtype::bf16)) return std::ldexp(1.0, -4);
  return has(Dtype::fp16) ? std::ldexp(1.0, -5) : std::ldexp(1.0, -12);
}

void check_instructions(const Program& program, const Mesh& mesh, const RunLimits& limits) {
  double instructions = 0;
  std::vector<double> of_class;
  of_class.reserve(program.classes.size());
  for (const DeviceClass& c : program.classes) of_class.push_back(instructions_in(program, c));
  for (int c : classes_of(program, mesh)) instructions += of_class[at(c)];
  if (instructions > limits.instructions) {
    refuse_size("instructions over all ranks", instructions, limits.instructions);
  }
}

void check_faults(const std::vector<RankFault>& faults, int ranks, const StepRange& steps) {
  for (const RankFault& fault : faults) {
    if (fault.rank >= ranks) {
      refuse("--fault", "rank=" + std::to_string(fault.rank), "is no rank of the program",
             "0 to " + std::to_string(ranks - 1));
    }
    const bool is_of_one_step = fault.kind != RankFault::Kind::slow;
    const int last = steps.first + steps.count;
    if (is_of_one_step && (fault.step <= steps.first || fault.step > last)) {
      refuse("--fault", "step=" + std::to_string(fault.step), "is no step of the run",
             std::to_string(steps.first + 1) + " to " + std::to_string(last));
    }
  }
}

Meanings meanings_for(const Program& program, Meanings meanings) {
  read_updates(meanings, program.reference);
  return meanings;
}

FunctionTable functions_of(const Program& program, const Meanings& meanings,
                           const ReferenceBuilder& builder) {
  FunctionTable table(meanings);
  for (const Kernel& kernel : program.kernels) table.add(kernel);
  for (const auto& kind : builder.backward()) {
    for (const BackwardApplication& b : kind) table.add(b.adjoint.kernel);
  }
  return table;
}

/// The state of all ranks in the memory of a run.
template <class Numbers>
class HeldState : public StateView {
 public:
  HeldState(const std::vector<PlacedSlice>& placed, const Memory<Numbers>& memory)
      : placed_(placed), memory_(memory) {
    slices_.reserve(placed.size());
    for (const PlacedSlice& one : placed) slices_.push_back(one.slice);
  }
  const std::vector<StateSlice>& slices() const override { return slices_; }
  EncodedSlice numbers(std::size_t slice) const override {
    const PlacedSlice& one = placed_.at(slice);
    return encoded(memory_.numbers.data() + one.address, one.slice.count, one.slice.format);
  }

 private:
  const std::vector<PlacedSlice>& placed_;
  const Memory<Numbers>& memory_;
  std::vector<StateSlice> slices_;
};

/// One program beside its reference, both on the same kind of numbers.
template <class Numbers>
class Training {
 public:
  using Stored = typename Numbers::Stored;
  static constexpr bool kHasLevels = Memory<Numbers>::kHasLevels;

  Training(const Program& program, const RunOptions& options)
      : options_(options),
        meanings_(meanings_for(program, options.meanings)),
        mesh_(program, options.limits.ranks),
        program_(program),
        builder_(program, library_),
        functions_(functions_of(program, meanings_, builder_)),
        one_device_(functions_),
        ranks_(functions_) {}

  RealRun run() {
    check_instructions(program_, mesh_, options_.limits);
    check_faults(options_.rank_faults, mesh_.ranks(), steps());
    reference_ = builder_.build();
    check_work(reference_.list, options_.limits);
    plan_ = Planner(program_, reference_, library_, mesh_).build(steps(), options_.limits.elements);
    out_.arithmetic = options_.arithmetic;
    out_.rank_kind = options_.rank_kind;
    out_.order = order();
    out_.ranks = mesh_.ranks();
    out_.meanings = words_of(meanings_);
    out_.stuck = plan_.stuck;
    if (!out_.stuck) check_work(plan_.list, options_.limits);
    if (!out_.stuck) train();
    out_.equal = !out_.stuck && is_equal();
    return std::move(out_);
  }

 private:
  bool is_equal() const {
    if (options_.arithmetic == Arithmetic::canonical) return out_.differing == 0;
    return out_.largest_difference <= out_.tolerance;
  }

  void train() {
    formats_ = formats_of(program_, plan_);
    if (options_.arithmetic == Arithmetic::declared) ranks_.formats = formats_;
    ranks_.slip = options_.slip;
    out_.tolerance = tolerance_of(options_.arithmetic, formats_);
    out_.held = held_bytes(program_, plan_, mesh_);
    expected_ = Memory<Numbers>(at(reference_.list.memory));
    found_ = Memory<Numbers>(at(plan_.list.memory));
    out_.canonical_bytes = static_cast<std::int64_t>(found_.numbers.size() * sizeof(Stored) +
                                                     found_.levels.size() * sizeof(Level));
    out_.workspace_bytes = workspace_bytes<Numbers>(plan_.list, functions_);
    for (std::size_t a = 0; a < found_.numbers.size(); ++a) poison(a, found_.numbers[a]);
    for (const ReferenceTensor& tensor : reference_.tensors) {
      const StateRef::Kind kind = tensor.ref.kind;
      if (kind == StateRef::Kind::input || kind == StateRef::Kind::loss) continue;
      put(tensor, initial_numbers(program_, tensor, meanings_));
    }
    fill(plan_.once);
    const std::vector<PlacedSlice> state = placed_slices(program_, plan_, mesh_);
    if (options_.resume != nullptr) take_up(*options_.resume, state);
    if (order().kind == QueueOrder::Kind::listed) {
      look_on(state);
      train_in_step();
      tell_what_was_seen();
    } else {
      train_in_queues();
    }
    if (!out_.stuck && out_.judged) options_.on_end(HeldState(state, found_));
  }

  StepRange steps() const { return {.first = first_step(), .count = options_.steps}; }
  int end_step() const { return first_step() + options_.steps; }

  /// Of ranks with processes of their own there is no common order.
  QueueOrder order() const {
    const bool in_step = options_.order.kind == QueueOrder::Kind::listed;
    if (!in_step || options_.rank_kind == RankKind::in_one_process) return options_.order;
    return {.kind = QueueOrder::Kind::early};
  }

  /// Half of the last digit of the format that is stored in.
  double unit() const {
    switch (options_.arithmetic) {
      case Arithmetic::canonical:
        return 0;
      case Arithmetic::binary64:
        return std::ldexp(1.0, -53);
      case Arithmetic::binary32:
        return std::ldexp(1.0, -24);
      case Arithmetic::declared:
        break;
    }
    const auto has = [&](Dtype d) { return std::ranges::find(formats_, d) != formats_.end(); };
    if (has(Dtype::fp8)) return std::ldexp(1.0, -4);
    if (has(Dtype::bf16)) return std::ldexp(1.0, -8);
    return std::ldexp(1.0, has(Dtype::fp16) ? -11 : -24);
  }

  /// What else happens while the ranks run: a number changes, times are noted, readings watched.
  void look_on(const std::vector<PlacedSlice>& state) {
    if (options_.upset) upset_state(*options_.upset, state);
    if (options_.times) recorder_.emplace(program_, plan_, mesh_);
    if (recorder_) ranks_.calls.push_back(&*recorder_);
    if (options_.proven != nullptr) begin_watch(*options_.proven);
  }

  void tell_what_was_seen() {
    if (watch_) out_.watched = watch_->findings();
    if (watch_) out_.watched_readings = watch_->compared();
    if (!recorder_) return;
    out_.spans = recorder_->spans();
    out_.spans_cut_short = recorder_->is_cut_short();
  }

  void upset_state(const StateUpset& upset, const std::vector<PlacedSlice>& state) {
    for (const PlacedSlice& one : state) {
      if (one.slice.rank != upset.rank || one.slice.tensor != upset.tensor) continue;
      ranks_.upset =
          Upset{.step = upset.step, .operation = upset.operation, .address = one.address};
    }
    ensure(ranks_.upset.has_value(), "what is upset is a part of the rank's state");
  }

  void begin_watch(const Program& proven) {
    const ProgramPlan* plan = &plan_;
    if (&proven != &program_) {
      proven_reference_ = ReferenceBuilder(proven, library_).build();
      proven_plan_ = Planner(proven, proven_reference_, library_, mesh_)
                         .build(steps(), options_.limits.elements);
      plan = &proven_plan_;
    }
    const auto is_of_one_step = [](const Operation& op) { return op.step >= 0; };
    if (plan->stuck || std::ranges::any_of(plan->list.operations, is_of_one_step)) {
      throw InputError({.where = "--watch",
                        .problem = "needs a program that can run, with the same steps each time"});
    }
    watch_.emplace(PlannedProgram{proven, *plan}, PlannedProgram{program_, plan_}, mesh_, found_,
                   unit());
    ranks_.calls.push_back(&*watch_);
  }

  /// Steps that were made before this run.
  int first_step() const { return options_.resume == nullptr ? 0 : options_.resume->steps(); }

  /// The ranks begin with what is given; one device with that, of several formats with the widest.
  void take_up(const StateSource& from, const std::vector<PlacedSlice>& placed) {
    std::vector<PlacedSlice> state = placed;
    for (const PlacedSlice& one : state) {
      decode(from.numbers(one.slice), found_.numbers.data() + one.address, one.slice.count);
    }
    std::ranges::stable_sort(state, {}, [](const PlacedSlice& one) {
      return std::pair(bits_of(one.slice.format), -one.slice.rank);
    });
    for (const PlacedSlice& one : state) {
      for (const Run& run : one.region->runs) {
        std::copy_n(found_.numbers.begin() + run.to, run.length,
                    expected_.numbers.begin() + run.from);
      }
    }
  }

  void train_in_step() {
    TransferCount count(plan_, formats_);
    for (int step = first_step(); step < end_step() && !out_.stuck; ++step) {
      ranks_.watcher = step == first_step() ? &count : nullptr;
      draw_inputs(step);
      for (int r = 0; r < mesh_.ranks(); ++r) prepare(step, r);
      out_.stuck = train_alone(step);
      if (!out_.stuck) out_.stuck = train_ranks(step);
      if (!out_.stuck) judge(step);
    }
    out_.sent = sent_bytes(program_, mesh_, count.by_rank);
  }

  void train_in_queues() {
    const std::unique_ptr<Team<Numbers>> team = made_team();
    out_.judged = team->judges();
    for (int step = first_step(); step < end_step() && !out_.stuck; ++step) {
      out_.stuck = team->run_step(step);
      seconds_ = team->seconds();
      if (!out_.stuck && out_.judged) judge(step);
    }
    out_.sent = sent_bytes(program_, mesh_, team->first_sent());
  }

  std::unique_ptr<Team<Numbers>> made_team() {
    TeamWork<Numbers> work{.setting = {.program = program_,
                                       .mesh = mesh_,
                                       .library = library_,
                                       .functions = functions_,
                                       .rounds = options_.arithmetic == Arithmetic::declared,
                                       .slip = options_.slip,
                                       .faults = options_.rank_faults},
                           .reference = reference_,
                           .plan = plan_,
                           .order = order(),
                           .first_step = first_step(),
                           .steps = options_.steps,
                           .expected = expected_,
                           .found = found_,
                           .draw_inputs = [this](int step) { draw_inputs(step); },
                           .train_alone = [this](int step) { return train_alone(step); },
                           .prepare = [this](int step, int rank) { prepare(step, rank); }};
    switch (options_.rank_kind) {
      case RankKind::in_one_process:
        return virtual_team(std::move(work));
      case RankKind::in_processes:
        return process_team(std::move(work));
      case RankKind::over_mpi:
        return mpi_team(std::move(work));
    }
    fail_internally("ranks live somewhere");
  }

  void draw_inputs(int step) {
    std::ranges::fill(expected_.levels, Level{0});
    for (const ReferenceTensor& tensor : reference_.tensors) {
      if (tensor.ref.kind != StateRef::Kind::input) continue;
      put(tensor, step_numbers(program_, reference_, tensor, meanings_, step));
    }
  }

  std::optional<std::string> train_alone(int step) {
    if (!one_device_.run(reference_.list, expected_, step)) return std::nullopt;
    return "step " + std::to_string(step + 1) +
           ": a number of the training on one device is out of range";
  }

  std::optional<std::string> train_ranks(int step) {
    if (recorder_) recorder_->begin_step(step);
    if (watch_) watch_->begin_step(step);
    const Stopwatch watch;
    if (const auto failed = ranks_.run(plan_.list, found_, step)) {
      const Operation& op = plan_.list.operations[*failed];
      return out_of_range_text(step, op.rank, op.instruction);
    }
    if (watch_) watch_->end_step();
    seconds_ = watch.seconds();
    return std::nullopt;
  }

  void prepare(int step, int rank) {
    if (step > first_step()) forget_the_rest(rank);
    fill(plan_.fresh, rank);
  }

  void judge(int step) {
    const std::int64_t differed = out_.differing;
    compare(step);
    StepLoss loss = losses(step);
    loss.equal = out_.differing == differed;
    loss.seconds = seconds_;
    out_.steps.push_back(loss);
    const double size = std::max(std::fabs(loss.one_device), 1e-300);
    const double relative = std::fabs(loss.ranks - loss.one_device) / size;
    // What is no number is no loss.
    out_.largest_difference = std::isnan(relative) ? std::numeric_limits<double>::infinity()
                                                   : std::max(out_.largest_difference, relative);
    options_.on_step(loss);
  }

  void put(const ReferenceTensor& tensor, const std::vector<double>& numbers) {
    for (std::size_t e = 0; e < numbers.size(); ++e) {
      from_double(numbers[e], expected_.numbers[at(tensor.address) + e]);
      if constexpr (kHasLevels) expected_.levels[at(tensor.address) + e] = 0;
    }
  }

  /// Of one rank; -1: of all.
  void fill(const std::vector<Region>& regions, int rank = -1) {
    for (const Region& region : regions) {
      if (rank >= 0 && region.rank != rank) continue;
      for (const Run& run : region.runs) fill_run(run, region.tensor == nullptr);
    }
  }

  void fill_run(const Run& run, bool zero) {
    for (std::int64_t k = 0; k < run.length; ++k) {
      found_.numbers[at(run.to + k)] = zero ? Stored{} : expected_.numbers[at(run.from + k)];
      if constexpr (kHasLevels) found_.levels[at(run.to + k)] = 0;
      round_first(at(run.to + k));
    }
  }

  /// Buffers rest in their formats from the beginning.
  void round_first(std::size_t address) {
    if constexpr (!std::is_same_v<Stored, Number>) {
      if (address >= ranks_.formats.size()) return;
      Stored& x = found_.numbers[address];
      x = static_cast<Stored>(rounded_to(ranks_.formats[address], to_double(x)));
    }
  }

  /// Of what a step left with a rank, the next may count on what is compared, and on zeros where
  /// the program begins with some: all else is overwritten.
  void forget_the_rest(int rank) {
    const RankPlace place = place_of(plan_, rank);
    std::vector<bool> known(at(place.size), false);
    for (const Region& region : plan_.once) {
      if (region.rank != rank || (region.tensor == nullptr && !is_zero(region))) continue;
      for (const Run& run : region.runs) {
        std::fill_n(known.begin() + (run.to - place.first), run.length, true);
      }
    }
    for (std::size_t a = 0; a < known.size(); ++a) {
      const std::size_t address = at(place.first) + a;
      if (!known[a]) poison(address, found_.numbers[address]);
      if constexpr (kHasLevels) found_.levels[address] = 0;
    }
  }

  bool is_zero(const Region& region) const {
    return std::ranges::all_of(region.runs, [&](const Run& run) {
      const auto begin = found_.numbers.begin() + run.to;
      return std::all_of(begin, begin + run.length, [](const Stored& e) { return e == Stored{}; });
    });
  }

  StepLoss losses(int step) const {
    StepLoss loss{.step = step + 1, .last = end_step()};
    for (const ReferenceTensor& tensor : reference_.tensors) {
      if (tensor.ref.kind != StateRef::Kind::loss) continue;
      loss.one_device = to_double(expected_.numbers[at(tensor.address)]);
    }
    for (const Region& region : plan_.checks) {
      if (region.kind != StateRef::Kind::loss || region.runs.empty()) continue;
      loss.ranks = to_double(found_.numbers[at(region.runs[0].to)]);
    }
    return loss;
  }

  /// Of the first step that differs somewhere, the first entry of each buffer is told.
  void compare(int step) {
    const bool tells = out_.differing == 0;
    for (const Region& region : plan_.checks) {
      std::optional<Difference> first;
      for (const Run& run : region.runs) compare_run(region, run, first);
      if (!first || !tells || out_.differences.size() >= kMostDifferences) continue;
      first->step = step + 1;
      out_.differences.push_back(*std::move(first));
    }
  }

  void compare_run(const Region& region, const Run& run, std::optional<Difference>& first) {
    out_.compared += run.length;
    for (std::int64_t k = 0; k < run.length; ++k) {
      const Stored& e = expected_.numbers[at(run.from + k)];
      const Stored& f = found_.numbers[at(run.to + k)];
      out_.digest = ranks::mixed(out_.digest ^ bits_of_number(f));
      if (same_bits(e, f)) continue;
      ++out_.differing;
      if (first) continue;
      first = Difference{.tensor = region.tensor->name,
                         .rank = region.rank,
                         .index = index_of(*region.tensor, run.from + k),
                         .expected = to_double(e),
                         .found = to_double(f)};
    }
  }

  RunOptions options_;
  Meanings meanings_;
  Mesh mesh_;
  const Program& program_;
  KernelLibrary library_{Tables::none};
  ReferenceBuilder builder_;
  FunctionTable functions_;
  ReferenceRun reference_;
  ProgramPlan plan_;
  Machine<Numbers> one_device_;
  Machine<Numbers> ranks_;
  Memory<Numbers> expected_;
  Memory<Numbers> found_;
  std::vector<Dtype> formats_;
  ReferenceRun proven_reference_;  // where another program is run than was proven
  ProgramPlan proven_plan_;
  std::optional<Watch<Numbers>> watch_;
  std::optional<SpanRecorder> recorder_;
  double seconds_ = 0;  // of the last step
  RealRun out_;
};

constexpr std::array<std::pair<std::string_view, Arithmetic>, 4> kArithmetics = {{
    {"canonical", Arithmetic::canonical},
    {"declared", Arithmetic::declared},
    {"f32", Arithmetic::binary32},
    {"f64", Arithmetic::binary64},
}};

}  // namespace

std::vector<StateSlice> state_slices(const Program& program, const RunLimits& limits) {
  KernelLibrary library(Tables::none);
  Mesh mesh(program, limits.ranks);
  const ReferenceRun reference = ReferenceBuilder(program, library).build();
  const ProgramPlan plan =
      Planner(program, reference, library, mesh).build({.count = 0}, limits.elements);
  std::vector<StateSlice> slices;
  for (PlacedSlice& one : placed_slices(program, plan, mesh)) {
    slices.push_back(std::move(one.slice));
  }
  return slices;
}

std::string_view name_of(Arithmetic arithmetic) {
  return std::ranges::find(kArithmetics, arithmetic,
                           &std::pair<std::string_view, Arithmetic>::second)
      ->first;
}

Arithmetic arithmetic_from(const std::string& word) {
  std::vector<std::string> names;
  names.reserve(kArithmetics.size());
  for (const auto& [name, arithmetic] : kArithmetics) {
    if (name == word) return arithmetic;
    names.emplace_back(name);
  }
  throw InputError({.where = "--mode",
                    .value = word,
                    .problem = "is no mode",
                    .allowed = "canonical, declared, f32 or f64",
                    .nearest = nearest(word, names)});
}

RealRun run(const Program& program, const RunOptions& options) {
  try {
    switch (options.arithmetic) {
      case Arithmetic::canonical:
        return Training<CanonicalNumbers>(program, options).run();
      case Arithmetic::declared:
      case Arithmetic::binary32:
        return Training<PlainNumbers<float>>(program, options).run();
      case Arithmetic::binary64:
        return Training<PlainNumbers<double>>(program, options).run();
    }
  } catch (const std::out_of_range&) {
    throw InputError({.where = "program",
                      .problem = "refers by number to a dim, an axis or a tensor that it lacks"});
  }
  fail_internally("every mode is run");
}

}  // namespace placet
