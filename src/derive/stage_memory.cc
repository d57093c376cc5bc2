#include "derive/stage_memory.h"

#include <algorithm>
#include <utility>

#include "derive/heaviest_moments.h"
#include "units/at.h"
#include "units/checked.h"
#include "units/error.h"

namespace placet {
namespace {

/// Finds the fullest moment of each instant. Within a run of equal units every sum is linear in the
/// position, except near its ends, where units gathered ahead are of another run: only those
/// positions are looked at.
class StageMemory {
 public:
  StageMemory(const UnitFigures& units, std::vector<KnownMoments>& known, StageFigures& out)
      : layout_(out.layout),
        job_(*layout_.job),
        content_(out.content),
        units_(units),
        known_(known),
        ahead_(units_ahead(layout_)),
        out_(out) {}

  void visit_instants() {
    if (looks_at_moments(layout_)) {
      visit_moments();
    } else {
      visit_wholes();
    }
    visit_gathers();
    consider({.instant = Instant::reduction,
              .gradients = content_.rest.device[2],
              .update = content_.reduction});
    consider({.instant = Instant::update,
              .gradients = content_.rest.device[2],
              .update = content_.update});
  }

 private:
  /// What stays gathered over the step comes together before its first micro-batch, unit by unit.
  /// Copies of parts that it comes from are there for one unit at a time.
  void visit_gathers() {
    GatheredBytes there;
    for (const UnitRun& run : out_.units.runs) {
      const UnitMemory& walk = units_.walk_of(run);
      add(kept_of(gathered_of(run), false), run.count, there);
      if (walk.gathered_from == 0 || walk.keep != Keep::step) continue;
      consider({.unit = run.first + static_cast<int>(run.count) - 1,
                .gradients = gradients_before_backward(),
                .gathered = {.whole = there.whole, .parts = there.parts + walk.gathered_from}});
    }
  }

  /// The instants of the chunk that runs, forward and backward, at the fullest of all moments.
  void visit_wholes() {
    const HeldActivations& activations = out_.activations;
    active_ = activations.active;
    beside_ = {.held = activations.most.held, .waiting = activations.most.waiting};
    const bool runs = beside_.held[active_] > 0;
    if (runs) --beside_.held[active_];
    // Kept by other micro-batches, then also by the units before the one that runs.
    others_ = {.kept = activations.bytes - (runs ? kept_by_active() : 0)};
    const InFlight& in_flight = in_flight_beside(std::nullopt, runs);
    if (take_known(in_flight)) return;
    sum_active_chunk(runs && beside_.held[active_] > 0);
    sum_other_chunks();
    for (const RunSums& run : runs_) visit(run, &StageMemory::visit_both);
    note_known(in_flight);
  }

  /// What one micro-batch leaves on the chunk that runs.
  std::int64_t kept_by_active() const {
    const StageUnits& units = out_.units;
    std::int64_t kept = 0;
    for (std::size_t r = units.chunk_begin(active_); r < units.chunk_ends[active_]; ++r) {
      kept += units.runs[r].count * units_.walk_of(units.runs[r]).kept;
    }
    return kept;
  }

  /// Position of the first unit of the chunk that runs.
  int first_of_active() const {
    const StageUnits& units = out_.units;
    const std::size_t begin = units.chunk_begin(active_);
    return begin < units.chunk_ends[active_] ? units.runs[begin].first : 0;
  }

  /// Until the next call.
  const InFlight& in_flight_beside(std::optional<Work::Kind> kind, bool runs) {
    in_flight_.kind = kind;
    in_flight_.active = active_;
    in_flight_.runs = runs;
    in_flight_.beside.resize(beside_.held.size());
    for (std::size_t c = 0; c < beside_.held.size(); ++c) {
      in_flight_.beside[c] = beside_.held[c] + beside_.waiting[c] > 0;
    }
    return in_flight_;
  }

