// Faults applied: classes are split, then calls and loops opened up as far as a fault concerns some
// of their rounds only.
#include <algorithm>
#include <functional>
#include <unordered_set>

#include "program/fault_parts.h"
#include "program/text.h"
#include "program/text_names.h"
#include "units/error.h"

namespace placet {
namespace {

/// A place in the text that a fault matches.
struct Site {
  std::string body;
  const Instruction* instruction = nullptr;
  const std::vector<Step>* steps = nullptr;  // of which it is one
  std::size_t at = 0;
};

/// Finds sites in the order of execution.
class Search {
 public:
  Search(const Program& program, const Fault& fault, const std::vector<bool>& chosen)
      : p_(program), fault_(fault), tables_(tables_of(program)), chosen_(chosen) {}

  void run() {
    for (std::size_t c = 0; c < p_.classes.size(); ++c) {
      if (chosen_[c]) walk(p_.classes[c].body, {}, "class " + p_.classes[c].name);
    }
    if (!fault_.nth) return;
    const auto nth = static_cast<std::size_t>(*fault_.nth);
    if (nth > sites_.size()) {
      sites_.clear();
    } else {
      sites_ = {sites_[nth - 1]};
    }
    chosen_sites_.clear();
    for (const Site& site : sites_) chosen_sites_.insert(site.instruction);
  }

  const std::vector<Site>& sites() const { return sites_; }
  bool is_site(const Instruction* i) const { return chosen_sites_.contains(i); }
  bool matches(const Instruction& i, const Arguments& a) const {
    return fits(p_, tables_, fault_, i, a);
  }
  /// Whether some execution of it is not concerned.
  bool is_restricted(const Instruction* i) const { return missed_.contains(i); }

 private:
  void walk(const std::vector<Step>& body, const Arguments& a, const std::string& where) {
    for (std::size_t k = 0; k < body.size(); ++k) {
      if (const auto* i = std::get_if<Instruction>(&body[k].what)) {
        visit({.body = where, .instruction = i, .steps = &body, .at = k}, a);
      } else if (const auto* call = std::get_if<Call>(&body[k].what)) {
        const Procedure& p = p_.procedures[as_index(call->procedure)];
        walk(p.body,
             {.unit = value_of(call->unit, a), .micro_batch = value_of(call->micro_batch, a)},
             "procedure " + p.name);
      } else if (const auto* loop = std::get_if<Loop>(&body[k].what)) {
        walk_loop(*loop, a, where);
      }
    }
  }

  void walk_loop(const Loop& loop, const Arguments& a, const std::string& where) {
    const std::int64_t by = loop.last < loop.first ? -1 : 1;
    for (std::int64_t v = loop.first; v != loop.last + by; v += by) {
      Arguments inner = a;
      (loop.variable == IndexTerm::Variable::unit ? inner.unit : inner.micro_batch) = v;
      walk(loop.body, inner, where);
    }
  }

  void visit(Site site, const Arguments& a) {
    const Instruction* i = site.instruction;
    if (senseless_.contains(i)) return;
    if (!fits(p_, tables_, fault_, *i, a)) {
      missed_.insert(i);
      return;
    }
    if (chosen_sites_.contains(i)) return;
    if (!changes_for(p_, fault_, *site.steps, site.at)) {
      senseless_.insert(i);
      return;
    }
    chosen_sites_.insert(i);
    sites_.push_back(std::move(site));
  }

  const Program& p_;
  const Fault& fault_;
  FaultTables tables_;
  const std::vector<bool>& chosen_;
  std::vector<Site> sites_;
  std::unordered_set<const Instruction*> chosen_sites_;
  std::unordered_set<const Instruction*> missed_;
  std::unordered_set<const Instruction*> senseless_;
};

/// Values of the variables where they are known.
struct Known {
  std::optional<std::int64_t> unit;
  std::optional<std::int64_t> micro_batch;

