#include "simulate/advice.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <string>
#include <utility>

#include "derive/derive.h"
#include "derive/fit.h"

namespace placet {
namespace {

/// Parts of the step below which their remedy is not tried.
constexpr double kWorthTrying = 0.02;

struct Change {
  std::string rule;
  std::string where;
  std::string message;
  std::string cure;
  std::function<void(Job&)> apply;
};

struct Judged {
  double gain = 0;  // of tokens per second
  const Change* change = nullptr;
};

std::string percent(double part) {
  const std::int64_t tenths = std::llround(part * 1000);
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " %";
}

double throughput(const TimeDerivation& time) { return time.tokens / in_seconds(time.step); }

std::set<std::string> broken_rules(const Derivation& derivation) {
  std::set<std::string> rules;
  for (const Finding& finding : derivation.findings) {
    if (finding.severity == Severity::error) rules.insert(finding.rule);
  }
  return rules;
}

class Adviser {
 public:
  Adviser(const Job& job, const TimeDerivation& time, const Simulation& simulated)
      : job_(job), time_(time), simulated_(simulated) {}

  std::vector<Finding> advise(const AdviceChoice& choice) {
    add_axis_order();
    add_bubbles();
    add_kept_gathers();
    add_larger_micro_batch();
    add_less_recomputation();
    add_moved_block();
    return judged(choice);
  }

 private:
  double part(Seconds time) const { return time / time_.step; }

  /// Exposed messages over sets of axes that meet `axes`.
  Seconds exposed_over(AxisMask axes) const {
    Seconds sum;
    for (const TimeTerm& term : time_.terms) {
      if (term.kind == TimeKind::exposed && (term.axes & axes) != 0) sum += term.time;
    }
    return sum;
  }

  Seconds compute_in(std::string_view phase) const {
    Seconds sum;
    for (const TimeTerm& term : time_.terms) {
      if (term.kind == TimeKind::compute && term.phase == phase) sum += term.time;
    }
    return sum;
  }

  /// Tensor axes belong on the fastest links, which the innermost axes have.
  void add_axis_order() {
    const std::vector<AxisPlacement>& axes = job_.placement.axes;
    for (std::size_t a = 0; a + 1 < axes.size(); ++a) {
      const double lost = part(exposed_over(axis_bit(static_cast<int>(a))));
      if (axes[a].how.cut != Cut::tensor || lost < kWorthTrying) continue;
      const std::string name(axes[a].axis.text());
      changes_.push_back({.rule = "axis-order",
                          .where = "axis " + name,
                          .message = "messages over " + name + " take " + percent(lost) +
                                     " of the step, and other axes have faster links",
                          .cure = "write axis " + name + " last",
                          .apply = [a](Job& job) { move_last(job, a); }});
    }
  }

  static void move_last(Job& job, std::size_t a) {
    const auto rotated = [a](auto& list) {
      if (a < list.size())
        std::rotate(list.begin() + static_cast<long>(a), list.begin() + static_cast<long>(a) + 1,
                    list.end());
    };
    rotated(job.placement.axes);
    rotated(job.attention);
  }

  void add_bubbles() {
    const double lost = part(total_of(time_, TimeKind::bubble));
    if (lost < kWorthTrying || simulated_.stages.size() < 2) return;
    const std::string message = "stages wait for each other " + percent(lost) + " of the step";
    if (job_.batch.micro % 2 == 0) {
      const std::int64_t half = job_.batch.micro / 2;
      changes_.push_back({.rule = "few-micro-batches",
                          .where = "micro-batch " + std::to_string(job_.batch.micro),
                          .message = message,
                          .cure = "--micro-batch " + std::to_string(half),
                          .apply = [half](Job& job) { job.batch.micro = half; }});
    }
    const std::int64_t twice = job_.batch.global * 2;
    changes_.push_back(
        {.rule = "few-micro-batches",
         .where = "global batch " + std::to_string(job_.batch.global),
         .message = message + "; more micro-batches fill them",
         .cure = "--global-batch " + std::to_string(twice) + ", if the training allows it",
         .apply = [twice](Job& job) { job.batch.global = twice; }});
  }

  /// Whether an axis gathers parameters again in each micro-batch.
  static bool gathers_each(const AxisPlacement& axis) {
    return axis.how.modes[State::parameters] == Mode::sharded_gather && axis.how.keep != Keep::step;
  }

  void add_kept_gathers() {
    Seconds waited;
    for (const SimulatedStage& stage : simulated_.stages) {
      waited = std::max(waited, stage.of(Doing::gather));
    }
    const std::vector<AxisPlacement>& axes = job_.placement.axes;
    const auto axis = std::ranges::find_if(axes, gathers_each);
    if (part(waited) < kWorthTrying || axis == axes.end()) return;
    const std::string name(axis->axis.text());
    changes_.push_back({.rule = "gathers-repeat",
                        .where = "axis " + name,
                        .message = "parameters are gathered again for every micro-batch; " +
                                   percent(part(waited)) +
                                   " of the step waits for these all-gathers",
                        .cure = "add +keep-step to axis " + name,
                        .apply = [](Job& job) {
                          for (AxisPlacement& own : job.placement.axes) {
                            if (gathers_each(own)) own.how.keep = Keep::step;
                          }
                        }});
  }

