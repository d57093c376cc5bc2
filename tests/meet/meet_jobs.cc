#include "meet/meet_jobs.h"

#include <algorithm>
#include <numeric>

#include "check/check.h"
#include "derive/derive.h"
#include "lower/lower.h"
#include "meet/apart.h"
#include "program/text.h"
#include "program/walk.h"
#include "schedule/schedule.h"
#include "units/error.h"

namespace placet::testing {
namespace {

/// Programs that execute more instructions are counted, not checked.
constexpr std::int64_t kMostChecked = 5'000;

/// Jobs that part are shown, at most so many.
constexpr std::size_t kMostShown = 5;

std::string_view name_of(Figure figure) {
  switch (figure) {
    case Figure::messages:
      return "messages";
    case Figure::rest:
      return "what rests";
    case Figure::peak:
      return "peaks";
  }
  return "";
}

/// Options without a step program, and moved states, of which other tests ask: parts of a state on
/// the host, gathers ahead.
void drop_options(How& how) {
  how.prefetch.reset();
  how.update.reset();
  for (auto& offload : how.offload) offload.reset();
}

bool is_known(const Override& one) {
  const auto* tensors = std::get_if<TensorClass>(&one.selector);
  return tensors != nullptr && *tensors == TensorClass::experts;
}

/// Whether several devices that work on other samples or tokens divide parameters, or gradients in
/// each micro-batch: what engines change.
bool divides_states(const Job& job) {
  return std::ranges::any_of(job.placement.axes, [](const AxisPlacement& axis) {
    const Modes& modes = axis.how.modes;
    const bool data = axis.how.cut == Cut::batch || axis.how.cut == Cut::sequence;
    const bool parameters =
        modes.parameters == Mode::sharded_gather || modes.parameters == Mode::materialized;
    return axis.degree > 1 && data && (parameters || modes.gradients == Mode::sharded);
  });
}

/// The text of the job's program; without one, why not.
std::string program_text(const Job& job) {
  try {
    return to_text(lower(job));
  } catch (const InputError& error) {
    return error.what();
  }
}

}  // namespace

std::string text_of(const Tallied& tallied) {
  std::string text = std::to_string(tallied.jobs) + " jobs, " + std::to_string(tallied.lowered) +
                     " of them lowered, " + std::to_string(tallied.checked) + " checked";
  for (const auto& [figure, times] : tallied.met) {
    text += "\n" + std::to_string(times) + " meet in " + std::string(name_of(figure));
  }
  for (const auto& [why, times] : tallied.refused) {
    text += "\n" + std::to_string(times) + " not lowered: " + why;
  }
  for (const auto& [why, times] : tallied.apart) {
    text += "\n" + std::to_string(times) + " not compared: " + why;
  }
  for (std::size_t i = 0; i < tallied.parted.size() && i < kMostShown; ++i) {
    text += "\n" + tallied.parted[i];
  }
  return text;
}

std::vector<std::string> dense_models() {
  return {"gpt2",        "llama-3.2-1b", "falcon-7b",    "mistral-7b-v0.1", "gpt-neox-20b",
          "llama-2-70b", "bloom-7b1",    "gemma-2-2b",   "qwen2.5-7b",      "llama-3.1-405b",
          "falcon-40b",  "gpt-j-6b",     "starcoder-15b"};
}

std::vector<std::string> untied_models() {
  return {"mistral-7b-v0.1", "gpt-neox-20b", "llama-2-70b", "qwen2.5-7b",
          "llama-3.1-405b",  "gpt-j-6b",     "llama-2-7b"};
}

std::vector<std::string> expert_models() {
  return {"mixtral-8x7b",     "olmoe-1b-7b",       "dbrx",
          "deepseek-v2-lite", "qwen1.5-moe-a2.7b", "qwen3-30b-a3b"};
}

std::vector<std::string> split_schedules() { return {"zb-h1", "zb-v", "dualpipe", "dualpipe-v"}; }

MeetJobs::MeetJobs(std::uint32_t seed, std::vector<std::string> models,
                   std::vector<std::string> schedules)
    : random_(seed, {.most_axes = 4, .most_devices = 1 << 12, .engines = false}),
      models_(std::move(models)),
      schedules_(std::move(schedules)) {}

/// One layer axis of few devices with one of the schedules, and as many micro-batches as it needs.
void MeetJobs::schedule(Job& job) {
  std::vector<AxisPlacement>& axes = job.placement.axes;
  std::erase_if(axes, [](const AxisPlacement& axis) { return axis.how.cut == Cut::layer; });
  const std::string& word = schedules_[static_cast<std::size_t>(
      random_.pick(0, static_cast<std::int64_t>(schedules_.size()) - 1))];
  AxisPlacement layers{.axis = AxisName("pp"), .degree = random_.pick(2, 6)};
  layers.how.cut = Cut::layer;
  layers.how.modes = {Mode::sharded, Mode::sharded, Mode::sharded, Mode::sharded};
  layers.schedule = RealisationWord{.word = word, .arguments = {}};
  const bool pairs = word.starts_with("dualpipe");
  if (word == "dualpipe") layers.degree += layers.degree % 2;
  axes.insert(axes.begin(), layers);
  job.schedule = schedule_of(random_.strategies(), job.placement);
  const std::int64_t enough = 2 * layers.degree;
  micro_batches_ = pairs ? enough + 2 * random_.pick(0, 3) : random_.pick(1, enough + 3);
}

void MeetJobs::tame(Job& job) {
  for (AxisPlacement& axis : job.placement.axes) {
    drop_options(axis.how);
    std::erase_if(axis.overrides, [](const Override& one) { return !is_known(one); });
    for (Override& one : axis.overrides) drop_options(one.how);
  }
  const auto sequences = std::ranges::count_if(
      job.placement.axes, [](const AxisPlacement& axis) { return axis.how.cut == Cut::sequence; });
  const bool rings = sequences == 1 && random_.pick(0, 1) == 1;
  for (std::size_t a = 0; a < job.placement.axes.size(); ++a) {
    AxisPlacement& axis = job.placement.axes[a];
    if (axis.how.cut != Cut::sequence) continue;
    const bool heads = axis.attention && axis.attention->word == "heads";
    const std::string keys = rings ? "ring" : "gather";
    axis.attention = RealisationWord{.word = heads ? "heads" : keys, .arguments = {}};
  }
  job.attention = attention_of(random_.strategies(), job.placement);
  job.routing.kind = Routing::Kind::balanced;
  // A whole number of micro-batches on every replica, and of samples for every share.
  std::int64_t replicas = 1;
  std::int64_t shares = 1;
  for (const AxisPlacement& axis : job.placement.axes) {
    if (axis.how.cut != Cut::batch && axis.how.cut != Cut::expert) continue;
    replicas *= axis.degree;
    const std::int64_t all =
        std::accumulate(axis.shares.begin(), axis.shares.end(), std::int64_t{0});
    shares *= axis.shares.empty() ? axis.degree : all;
  }
  job.batch.micro *= shares / std::gcd(shares, job.batch.micro * replicas);
  const std::int64_t ways = job.batch.micro * replicas;
  job.batch.global = ways * (schedules_.empty() ? random_.pick(1, 6) : micro_batches_);
}

Tallied MeetJobs::compare(int jobs, const std::vector<Figure>& figures) {
  return compare(jobs, figures, [](Model model) { return model; });
}

Tallied MeetJobs::compare(int jobs, const std::vector<Figure>& figures,
                          const std::function<Model(Model)>& trained) {
  Tallied out;
  for (int i = 0; i < jobs; ++i) {
    Job job;
    job.model = trained(random_.model(models_[static_cast<std::size_t>(i) % models_.size()]));
    random_.place(job);
    if (!schedules_.empty()) schedule(job);
    tame(job);
    if (facts_ && !divides_states(job)) continue;
    const std::string plain = facts_ ? program_text(job) : "";
    if (facts_) facts_(job.profile);
    const int before = out.lowered;
    meet(job, figures, out);
    if (facts_ && out.lowered > before && program_text(job) != plain) ++out.changed;
  }
  return out;
}

namespace {

/// What the checker has against the program; nothing, and not asked, if it runs long.
std::string verdict_on(const Program& program, Tallied& out) {
  std::int64_t instructions = 0;
  for (const DeviceClass& c : program.classes) {
    for_each_instruction(program, c.body, {},
                         [&](const Instruction&, const Arguments&) { ++instructions; });
  }
  if (instructions > kMostChecked) return "";
  ++out.checked;
  const Verdict verdict = check(program);
  if (verdict.equivalent) return "";
  const CheckFinding& first = verdict.findings.front();
  return "\n  not equivalent: " + first.tensor + " at " + first.at + ": " + first.difference;
}

}  // namespace

void MeetJobs::meet(const Job& job, const std::vector<Figure>& figures, Tallied& out) {
  const Derivation derivation = derive(job);
  const bool broken = std::ranges::any_of(
      derivation.findings, [](const Finding& f) { return f.severity == Severity::error; });
  if (broken) return;
  ++out.jobs;
  if (const char* why = unseen(job)) {
    ++out.refused[why];
    return;
  }
  std::vector<Difference> all;
  Program program;
  try {
    program = lower(job);
    all = differences(job, derivation, program);
  } catch (const InputError& error) {
    ++out.refused[error.what()];
    return;
  } catch (const std::exception& error) {
    out.parted.push_back(random_.describe(job) + "\n  " + error.what());
    return;
  }
  ++out.lowered;
  std::string text = verdict_on(program, out);
  for (const Figure figure : {Figure::messages, Figure::rest, Figure::peak}) {
    if (const char* why = apart(job, figure)) {
      ++out.apart[why];
      continue;
    }
    const bool parts = std::ranges::find(all, figure, &Difference::figure) != all.end();
    if (!parts) ++out.met[figure];
    if (!parts || std::ranges::find(figures, figure) == figures.end()) continue;
    for (const Difference& one : all) {
      if (one.figure == figure) text += "\n  " + text_of(one);
    }
  }
  if (!text.empty()) out.parted.push_back(random_.describe(job) + text);
}

}  // namespace placet::testing