  friend auto operator<=>(const Known&, const Known&) = default;
};

std::optional<std::int64_t> known_value(const IndexTerm& term, const Known& known) {
  if (term.variable == IndexTerm::Variable::none) return term.offset;
  const auto& of = term.variable == IndexTerm::Variable::unit ? known.unit : known.micro_batch;
  if (!of) return std::nullopt;
  return *of + term.offset;
}

/// Writes the bodies of chosen classes anew.
class Rewriter {
 public:
  Rewriter(const Program& program, const Fault& fault, const Search& search)
      : p_(program), fault_(fault), search_(search), out_(program) {
    for (const Site& site : search.sites()) {
      if (search.is_restricted(site.instruction)) restricted_ = true;
    }
  }

  Program run(const std::vector<bool>& chosen) {
    for (std::size_t c = 0; c < p_.classes.size(); ++c) {
      if (!chosen[c]) continue;
      bool changes = false;
      std::vector<Step> body = rewritten(p_.classes[c].body, {}, changes);
      if (changes) out_.classes[c].body = std::move(body);
    }
    return std::move(out_);
  }

 private:
  std::vector<Step> rewritten(const std::vector<Step>& body, const Known& known, bool& changes) {
    std::vector<Change> all;
    std::vector<Step> inner = body;
    std::vector<std::vector<Step>> opened(body.size());
    for (std::size_t k = 0; k < body.size(); ++k) {
      if (const auto* i = std::get_if<Instruction>(&body[k].what)) {
        if (!concerns(*i, known)) continue;
        for (Change& c : required_changes(body, k)) all.push_back(filled(std::move(c)));
      } else if (const auto* call = std::get_if<Call>(&body[k].what)) {
        changes = call_rewritten(*call, known, inner[k]) || changes;
      } else if (const auto* loop = std::get_if<Loop>(&body[k].what)) {
        changes = loop_rewritten(*loop, known, opened[k]) || changes;
      }
    }
    changes = changes || !all.empty();
    return spliced(changed_steps(inner, all), opened);
  }

  /// Steps after the changes; each keeps the number of the step that it was.
  std::vector<std::pair<Step, std::size_t>> changed_steps(const std::vector<Step>& body,
                                                          const std::vector<Change>& all) const {
    std::vector<std::pair<Step, std::size_t>> out;
    std::vector<std::vector<Change>> by_step(body.size());
    for (const Change& c : all) by_step[c.at].push_back(c);
    for (std::size_t k = 0; k < body.size(); ++k) {
      if (by_step[k].empty()) {
        out.emplace_back(body[k], k);
        continue;
      }
      for (Change& c : by_step[k]) c.at = 0;
      for (Step& step : changed({body[k]}, by_step[k], fault_.step)) {
        out.emplace_back(std::move(step), k);
      }
    }
    return out;
  }

  static std::vector<Step> spliced(std::vector<std::pair<Step, std::size_t>>&& steps,
                                   std::vector<std::vector<Step>>& opened) {
    std::vector<Step> out;
    for (auto& [step, number] : steps) {
      const bool is_loop = std::holds_alternative<Loop>(step.what);
      if (!is_loop || opened[number].empty()) {
        out.push_back(std::move(step));
        continue;
      }
      for (Step& part : opened[number]) out.push_back(std::move(part));
    }
    return out;
  }

  std::vector<Change> required_changes(const std::vector<Step>& body, std::size_t at) const {
    auto changes = changes_for(p_, fault_, body, at);
    ensure(changes.has_value(), "a fault makes sense for what it matches");
    return std::move(*changes);
  }

  bool concerns(const Instruction& i, const Known& known) const {
    if (!search_.is_site(&i)) return false;
    if (!search_.is_restricted(&i)) return true;
    return search_.matches(
        i, {.unit = known.unit.value_or(0), .micro_batch = known.micro_batch.value_or(0)});
  }

  Change filled(Change change) {
    if (change.kernel) change.what.kernel = number_of(std::move(*change.kernel));
    change.kernel.reset();
    return change;
  }

  /// The kernel's number in the program, which it joins if it is new.
  int number_of(Kernel kernel) {
    const std::string name = kernel.name;
    for (int k = 0;; ++k) {
      kernel.name = k == 0 ? name : name + "." + std::to_string(k - 1);
      const auto found = std::ranges::find(out_.kernels, kernel.name, &Kernel::name);
      if (found == out_.kernels.end()) break;
      if (*found == kernel) return static_cast<int>(found - out_.kernels.begin());
    }
    out_.kernels.push_back(std::move(kernel));
    return static_cast<int>(out_.kernels.size()) - 1;
  }

