#include "call/plans.h"

#include <fmt/format.h>

#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <system_error>
#include <type_traits>
#include <utility>

#include "call/plan_constraints.h"
#include "call/plan_contradictions.h"
#include "call/plan_fix.h"
#include "call/plan_terms.h"
#include "catalog/choices_catalog.h"
#include "catalog/cluster_catalog.h"
#include "catalog/meant.h"
#include "catalog/model_catalog.h"
#include "catalog/strategy_catalog.h"
#include "derive/fit.h"
#include "placement/grammar.h"
#include "search/front.h"
#include "units/error.h"

namespace placet {
namespace {

using Clock = std::chrono::steady_clock;

/// Judging of a printed plan begins within so long; what is left after it says so. A plan takes a
/// tenth of a second to one second, so this is for machines that do much else: what is printed is
/// not to depend on the time that it took.
constexpr double kProofSeconds = 60;
/// Longer ones are not begun: a judgement does not stop half way.
constexpr std::int64_t kMostPasses = 1 << 16;
/// Far above any batch in use: each divisor of the batch may be a micro-batch, and a step of many
/// takes long to explain.
constexpr std::int64_t kMostPlannedSamples = 1'000'000;

double since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void check_call(const PlanRequest& call, const JobRequest& request) {
  if (request.placement) {
    throw InputError({.where = "--placement",
                      .value = *request.placement,
                      .problem = "is what a plan is to find",
                      .allowed = "--fix \"tp=8\" for axes that are fixed"});
  }
  if (!call.max_memory || (*call.max_memory > 0 && *call.max_memory <= 1)) return;
  throw InputError({.where = "--max-memory",
                    .value = fmt::format("{:g}", *call.max_memory),
                    .problem = "is no part of a device's memory",
                    .allowed = "above 0, at most 1"});
}

/// What the flags of a job settle.
void settle(const JobRequest& request, const Job& base, Choices& choices,
            PlanConstraints& constraints) {
  constraints.micro_batch = request.micro_batch;
  if (!request.recompute) return;
  choices.recompute = {{.text = *request.recompute, .recompute = base.recompute}};
}

std::string shell_word(const std::string& word) {
  return word.find_first_of(" *?[]$&;|<>()") == std::string::npos ? word : '"' + word + '"';
}

/// The part of each device's memory that plans may fill.
double memory_fraction(const PlanRequest& call) {
  return call.max_memory.value_or(call.allow_tight ? 1 : 1 - kFitMargin);
}

/// The flags that say the job again, what was assumed of it included.
std::string command_of(const JobFlags& flags, const JobRequest& request, const Job& base) {
  std::string text = is_configuration(flags.model) ? "config.json" : shell_word(flags.model);
  const auto add = [&](const char* flag, const std::string& value) {
    if (!value.empty()) text += (text.empty() ? "" : " ") + (flag + (' ' + shell_word(value)));
  };
  add("--job", flags.job_file);
  for (const std::string& source : flags.from) add("--from", source);
  add("--dialect", flags.dialect);
  add("--world-size", flags.world);
  for (const std::string& number : flags.set) add("--set", number);
  add("--cluster", flags.cluster);
  add("--seq", request.sequence ? flags.sequence : std::to_string(base.batch.sequence));
  add("--global-batch",
      request.global_batch ? flags.global_batch : std::to_string(base.batch.global));
  add("--precision", flags.precision);
  add("--optimizer", flags.optimizer);
  add("--lora", flags.lora);
  add("--clip", flags.clip);
  add("--routing", flags.routing);
  add("--balance-loss", flags.balance_loss);
  add("--loss", flags.loss);
  add("--engine", flags.engine);
  for (const std::string& glob : flags.freeze) add("--freeze", glob);
  for (const std::string& key : flags.ignore_keys) add("--ignore-key", key);
  return text;
}

/// As flags, whether they or a job file say them.
std::string constraints_text(const PlanRequest& call, const JobRequest& request) {
  std::string text;
  const auto add = [&](const char* flag, const std::string& value) {
    if (!value.empty()) text += (text.empty() ? "" : " ") + (flag + (' ' + value));
  };
  add("--fix", call.fix);
  add("--require", call.require);
  if (request.micro_batch) add("--micro-batch", std::to_string(*request.micro_batch));
  add("--recompute", request.recompute.value_or(""));
  if (call.max_memory) add("--max-memory", fmt::format("{:g}", *call.max_memory));
  if (call.allow_tight) text += text.empty() ? "--allow-tight" : " --allow-tight";
  return text;
}

SaidWords said_words(const JobRequest& request) {
  return {.precision = request.precision,
          .lora = request.lora,
          .loss = request.loss,
          .routing = request.routing,
          .balance_loss = request.balance_loss,
          .clip = request.clip,
          .freeze = request.freeze,
          .ignore_keys = request.ignore_keys};
}

void check_prices(const Job& base) {
  for (const DeviceGroup& group : base.cluster->groups) {
    if (group.device.price_per_hour > 0) continue;
    throw InputError({.where = "--goal",
                      .value = "cost",
                      .problem = "needs a price, and " + group.device.name + " has none",
                      .allowed = "--price " + group.device.name +
                                 "=USD_PER_HOUR, a device file with price_usd_per_hour, or the "
                                 "goals time and memory"});
  }
}

/// Judges plans while there is time.
std::vector<PlanProof> proofs_of(const PlanSpace& space, const PlanOptions& options,
                                 const std::vector<Plan>& plans) {
  const Clock::time_point start = Clock::now();
  return prove_all(space, plans, kMostPasses,
                   [&] { return !options.stopped() && since(start) <= kProofSeconds; });
}

/// Does the work, and returns what it took.
template <class Work>
double timed(Work work) {
  const Clock::time_point start = Clock::now();
  work();
  return since(start);
}

void explain(const PlanSpace& space, const Vocabulary& vocabulary, const PlanOptions& options,
             PlanSheet& sheet) {
  if (sheet.plans.empty()) {
    if (!sheet.counts.exact) return;
    sheet.shortage = shortage_of(space, options);
    const PlanShortage& shortage = *sheet.shortage;
    if (shortage.least || !shortage.hindrance.findings.empty()) {
      const Plan& nearest = shortage.least ? shortage.least->plan : shortage.hindrance.plan;
      sheet.shortage_placement = placement_text(space, vocabulary, nearest);
    }
    return;
  }
  PlanLine& best = sheet.plans.front();
  best.neighbours =
      neighbour_lines(space, vocabulary, best, neighbours_of(space, best.found, options));
  if (sheet.counts.exact) sheet.margins = margins_of(space, best.found, options);
}

/// Work in a thread of its own; where none is to be had, when it is asked for.
template <class Work>
std::future<std::invoke_result_t<Work>> beside(Work work) {
  try {
    return std::async(std::launch::async, work);
  } catch (const std::system_error&) {
    return std::async(std::launch::deferred, work);
  }
}

void explain_unproven(const PlanSpace& space, const Vocabulary& vocabulary,
                      const PlanOptions& options, PlanSheet& sheet) {
  sheet.seconds.explanation = timed([&] { explain(space, vocabulary, options, sheet); });
  for (PlanLine& line : sheet.plans) line.proof.reason = "proofs were not asked for";
}

/// The two, beside each other: a proof is long, and there are fewer of them than processors.
void prove_and_explain(const PlanSpace& space, const Vocabulary& vocabulary,
                       const PlanOptions& options, PlanSheet& sheet) {
  std::vector<Plan> plans;
  plans.reserve(sheet.plans.size());
  for (const PlanLine& line : sheet.plans) plans.push_back(line.found.plan);
  std::vector<PlanProof> proven;
  auto proofs = beside([&] { return timed([&] { proven = proofs_of(space, options, plans); }); });
  sheet.seconds.explanation = timed([&] { explain(space, vocabulary, options, sheet); });
  sheet.seconds.proofs = proofs.get();
  for (std::size_t i = 0; i < proven.size(); ++i) sheet.plans[i].proof = std::move(proven[i]);
}

/// The best plan of each number of devices asked for.
std::vector<ScaleLine> scale_lines(const PlanRequest& call, const Catalog& catalog,
                                   const PlanSpace& asked, const Vocabulary& vocabulary,
                                   const PlanOptions& options) {
  std::vector<ScaleLine> out;
  for (const std::int64_t devices : read_scale(call.scale)) {
    Job job = asked.base();
    job.cluster = scaled_cluster(catalog, asked.base().cluster->name, devices);
    set_prices(call.price, *job.cluster);
    const PlanSpace space(job, asked.choices(), asked.constraints());
    PlanOptions one = options;
    one.top = 1;
    one.costs = std::make_shared<PlanCosts>(space);
    const PlanResult result = find_plans(space, one);
    ScaleLine& line = out.emplace_back(ScaleLine{.devices = devices,
                                                 .plan = std::nullopt,
                                                 .exact = result.counts.exact,
                                                 .empty = result.counts.space == 0});
    if (!result.plans.empty()) line.plan = plan_line(space, vocabulary, result.plans.front());
  }
  return out;
}

/// Where the price of a kind of devices comes from: from the user, or its file.
std::string price_source(const Catalog& catalog, const std::string& said, const Device& device) {
  if (!said.empty()) return "--price";
  for (const Fact& fact : load_device(catalog, device.name, "--cluster").facts) {
    if (fact.key == "price_usd_per_hour") return fact.source;
  }
  return "--price";
}

/// "h100-sxm $4.916 an hour (datasheet: ..., 2024-12)", of each kind with a price.
std::vector<std::string> price_words_of(const Catalog& catalog, const std::string& said,
                                        const Cluster& cluster) {
  std::vector<std::string> words;
  for (const DeviceGroup& group : cluster.groups) {
    const Device& device = group.device;
    if (device.price_per_hour <= 0) continue;
    std::string line = fmt::format("{} ${:g} an hour ({})", device.name, device.price_per_hour,
                                   price_source(catalog, said, device));
    if (std::ranges::find(words, line) == words.end()) words.push_back(std::move(line));
  }
  return words;
}

/// "stages 0 to 3 (21 blocks)"; without counts where nothing is said of them.
std::string stages_words(const std::vector<std::int64_t>& blocks, std::int64_t first,
                         std::int64_t last) {
  std::string which =
      first == last ? fmt::format("stage {}", first) : fmt::format("stages {} to {}", first, last);
  if (blocks.empty()) return which;
  std::int64_t sum = 0;
  for (std::int64_t s = first; s <= last; ++s) sum += blocks[static_cast<std::size_t>(s)];
  return which + fmt::format(" ({} block{})", sum, sum == 1 ? "" : "s");
}

/// Which stages of a pipeline along the outermost axis stand on which kind of devices.
std::string stands_words(const Cluster& cluster, const Placement& placement) {
  const AxisPlacement& outer = placement.axes.front();
  std::string alike =
      "no pipeline lies across the kinds of devices: each does the same work, the faster ones wait";
  if (outer.how.cut != Cut::layer || outer.degree < 2) return alike;
  // With several virtual stages per device the schedule deals them.
  const bool one_each = std::ssize(outer.shares) == outer.degree;
  const std::vector<std::int64_t> blocks = one_each ? outer.shares : std::vector<std::int64_t>();
  const std::int64_t width = devices_of(cluster) / outer.degree;
  std::string words;
  std::int64_t begin = 0;
  for (const DeviceGroup& group : cluster.groups) {
    const std::int64_t end = begin + group.count;
    words += (words.empty() ? "" : ", ") + stages_words(blocks, begin / width, (end - 1) / width) +
             " on " + std::to_string(group.count) + " " + group.device.name;
    begin = end;
  }
  return words;
}

/// Of a mixed cluster: where what stands, and the best plan of each kind of devices alone.
void add_kinds(const PlanSpace& asked, const Vocabulary& vocabulary, const PlanOptions& options,
               PlanSheet& sheet) {
  const Cluster& cluster = *asked.base().cluster;
  if (cluster.groups.size() < 2) return;
  sheet.stands = stands_words(cluster, parse_placement(sheet.plans.front().placement, vocabulary));
  for (const DeviceGroup& group : cluster.groups) {
    Job job = asked.base();
    job.cluster = Cluster{.name = std::to_string(group.count) + "x" + group.device.name,
                          .groups = {group},
                          .between_groups = {}};
    const PlanSpace space(job, asked.choices(), asked.constraints());
    PlanOptions one = options;
    one.top = 1;
    one.costs = std::make_shared<PlanCosts>(space);
    const PlanResult result = find_plans(space, one);
    KindAlone& kind = sheet.alone.emplace_back(
        KindAlone{.device = group.device.name, .devices = group.count, .plan = std::nullopt});
    if (!result.plans.empty()) kind.plan = plan_line(space, vocabulary, result.plans.front());
  }
}

void add_front(const PlanSpace& space, const Vocabulary& vocabulary, const PlanOptions& options,
               const FrontRequest& request, PlanSheet& sheet) {
  if (request.most == 0 || sheet.plans.empty() || !sheet.counts.exact) return;
  const PlanFront front = front_of(space, sheet.plans.front().found, options, request);
  sheet.front_whole = front.whole;
  sheet.front_step = request.step;
  for (const FoundPlan& found : front.plans) {
    sheet.front.push_back(plan_line(space, vocabulary, found));
  }
}

/// Flags that are wrong are to be found before anything is searched.
void check_terms(const PlanRequest& call, const Catalog& catalog, const Job& base) {
  read_tokens(call.tokens);
  for (const std::int64_t devices : read_scale(call.scale)) {
    scaled_cluster(catalog, base.cluster->name, devices);
  }
  if (call.front == 0 && call.front_step) {
    throw InputError({.where = "--front-step",
                      .value = fmt::format("{:g}", *call.front_step),
                      .problem = "is the step of a front that nobody asks for",
                      .allowed = "--front N with it"});
  }
  if (call.front == 0 || call.goal != "memory") return;
  throw InputError({.where = "--front",
                    .value = std::to_string(call.front),
                    .problem = "begins at the fastest plan",
                    .allowed = "--goal time or cost with it"});
}

/// Without one, no placement has a step of them.
void require_whole_micro_batches(const JobRequest& request, const Job& base) {
  const std::int64_t micro = request.micro_batch.value_or(1);
  if (base.batch.global % micro == 0) return;
  throw InputError({.where = "--micro-batch",
                    .value = std::to_string(micro),
                    .problem = "does not divide the global batch",
                    .allowed = "a divisor of " + std::to_string(base.batch.global)});
}

/// A call as it was read, and when that began.
struct AskedPlan {
  const PlanRequest& call;
  const JobRequest& request;
  const PlanWatch& watch;
  Clock::time_point start;
};

PlanSheet planned(const AskedPlan& asked, const Catalog& catalog, const Vocabulary& vocabulary,
                  const PlanSpace& space) {
  const auto& [call, request, watch, start] = asked;
  const double reading = since(start);
  PlanOptions options{.goal = call.goal == "memory" ? PlanGoal::memory : PlanGoal::time,
                      .top = call.top,
                      .costs = std::make_shared<PlanCosts>(space)};
  check_constraints(space, options.costs, constraints_text(call, request));
  options.stopped = watch.stopped;
  PlanSheet sheet{.base = &space.base(),
                  .choices = &space.choices(),
                  .said = said_words(request),
                  .goal = call.goal,
                  .memory_fraction = memory_fraction(call),
                  .max_memory_given = call.max_memory.has_value(),
                  .constraints = constraints_text(call, request),
                  .command = command_of(call.flags, request, space.base()),
                  .train_tokens = read_tokens(call.tokens)};
  sheet.goodput = call.goodput.value_or(1);
  sheet.similar = similar_runs(catalog, space.base());
  sheet.prices = price_words_of(catalog, call.price, *space.base().cluster);
  options.progress = watch.progress;
  PlanResult result;
  sheet.seconds = {.reading = reading,
                   .search = timed([&] { result = find_plans(space, options); })};
  sheet.counts = result.counts;
  sheet.plans = plan_lines(space, vocabulary, result);
  options.progress = {};
  (call.proofs ? prove_and_explain : explain_unproven)(space, vocabulary, options, sheet);
  const FrontRequest front{.most = call.front,
                           .step = call.front_step.value_or(FrontRequest{}.step)};
  sheet.seconds.front = timed([&] { add_front(space, vocabulary, options, front, sheet); });
  sheet.seconds.scale = timed([&] {
    if (!sheet.counts.exact) return;
    sheet.scale = scale_lines(call, catalog, space, vocabulary, options);
  });
  if (sheet.counts.exact && !sheet.plans.empty()) add_kinds(space, vocabulary, options, sheet);
  sheet.seconds.total = since(start);
  return sheet;
}

/// With micro-batches of one sample, and few devices, a step has about as many of them: plans are
/// timed one by one, and `simulate` takes no more.
void require_few_samples(const Job& base) {
  if (base.batch.global <= kMostPlannedSamples) return;
  refuse("--global-batch", std::to_string(base.batch.global), "is more than plans are compared for",
         "1 to " + std::to_string(kMostPlannedSamples) + " samples per step");
}

/// The plans that hold most at once, one micro-batch of all samples, have figures that are too
/// large.
[[noreturn]] void refuse_samples(const Job& base, const OverflowError& error) {
  refuse("--global-batch", std::to_string(base.batch.global),
         "with " + std::to_string(base.batch.sequence) + " tokens each gives some plan " +
             error.fault().where + " beyond 2^63",
         "fewer samples or a shorter --seq");
}

}  // namespace

PlannedJob planned_of(const Catalog& catalog, PlanRequest call, const JobRequest& asked,
                      const PlanWatch& watch) {
  const Clock::time_point start = Clock::now();
  const JobRequest said = with_shapes(asked);
  check_call(call, said);
  Job base = load_unplaced_job(catalog, said);
  std::vector<std::string> noted;  // the job has the notes already
  const JobRequest request = meant_words(catalog, said, noted);
  check_terms(call, catalog, base);
  require_shapes(base, "time");
  require_whole_micro_batches(request, base);
  require_few_samples(base);
  set_prices(call.price, *base.cluster);
  if (call.goal == "cost") check_prices(base);
  const StrategyCatalog strategies = load_strategies(catalog);
  Choices choices = load_choices(catalog, strategies, "all");
  const std::string fix = meant_fix(catalog, choices, strategies.vocabulary, call.fix);
  if (fix != call.fix) {
    base.model.notes.push_back("--fix: '" + call.fix + "' is taken as " + fix);
    call.fix = fix;
  }
  PlanConstraints constraints =
      read_constraints(choices, strategies.vocabulary, call.fix, call.require);
  constraints.memory_fraction = memory_fraction(call);
  constraints.allows_tight = call.allow_tight;
  settle(request, base, choices, constraints);
  PlannedJob out{.base = std::make_shared<const Job>(std::move(base)),
                 .choices = std::make_shared<const Choices>(std::move(choices)),
                 .sheet = {}};
  const PlanSpace space(*out.base, *out.choices, constraints);
  try {
    out.sheet = planned({.call = call, .request = request, .watch = watch, .start = start}, catalog,
                        strategies.vocabulary, space);
    return out;
  } catch (const OverflowError& error) {
    refuse_samples(*out.base, error);
  }
}

JobRequest request_of_plan(JobRequest said, const PlanSheet& sheet, const PlanLine& plan) {
  said.placement = plan.placement;
  said.micro_batch = plan.found.plan.micro_batch;
  said.recompute = plan.recompute;
  said.sequence = sheet.base->batch.sequence;
  said.global_batch = sheet.base->batch.global;
  return said;
}

}  // namespace placet
