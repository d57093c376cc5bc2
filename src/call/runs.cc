#include "call/runs.h"

#include <sys/resource.h>

#include <algorithm>
#include <map>
#include <utility>

#include "call/checkpoints.h"
#include "call/corpora.h"
#include "derive/derive.h"
#include "report/judged.h"
#include "units/at.h"
#include "units/error.h"

namespace placet {
namespace {

// What a job may be at most to be run as it is, in exact numbers. Its largest tensors have an entry
// for each token and word, and for each pair of tokens of a head.
constexpr double kMostParameters = 4e6;
constexpr double kMostRunTokens = 16384;
constexpr double kMostEntries = 4e6;
// In floating numbers, where products of matrices are a library's: some ten seconds a step on one
// core (45e9 products a second: execute_bench), and memory of a few GB.
constexpr double kMostPlainEntries = 25e7;
constexpr double kMostPlainProducts = 5e11;  // of weights with tokens, there and back
constexpr double kMostPlainNumbers = 5e8;    // of all devices, by what is derived in 2 bytes each
// Derivatives of recurrences: entries of the result by those of the operands, of all samples.
constexpr double kMostSlopes = 4e6;
constexpr std::int64_t kMostRunDevices = 64;

std::int64_t devices_of(const Job& job) {
  std::int64_t devices = 1;
  for (const AxisPlacement& axis : job.placement.axes) devices *= axis.degree;
  return devices;
}

double most_heads(const Model& model) {
  std::int64_t most = 1;
  for (const UnitKind& kind : model.kinds) {
    for (const Operator& op : kind.operators) {
      if (op.kind != OpKind::attention) continue;
      most = std::max(most, kind.values[at(op.inputs.at(0))].dims.back().parts);
    }
  }
  return static_cast<double>(most);
}

/// Entries of a value or parameter for one piece of the channels of a recurrence, without sample
/// and token.
double entries_of_piece(const std::vector<Dim>& dims) {
  double entries = 1;
  for (const Dim& d : dims) {
    if (d.index == Index::sample || d.index == Index::token) continue;
    entries *= static_cast<double>(d.index == Index::state ? d.size / d.parts : d.size);
  }
  return entries;
}

/// Derivatives of one recurrence: of the result of each sample and piece by all its operands.
double slopes_of(const UnitKind& kind, const Operator& op, double samples, double tokens) {
  const std::vector<Dim>& result = kind.values[at(op.outputs.at(0))].dims;
  double operands = 0;
  for (const int v : op.inputs) operands += tokens * entries_of_piece(kind.values[at(v)].dims);
  for (const int p : op.parameters) operands += entries_of_piece(kind.parameters[at(p)].dims);
  const auto pieces = static_cast<double>(result.back().parts);
  return samples * pieces * tokens * entries_of_piece(result) * operands;
}

double most_slopes(const Model& model, double samples, double tokens) {
  double most = 0;
  for (const UnitKind& kind : model.kinds) {
    for (const Operator& op : kind.operators) {
      const bool scans = op.kind == OpKind::scan && op.recurrence != Recurrence::input_gate;
      if (scans) most = std::max(most, slopes_of(kind, op, samples, tokens));
    }
  }
  return most;
}

double most_extent(const Model& model) {
  std::int64_t most = 1;
  for (const UnitKind& kind : model.kinds) {
    for (const Parameter& p : kind.parameters) {
      for (const Dim& d : p.dims) most = std::max(most, d.size);
    }
  }
  return static_cast<double>(most);
}

}  // namespace

ranks::RunLimits limits_of_runs(Arithmetic arithmetic) {
  if (arithmetic == Arithmetic::canonical) return {.elements = 1LL << 24U, .products = 1e10};
  return {.elements = 1LL << 30U, .products = 1e12};
}

bool runs_as_it_is(const Job& job, Arithmetic arithmetic) {
  if (devices_of(job) > kMostRunDevices) return false;
  const auto samples = static_cast<double>(job.batch.global);
  const auto tokens = static_cast<double>(job.batch.sequence);
  if (most_slopes(job.model, samples, tokens) > kMostSlopes) return false;
  const double of_words = samples * tokens * most_extent(job.model);
  const double of_pairs = samples * tokens * tokens * most_heads(job.model);
  if (arithmetic == Arithmetic::canonical) {
    return static_cast<double>(count_parameters(job.model).total) <= kMostParameters &&
           samples * tokens <= kMostRunTokens && std::max(of_words, of_pairs) <= kMostEntries;
  }
  if (std::max(of_words, of_pairs) > kMostPlainEntries) return false;
  constexpr double kPasses = 6;  // a product and a sum, forward and twice backward
  const auto parameters = static_cast<double>(count_parameters(job.model).total);
  if (kPasses * parameters * samples * tokens > kMostPlainProducts) return false;
  const Derivation derivation = derive(job);
  const MemoryClass& memory = fullest(derivation);
  // What the device's runtime and libraries take is no number of the run.
  const auto bytes = static_cast<double>(in_bytes(memory.peak - memory.outside));
  return bytes / 2 * static_cast<double>(devices_of(job)) <= kMostPlainNumbers;
}

namespace {

/// Gated blocks have the activation of the models that made them known, all others that of GPT-2.
bool is_gated(const Model& model) {
  return std::ranges::any_of(model.kinds, [](const UnitKind& kind) {
    return std::ranges::any_of(
        kind.operators, [](const Operator& op) { return op.kind == OpKind::gated_activation; });
  });
}

/// Gradients of a job made small are far below its limit of the norm: this one acts on them.
constexpr double kSmallClip = 0.01;

Meanings meanings_of(const ProgramToRun& found, const JobRequest& job,
                     const std::vector<std::string>& words) {
  Meanings meanings;
  if (job.clip) meanings.clip = *job.clip;
  if (!found.as_it_is) meanings.clip = kSmallClip;
  if (found.job && is_gated(found.job->model)) meanings.activation = Meanings::Activation::silu;
  for (const std::string& text : words) set_meaning(meanings, text);
  return meanings;
}

using BytesByTerm = std::map<std::pair<std::string, std::string>, std::int64_t>;

std::string axes_text(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

/// Derived messages of the device that sends most, as the run counts them.
BytesByTerm derived_messages(const Job& job, const Derivation& derivation) {
  BytesByTerm all;
  for (const CommunicationTerm& term : busiest(derivation).terms) {
    if (term.collective == Collective::host_copy || in_bytes(term.sent) == 0) continue;
    all[{std::string(name_of(term.collective)), axes_text(axis_names(job, term.axes))}] +=
        in_bytes(term.sent);
  }
  return all;
}

void put_messages(RunSheet& sheet, BytesByTerm derived, bool has_derived) {
  std::int64_t all = 0;
  std::int64_t all_derived = 0;
  for (const auto& [key, bytes] : derived) all_derived += bytes;
  for (const SentBytes& sent : sheet.run.sent) {
    if (sent.bytes == 0) continue;
    const auto found = derived.find({sent.collective, axes_text(sent.axes)});
    Beside line{.what = sent.collective + " over " + axes_text(sent.axes), .measured = sent.bytes};
    if (has_derived) line.derived = found == derived.end() ? 0 : found->second;
    if (found != derived.end()) derived.erase(found);
    all += sent.bytes;
    sheet.sent.push_back(std::move(line));
  }
  for (const auto& [key, bytes] : derived) {
    sheet.sent.push_back({.what = key.first + " over " + key.second, .derived = bytes});
  }
  Beside total{.what = "in all", .measured = all};
  if (has_derived) total.derived = all_derived;
  sheet.sent.push_back(std::move(total));
}

/// The job with samples of no size: a program has all of a step's, which rest, and the closed form
/// those of the micro-batches in flight (docs/theory.md §6.10).
Job without_samples(Job job) {
  for (UnitKind& kind : job.model.kinds) {
    std::vector<bool> made(kind.values.size(), false);
    for (const Operator& op : kind.operators) {
      for (const int v : op.outputs) made[at(v)] = true;
    }
    for (std::size_t v = 0; v < kind.values.size(); ++v) {
      if (made[v] || kind.values[v].type != ValueType::int64) continue;
      kind.values[v].dims = {{.size = 0}};
    }
  }
  return job;
}

DerivedBytes bytes_of(const MemoryClass& memory) {
  return {.rest = in_bytes(memory.at_rest[0] + memory.at_rest[1] + memory.at_rest[2]),
          .peak = in_bytes(memory.peak - memory.outside)};
}

void put_memory(RunSheet& sheet, const std::optional<DerivedBytes>& derived) {
  Beside rest{.what = "at rest", .measured = sheet.run.held.rest};
  Beside peak{.what = "peak", .measured = sheet.run.held.peak};
  if (derived) {
    rest.derived = derived->rest;
    peak.derived = derived->peak;
  }
  sheet.held = {rest, peak};
}

}  // namespace

namespace {

/// Faults of ranks go to the run, those of the program stay.
std::vector<RankFault> taken_rank_faults(std::vector<std::string>& faults) {
  std::vector<RankFault> taken;
  std::erase_if(faults, [&](const std::string& text) {
    const std::optional<RankFault> fault = rank_fault_from(text);
    if (fault) taken.push_back(*fault);
    return fault.has_value();
  });
  return taken;
}

/// The flag of what looks on at a run: it sees all ranks as one, in the order of the listing.
/// Empty: nothing does.
std::string looking_flag(const RunRequest& request) {
  if (request.watch) return "--watch";
  return request.times ? "--trace" : "";
}

/// The order of the ranks' queues.
QueueOrder order_of(const RunRequest& request) {
  QueueOrder order{.kind = QueueOrder::Kind::early};
  if (!request.order.empty()) order = queue_order_from(request.order);
  const std::string flag = looking_flag(request);
  if (flag.empty()) return order;
  if (rank_kind_from(request.ranks) != RankKind::in_one_process) {
    refuse(flag, "--ranks " + request.ranks, "looks on at ranks of one process", "--ranks virtual");
  }
  if (!request.order.empty() && order.kind != QueueOrder::Kind::listed) {
    refuse(flag, "--order " + request.order, "looks on at ranks in the order of the listing",
           "--order listed");
  }
  return {.kind = QueueOrder::Kind::listed};
}

/// A rank has a fault of its own only where ranks run by themselves.
void require_ranks_apart(const RunRequest& request, const RunOptions& options) {
  if (options.rank_faults.empty() || options.order.kind != QueueOrder::Kind::listed) return;
  if (const std::string flag = looking_flag(request); !flag.empty()) {
    refuse("--fault", "", "of a rank does not go with " + flag + ", which runs all ranks as one",
           "a fault of the program, or a run without " + flag);
  }
  refuse("--order", "listed", "runs all ranks as one, so that none has a fault of its own",
         "early, late or seeded");
}

/// At most so far, of this process or of one that it made.
std::int64_t resident_bytes() {
  constexpr std::int64_t kUnit = 1024;  // getrusage counts in KiB
  std::int64_t most = 0;
  for (const auto who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage usage{};
    if (getrusage(who, &usage) == 0) most = std::max<std::int64_t>(most, usage.ru_maxrss * kUnit);
  }
  return most;
}

}  // namespace

DerivedBytes derived_bytes(const Job& job) {
  return bytes_of(fullest(derive(without_samples(job))));
}

RanProgram ran_of(const Catalog& catalog, const RunRequest& request, const JobRequest& job) {
  const Arithmetic arithmetic = arithmetic_from(mode_of(request));
  RunOptions options{.steps = request.steps,
                     .arithmetic = arithmetic,
                     .limits = limits_of_runs(arithmetic),
                     .on_step = request.on_step,
                     .rank_kind = rank_kind_from(request.ranks),
                     .order = order_of(request)};
  const auto [words, corpus] = meaning_words_of(request);
  meanings_of({}, job, words);  // words that are wrong are told before any work
  require_place(request);
  ProgramRequest of_program = request.program;
  options.rank_faults = taken_rank_faults(of_program.faults);
  require_ranks_apart(request, options);
  ProgramToRun found = program_to_run(
      catalog, of_program, job, [&](const Job& own) { return runs_as_it_is(own, arithmetic); });
  RanProgram out{.asked = std::move(found.asked), .sheet = {}};
  if (!out.asked.has_step || out.asked.listed_only) return out;
  options.meanings = meanings_of(found, job, words);
  options.meanings.corpus = corpus;
  resume_and_save(request, found.program, options);
  options.times = request.times;
  const bool is_proven = request.program.faults.empty();
  if (request.watch) options.proven = is_proven ? &found.program : &found.without_faults;
  out.sheet.is_watched = request.watch;
  out.sheet.tells_times = request.tells_times;
  out.sheet.judged = out.asked.judged;
  out.sheet.as_it_is = found.as_it_is;
  if (corpus != nullptr) out.sheet.corpus = corpus->name;
  out.sheet.run = run(found.program, options);
  out.sheet.resident_bytes = resident_bytes();
  if (!out.sheet.run.stuck) out.sheet.saved = request.save;
  if (!found.job || !found.as_it_is) {
    put_messages(out.sheet, {}, false);
    put_memory(out.sheet, std::nullopt);
    return out;
  }
  const Job alone = without_samples(*found.job);
  const Derivation derivation = derive(alone);
  put_messages(out.sheet, derived_messages(alone, derivation), true);
  put_memory(out.sheet, bytes_of(fullest(derivation)));
  return out;
}

}  // namespace placet