  /// Takes the moments of a stage that is alike, or of an earlier moment: they differ in what is
  /// beside the micro-batch that runs, which is in all of them, and in where the units stand.
  /// (Where nothing is beside it a moment may be empty.)
  bool take_known(const InFlight& in_flight) {
    const auto known = std::ranges::find(known_, in_flight, &KnownMoments::in_flight);
    if (known == known_.end() || others_.total() == 0) return false;
    for (std::size_t i = 0; i < known->instants.size(); ++i) {
      const Moment& own = known->instants[i];
      const std::int64_t total = own.total + others_.total() - known->beside.total();
      if (own.running == nullptr || total <= out_.instants[i].total) continue;
      Moment& moment = out_.instants[i];
      moment = own;
      moment.unit += first_of_active() - known->first;
      moment.activations += others_.kept - known->beside.kept;
      moment.waiting += others_.waiting - known->beside.waiting;
      moment.arrived = others_.arrived;
      moment.total = total;
    }
    return true;
  }

  /// Notes the moments found for others that are alike.
  void note_known(const InFlight& in_flight) {
    if (others_.total() == 0) return;
    known_.push_back({.in_flight = in_flight,
                      .first = first_of_active(),
                      .beside = others_,
                      .instants = out_.instants});
  }

  /// Each kind of work on each chunk, at each of its fullest moments.
  void visit_moments() {
    const std::vector<ChunkLeft> left = left_on_chunks(units_, out_.units);
    const Schedule& schedule = job_.schedule;
    if (!arrives_in_turn(schedule, layout_.stages)) {
      for (const WorkMoment& moment : out_.moments) visit_moment(moment, left);
      return;
    }
    std::vector<std::int64_t> kept;
    kept.reserve(left.size());
    for (const ChunkLeft& own : left) kept.push_back(own.kept);
    for (const WorkMoment& moment : heaviest_moments(schedule, layout_.stages, out_.stage.device,
                                                     layout_.micro_batches, kept)) {
      visit_moment(moment, left);
    }
  }

  void visit_moment(const WorkMoment& moment, const std::vector<ChunkLeft>& left) {
    active_ = at(moment.chunk);
    beside_.held = moment.held;
    beside_.waiting = moment.waiting;
    others_ = bytes_of_all(left, beside_);
    others_.arrived = moment.arrived > 0 ? moment.arrived * bytes_of_stream() : 0;
    const InFlight& in_flight = in_flight_beside(moment.kind, true);
    if (take_known(in_flight)) return;
    const std::array<Moment, kInstantCount> before = std::exchange(out_.instants, {});
    // What a chunk keeps gathered is there for all its micro-batches under way.
    sum_active_chunk(layout_.micro_batches > 1);
    sum_other_chunks();
    for (const RunSums& run : runs_) visit(run, visit_of(moment.kind));
    note_known(in_flight);
    for (std::size_t i = 0; i < before.size(); ++i) {
      if (before[i].total >= out_.instants[i].total) out_.instants[i] = before[i];
    }
  }

  /// What stages hand on: what a block begins with.
  std::int64_t bytes_of_stream() const {
    std::int64_t most = 0;
    for (const UnitRun& run : out_.units.runs) {
      if (role_of(run) != UnitRole::block) continue;
      most = std::max(most, units_.walk_of(run).begins_with.working);
    }
    return most;
  }

  /// A run of the chunk that runs, with sums over the units before it.
  struct RunSums {
    const UnitRun* of = nullptr;
    const UnitMemory* walk = nullptr;
    const UnitMemory* again = nullptr;  // once it is made again with others; null: it is alone
    std::int64_t rebuilt_before = 0;    // of those, by the units before the run
    std::int64_t gradient = 0;          // bytes of gradients of one unit
    std::int64_t begin = 0;             // position in the chunk
    std::int64_t kept_before = 0;
    std::int64_t passing_before = 0;
    std::int64_t waiting_before = 0;
    std::int64_t grown_before = 0;
    std::int64_t made_before = 0;
  };

  using Visit = void (StageMemory::*)(const RunSums&, std::int64_t);

  static Visit visit_of(Work::Kind kind) {
    switch (kind) {
      case Work::Kind::forward:
        return &StageMemory::visit_forward;
      case Work::Kind::backward:
        return &StageMemory::visit_backward;
      case Work::Kind::backward_input:
        return &StageMemory::visit_inputs;
      case Work::Kind::backward_weight:
        return &StageMemory::visit_weights;
    }
    fail_internally("every kind of work has its instants");
  }