  bool call_rewritten(const Call& call, const Known& known, Step& step) {
    const Known inner = restricted_ ? Known{.unit = known_value(call.unit, known),
                                            .micro_batch = known_value(call.micro_batch, known)}
                                    : Known{};
    const auto [found, is_new] = clones_.try_emplace({call.procedure, inner}, call.procedure);
    if (is_new) {
      bool changes = false;
      const Procedure& procedure = p_.procedures[as_index(call.procedure)];
      std::vector<Step> body = rewritten(procedure.body, inner, changes);
      if (changes) {
        const int number = static_cast<int>(out_.procedures.size());
        out_.procedures.push_back({.name = unused_name(procedure.name), .body = std::move(body)});
        clones_[{call.procedure, inner}] = number;
      }
    }
    const int number = clones_.at({call.procedure, inner});
    if (number == call.procedure) return false;
    std::get<Call>(step.what).procedure = number;
    return true;
  }

  std::string unused_name(const std::string& name) const {
    for (int k = 1;; ++k) {
      std::string candidate = name + ".changed" + (k == 1 ? "" : "." + std::to_string(k));
      if (std::ranges::find(out_.procedures, candidate, &Procedure::name) == out_.procedures.end())
        return candidate;
    }
  }

  /// A loop as one or several: rounds that the fault does not concern stay together.
  bool loop_rewritten(const Loop& loop, const Known& known, std::vector<Step>& out) {
    if (!restricted_) {
      bool changes = false;
      Loop whole = loop;
      whole.body = rewritten(loop.body, known, changes);
      if (changes) out.push_back({std::move(whole)});
      return changes;
    }
    bool any = false;
    const std::int64_t by = loop.last < loop.first ? -1 : 1;
    for (std::int64_t v = loop.first; v != loop.last + by; v += by) {
      Known inner = known;
      (loop.variable == IndexTerm::Variable::unit ? inner.unit : inner.micro_batch) = v;
      bool changes = false;
      Loop round{.variable = loop.variable, .first = v, .last = v, .body = {}};
      round.body = rewritten(loop.body, inner, changes);
      any = any || changes;
      auto* before = out.empty() ? nullptr : std::get_if<Loop>(&out.back().what);
      if (before != nullptr && before->body == round.body) {
        before->last = v;
      } else {
        out.push_back({std::move(round)});
      }
    }
    if (!any) out.clear();
    return any;
  }