  void add_larger_micro_batch() {
    const double lost = part(total_of(time_, TimeKind::launch));
    const double streams = part(total_of(time_, TimeKind::exposed));
    if (std::max(lost, streams) < kWorthTrying) return;
    const std::int64_t twice = job_.batch.micro * 2;
    const std::string message =
        lost > streams ? "the device waits for its host " + percent(lost) + " of the step"
                       : "messages take " + percent(streams) + " of the step";
    changes_.push_back({.rule = "small-micro-batch",
                        .where = "micro-batch " + std::to_string(job_.batch.micro),
                        .message = message,
                        .cure = "--micro-batch " + std::to_string(twice),
                        .apply = [twice](Job& job) { job.batch.micro = twice; }});
  }

  void add_less_recomputation() {
    const double lost = part(compute_in("recomputation"));
    if (lost < kWorthTrying || job_.recompute.kind == Recompute::Kind::none) return;
    changes_.push_back({.rule = "recomputation",
                        .where = "every device",
                        .message = "recomputation costs " + percent(lost) +
                                   " of the step, but the activations would fit in memory",
                        .cure = "--recompute none",
                        .apply = [](Job& job) { job.recompute = {}; }});
  }

  /// Of a pipeline with one chunk per device.
  void add_moved_block() {
    if (simulated_.stages.size() < 2 || job_.schedule.chunks != 1) return;
    const auto axis = std::ranges::find_if(job_.placement.axes, [](const AxisPlacement& own) {
      return own.how.cut == Cut::layer && own.degree > 1;
    });
    const auto stages = static_cast<std::int64_t>(simulated_.stages.size());
    if (axis->degree != stages) return;
    std::vector<std::int64_t> blocks = blocks_per_stage(job_, stages);
    std::size_t longest = 0;
    std::size_t shortest = 0;
    for (std::size_t s = 0; s < simulated_.stages.size(); ++s) {
      if (work(s) > work(longest)) longest = s;
      if (work(s) < work(shortest)) shortest = s;
    }
    if (blocks[longest] < 2 || work(longest) / work(shortest) < 1 + kWorthTrying) return;
    --blocks[longest];
    ++blocks[shortest];
    const auto place = axis - job_.placement.axes.begin();
    changes_.push_back({.rule = "uneven-stages",
                        .where = "stage " + std::to_string(longest),
                        .message = "it computes " + percent(work(longest) / work(shortest) - 1) +
                                   " longer than stage " + std::to_string(shortest) +
                                   ", and the pipeline goes at its pace",
                        .cure = "blocks " + std::string(axis->axis.text()) + "=" +
                                std::to_string(stages) + "[" + listed(blocks) + "]",
                        .apply = [place, blocks](Job& job) {
                          job.placement.axes[static_cast<std::size_t>(place)].shares = blocks;
                        }});
  }

  Seconds work(std::size_t s) const {
    const SimulatedStage& stage = simulated_.stages[s];
    return stage.of(Doing::forward) + stage.of(Doing::recomputation) + stage.of(Doing::backward) +
           stage.of(Doing::weights);
  }

  static std::string listed(const std::vector<std::int64_t>& numbers) {
    std::string text;
    for (const std::int64_t n : numbers) text += (text.empty() ? "" : ",") + std::to_string(n);
    return text;
  }

  /// Throughput gained; none where the changed job breaks something.
  double gain_of(const Change& change, const std::set<std::string>& broken, FitGrade worst) const {
    Job job = job_;
    change.apply(job);
    const Prepared prepared = prepare(job);
    WholeDerivation whole = derive_all(job, prepared);
    if (!whole.derivation.meaningful) return 0;
    judge_reserved(job, prepared, whole.derivation);
    if (whole.derivation.fit > worst) return 0;
    const std::set<std::string> rules = broken_rules(whole.derivation);
    if (!std::ranges::includes(broken, rules)) return 0;
    return throughput(whole.time) / throughput(time_) - 1;
  }

  std::vector<Finding> judged(const AdviceChoice& choice) const {
    const Derivation own = derive(job_);
    const std::set<std::string> broken = broken_rules(own);
    const FitGrade worst = own.fit == FitGrade::tight ? FitGrade::tight : FitGrade::fits;
    std::vector<Judged> worth;
    for (const Change& change : changes_) {
      const double gain = gain_of(change, broken, worst);
      if (gain >= choice.least_gain) worth.push_back({gain, &change});
    }
    std::ranges::stable_sort(worth, std::ranges::greater(), &Judged::gain);
    if (worth.size() > choice.most) worth.resize(choice.most);
    std::vector<Finding> out;
    out.reserve(worth.size());
    for (const Judged& one : worth) {
      out.push_back({.rule = one.change->rule,
                     .severity = Severity::advice,
                     .where = one.change->where,
                     .message = one.change->message,
                     .cure = one.change->cure + ": " + percent(one.gain) + " more tokens/s"});
    }
    return out;
  }

  const Job& job_;
  const TimeDerivation& time_;
  const Simulation& simulated_;
  std::vector<Change> changes_;
};

}  // namespace

std::vector<Finding> advice_on(const Job& job, const TimeDerivation& time,
                               const Simulation& simulated, const AdviceChoice& choice) {
  return Adviser(job, time, simulated).advise(choice);
}

}  // namespace placet