  const UnitRole& role_of(const UnitRun& run) const {
    const Model& model = job_.model;
    return model.kinds[at(layout_.units[at(run.local)].kind)].role;
  }

  bool runs_backward(const UnitRun& run) const {
    return layout_.prepared->kinds[at(layout_.units[at(run.local)].kind)].gradients.backward;
  }

  /// A unit may stay gathered for longer than its placement says.
  Keep keep_of(const UnitRun& run) const {
    return kept_whole(layout_.plan.gathers, role_of(run), run.last_block, units_.walk_of(run).keep);
  }

  GatheredUnit gathered_of(const UnitRun& run) const {
    const UnitMemory& unit = units_.walk_of(run);
    return {.whole = unit.gathered_parameters,
            .keep = keep_of(run),
            .parts = unit.kept_parts,
            .parts_step = unit.kept_parts_step};
  }

  /// `in_flight`: whether others of its micro-batches are under way.
  void sum_active_chunk(bool in_flight) {
    const StageUnits& units = out_.units;
    gathered_ = GatheredChunk(ahead_, in_flight);
    gathered_idle_ = {};
    runs_.clear();
    runs_.reserve(units.chunk_ends[active_] - units.chunk_begin(active_));
    count_ = 0;
    grown_ = 0;
    made_ = 0;
    waiting_ = 0;
    std::int64_t kept = 0;
    std::int64_t passing = 0;
    std::int64_t rebuilt = 0;  // by the units before, of those that are made again together
    for (std::size_t r = units.chunk_begin(active_); r < units.chunk_ends[active_]; ++r) {
      const UnitRun& run = units.runs[r];
      const UnitMemory& walk = units_.walk_of(run);
      gathered_.add(gathered_of(run), run.count);
      runs_.push_back({.of = &run,
                       .walk = &walk,
                       .again = run.together > 1 ? &units_.plain_walk_of(run) : nullptr,
                       .rebuilt_before = run.inside ? rebuilt : 0,
                       .gradient = units_.states_of(run).bytes.device[2],
                       .begin = count_,
                       .kept_before = kept,
                       .passing_before = passing,
                       .waiting_before = waiting_,
                       .grown_before = grown_,
                       .made_before = made_});
      count_ += run.count;
      kept += run.count * walk.kept;
      passing += run.count * walk.passing;
      waiting_ += run.count * walk.waiting;
      if (run.together > 1) {
        rebuilt = run.inside ? rebuilt + run.count * units_.plain_walk_of(run).kept
                             : rebuilt_by_first(run);
      }
      add(kept_of(gathered_of(run), in_flight), run.count, gathered_idle_);
      grown_ += run.count * runs_.back().gradient;
      made_ += run.count * walk.weight_gradients;
    }
  }

  /// What the first of blocks that are made again together adds to the input that it kept: all that
  /// a block keeps otherwise, the input apart where that is kept on the device as a whole.
  std::int64_t rebuilt_by_first(const UnitRun& run) const {
    const UnitMemory& plain = units_.plain_walk_of(run);
    const UnitMemory& first = units_.walks[at(run.local)][1];
    const bool is_there = first.kept == plain.begins_with.working;
    return plain.kept - (is_there ? first.kept : 0);
  }

  /// What the chunks that do not run keep gathered.
  void sum_other_chunks() {
    const StageUnits& units = out_.units;
    gathered_elsewhere_ = {};
    for (std::size_t c = 0; c < units.chunk_ends.size(); ++c) {
      if (c == active_) continue;
      const bool in_flight = beside_.held[c] + beside_.waiting[c] > 0;
      for (std::size_t r = units.chunk_begin(c); r < units.chunk_ends[c]; ++r) {
        const UnitRun& run = units.runs[r];
        add(kept_of(gathered_of(run), in_flight), run.count, gathered_elsewhere_);
      }
    }
  }

  static void add(const GatheredBytes& each, std::int64_t count, GatheredBytes& sum) {
    sum.whole += count * each.whole;
    sum.parts += count * each.parts;
  }