  const Program& p_;
  const Fault& fault_;
  const Search& search_;
  Program out_;
  bool restricted_ = false;
  std::map<std::pair<int, Known>, int> clones_;
};

/// That the ranks of a fault are the program's.
void require_known_ranks(const Program& program, const Fault& fault) {
  std::int64_t devices = 1;
  for (std::size_t a = 0; a + 1 < program.axes.size(); ++a) {
    const ProgramAxis& axis = program.axes[a];
    devices *= axis.degree;
    const auto named = fault.rank.coordinates.find(axis.name);
    if (named == fault.rank.coordinates.end() || named->second < axis.degree) continue;
    throw InputError({.where = "--fault \"" + fault.text + "\"",
                      .value = std::to_string(named->second),
                      .problem = "is no coordinate along " + axis.name,
                      .allowed = "from 0 to " + std::to_string(axis.degree - 1)});
  }
  // A range may reach beyond: the small program of a job has fewer ranks.
  const std::optional<NumberRange>& ranks = fault.rank.ranks;
  if (ranks && (ranks->first > ranks->last || ranks->first >= devices)) {
    throw InputError(
        {.where = "--fault \"" + fault.text + "\"",
         .value = std::to_string(ranks->first) + ".." + std::to_string(ranks->last),
         .problem = "are no ranks of the program",
         .allowed = "a rank, or a range FIRST..LAST, from 0 to " + std::to_string(devices - 1)});
  }
}

/// What is wrong with names that a fault gives.
void require_known_names(const Program& program, const Fault& fault) {
  std::vector<std::string> axes;
  for (std::size_t a = 0; a + 1 < program.axes.size(); ++a) axes.push_back(program.axes[a].name);
  std::string allowed;
  for (const std::string& axis : axes) allowed += (allowed.empty() ? "" : ", ") + axis;
  const auto refuse = [&](const std::string& value, const std::string& problem) {
    throw InputError({.where = "--fault \"" + fault.text + "\"",
                      .value = value,
                      .problem = problem,
                      .allowed = "the axes of the program: " + allowed});
  };
  const auto is_axis = [&](const std::string& name) {
    return std::ranges::find(axes, name) != axes.end();
  };
  if (!fault.axis.empty() && !is_axis(fault.axis)) refuse(fault.axis, "is no axis");
  for (const auto& [name, coordinate] : fault.rank.coordinates) {
    if (!is_axis(name)) refuse(name, "is no axis");
  }
  require_known_ranks(program, fault);
  if (fault.op == FaultOp::regroup && !axes_named(program, fault.to)) {
    refuse(fault.to, "names no axes");
  }
  if (fault.op == FaultOp::rescale && !value_of_product(program, fault.by)) {
    refuse(fault.by, "is no product of axes, m, tokens and whole numbers");
  }
}

/// Keys without which the fault would match, or the kinds of instructions that it makes sense for.
std::string what_would_match(const Program& program, const Fault& fault) {
  const std::vector<std::pair<std::string, std::function<void(Fault&)>>> keys = {
      {"nth", [](Fault& f) { f.nth.reset(); }},
      {"tensor", [](Fault& f) { f.tensor.clear(); }},
      {"microbatch", [](Fault& f) { f.micro_batch.reset(); }},
      {"layer", [](Fault& f) { f.layer.reset(); }},
      {"phase", [](Fault& f) { f.phase.reset(); }},
      {"axis", [](Fault& f) { f.axis.clear(); }},
      {"rank", [](Fault& f) { f.rank = {}; }}};
  for (const auto& [name, drop] : keys) {
    Fault wider = fault;
    drop(wider);
    if (wider == fault) continue;
    const auto matches = list_matches(program, wider);
    if (matches.empty()) continue;
    return "without " + name + " it matches " + std::to_string(matches.size()) +
           (matches.size() == 1 ? " instruction: " : " instructions, the first: ") +
           matches[0].instruction;
  }
  Fault widest;
  widest.op = fault.op;
  widest.to = fault.to;
  widest.by = fault.by;
  widest.of = fault.of;
  widest.with = fault.with;
  std::set<std::string> kinds;
  for (const FaultMatch& match : list_matches(program, widest)) {
    kinds.emplace(name_of(match.kind));
  }
  std::string text;
  for (const std::string& kind : kinds) text += (text.empty() ? "" : ", ") + kind;
  return text.empty() ? "another fault: it can change no instruction of this program" : text;
}

}  // namespace

std::vector<FaultMatch> list_matches(const Program& program, const Fault& fault) {
  require_known_names(program, fault);
  const auto [split, chosen] = split_classes(program, fault.rank);
  Search search(split, fault, chosen);
  search.run();
  std::vector<FaultMatch> out;
  for (const Site& site : search.sites()) {
    out.push_back({.body = site.body,
                   .instruction = to_text(split, *site.instruction),
                   .kind = site.instruction->kind,
                   .phase = site.instruction->phase});
  }
  return out;
}

Program with_faults(Program program, const std::vector<Fault>& faults) {
  for (const Fault& fault : faults) {
    require_known_names(program, fault);
    const auto [split, chosen] = split_classes(program, fault.rank);
    Search search(split, fault, chosen);
    search.run();
    if (search.sites().empty()) {
      throw InputError({.where = "--fault \"" + fault.text + "\"",
                        .value = fault.text,
                        .problem = "matches nothing",
                        .allowed = what_would_match(program, fault)});
    }
    program = Rewriter(split, fault, search).run(chosen);
  }
  return program;
}

}  // namespace placet