  void visit(const RunSums& run, Visit visit_unit) {
    const std::int64_t last = run.of->count - 1;
    const std::int64_t near = std::min(ahead_, last);
    for (std::int64_t i = 0; i <= last; ++i) {
      if (i > near && i < last - near) i = last - near;
      (this->*visit_unit)(run, i);
    }
  }

  /// Unit `i` of a run runs, beside what other micro-batches keep.
  Moment running(const RunSums& run, std::int64_t i) const {
    return {.unit = run.of->first + static_cast<int>(i),
            .chunk = active_,
            .running = run.walk,
            .gradients = gradients_before_backward(),
            .activations = others_.kept,
            .waiting = others_.waiting,
            .arrived = others_.arrived};
  }

  /// The same, beside what the units before it keep.
  Moment after_units_before(const RunSums& run, std::int64_t i) const {
    Moment moment = running(run, i);
    moment.activations += run.kept_before + i * run.walk->kept;
    return moment;
  }

  void visit_both(const RunSums& run, std::int64_t i) {
    visit_forward(run, i);
    visit_backward(run, i);
  }

  void visit_forward(const RunSums& run, std::int64_t i) {
    const UnitMemory& walk = *run.walk;
    Moment moment = after_units_before(run, i);
    moment.peak = walk.forward;
    moment.gathered = with_elsewhere(gathered_.in_forward(at(run.begin + i)));
    consider(moment);
    if (walk.gathered_from > 0 && walk.keep != Keep::step) {
      consider(gathering(moment, walk.begins_with));
    }
    moment.instant = Instant::loss;
    moment.peak = walk.loss;
    if (walk.loss.total() > 0) consider(moment);
    moment.activations += run.passing_before;
    moment.peak = walk.loss_forward;
    if (moment.peak.total() > 0) consider(moment);
  }

  /// The values' part of backward: the units behind have done it and wait.
  void visit_inputs(const RunSums& run, std::int64_t i) {
    if (!runs_backward(*run.of)) return;
    const UnitMemory& walk = *run.walk;
    Moment moment = after_units_before(run, i);
    moment.instant = Instant::backward;
    moment.waiting += waiting_ - run.waiting_before - (i + 1) * walk.waiting;
    moment.peak = walk.inputs;
    moment.gathered = with_elsewhere(gathered_.in_backward(at(run.begin + i)));
    consider(moment);
    if (walk.gathered_from > 0 && walk.keep == Keep::none) {
      consider(gathering(moment, walk.ends_with));
    }
  }

  /// The weights' part: the units before are still to do it.
  void visit_weights(const RunSums& run, std::int64_t i) {
    if (!runs_backward(*run.of)) return;
    const UnitMemory& walk = *run.walk;
    Moment moment = running(run, i);
    moment.instant = Instant::backward;
    moment.waiting += run.waiting_before + i * walk.waiting;
    moment.gradients = gradients_in_backward(run, i);
    moment.peak = walk.weights;
    moment.gathered = with_elsewhere(gathered_idle_);
    moment.held_gradients = held_gradients(run, i);
    consider(moment);
    moment.peak = walk.scatter_weights;
    if (moment.peak.total() > 0) consider(moment);
  }

  /// Gradients of weights of the units behind, where the engine holds them for the micro-batch.
  std::int64_t held_gradients(const RunSums& run, std::int64_t i) const {
    if (job_.profile.gradient_hold != GradientHold::micro_batch) return 0;
    return made_ - run.made_before - (i + 1) * run.walk->weight_gradients;
  }

  /// What of a unit that is made again with others was rebuilt, beside what the first of them kept.
  UnitPeak rebuilt(const RunSums& run, std::int64_t i, UnitPeak peak) const {
    const std::int64_t kept = run.of->inside ? 0 : std::min(peak.kept, run.walk->kept);
    peak.rebuilt += run.rebuilt_before + i * run.again->kept + peak.kept - kept;
    peak.kept = kept;
    return peak;
  }

  /// Its second forward, while the gradient of what the last of them leaves waits.
  void visit_second_forward(const RunSums& run, std::int64_t i, Moment moment) {
    moment.peak = rebuilt(run, i, run.again->forward);
    moment.peak.working += run.again->begins_with.working;
    consider(moment);
  }

  void visit_backward(const RunSums& run, std::int64_t i) {
    if (!runs_backward(*run.of)) return;
    const UnitMemory& walk = *run.walk;
    Moment moment = after_units_before(run, i);
    moment.instant = Instant::backward;
    moment.gradients = gradients_in_backward(run, i);
    moment.peak = run.again == nullptr ? walk.backward : rebuilt(run, i, run.again->backward);
    moment.gathered = with_elsewhere(gathered_.in_backward(at(run.begin + i)));
    moment.held_gradients = held_gradients(run, i) + waiting(moment.unit, -1);
    consider(moment);
    if (run.again != nullptr) visit_second_forward(run, i, moment);
    if (walk.gathered_from > 0 && walk.keep == Keep::none) {
      consider(gathering(moment, walk.ends_with));
    }
    if (walk.scatter.total() == 0) return;
    moment.peak = walk.scatter;
    moment.held_gradients = waiting(moment.unit, layout_.units[at(run.of->local)].kind);
    consider(moment);
  }

  /// The moment when the unit's parameters come together from copies of parts.
  static Moment gathering(Moment moment, const UnitPeak& there) {
    moment.peak = there;
    moment.gathered.parts += moment.running->gathered_from;
    return moment;
  }

  /// Gradients of later units that wait for their owners', but for those of kind `joined`.
  std::int64_t waiting(int unit, int joined) const {
    std::int64_t bytes = 0;
    for (const WaitingGradient& one : content_.waiting) {
      if (one.unit > unit && one.owner != joined) bytes += one.bytes;
    }
    return bytes;
  }

  GatheredBytes with_elsewhere(GatheredBytes here) const {
    return {.whole = here.whole + gathered_elsewhere_.whole,
            .parts = here.parts + gathered_elsewhere_.parts};
  }

  /// Whether gradients appear in the course of backward. All of them are there where they rest, or
  /// an earlier micro-batch made them.
  bool gradients_grow() const {
    return job_.profile.gradient_life == GradientLife::growing && layout_.micro_batches == 1;
  }

  std::int64_t gradients_before_backward() const {
    return gradients_grow() ? 0 : content_.rest.device[2];
  }

  std::int64_t gradients_in_backward(const RunSums& run, std::int64_t i) const {
    const std::int64_t all = content_.rest.device[2];
    if (!gradients_grow()) return all;
    return std::min(grown_ - run.grown_before - (i + 1) * run.gradient, all);
  }

  /// Compares one moment with the fullest of its instant so far.
  void consider(const Moment& moment) {
    Moment& best = out_.instants[static_cast<std::size_t>(moment.instant)];
    const std::int64_t total = content_.rest.device[0] + content_.rest.device[1] +
                               moment.gradients + moment.activations + moment.waiting +
                               moment.arrived + moment.peak.total() + moment.gathered.total() +
                               moment.held_gradients + moment.update.total() +
                               content_.engine[static_cast<std::size_t>(moment.instant)];
    if (total <= best.total) return;
    best = moment;
    best.total = total;
  }

  const Layout& layout_;
  const Job& job_;
  const StageContent& content_;
  const UnitFigures& units_;
  std::vector<KnownMoments>& known_;
  std::int64_t ahead_ = 0;
  StageFigures& out_;
  std::size_t active_ = 0;   // the chunk that runs
  MicroBatchesHeld beside_;  // without the micro-batch that runs
  BesideRunning others_;     // what they keep
  InFlight in_flight_;
  std::vector<RunSums> runs_;
  std::int64_t count_ = 0;    // units of the chunk
  std::int64_t grown_ = 0;    // gradients of all its units
  std::int64_t made_ = 0;     // weights' gradients
  std::int64_t waiting_ = 0;  // what it leaves between the parts of backward
  GatheredChunk gathered_{0, false};
  GatheredBytes gathered_idle_;       // of the chunk, while nothing is gathered for use
  GatheredBytes gathered_elsewhere_;  // by the chunks that do not run
};

}  // namespace

void find_instants(const UnitFigures& units, std::vector<KnownMoments>& known, StageFigures& out) {
  StageMemory(units, known, out).visit_instants();
}

}  // namespace placet
