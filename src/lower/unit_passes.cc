#include "lower/unit_passes.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "lower/kernel_spread.h"
#include "lower/parameter_uses.h"
#include "lower/unit_applications.h"
#include "program/kernel_text.h"
#include "units/error.h"

namespace placet {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

const BufferType kScalarType{.dtype = Dtype::fp32, .pieces = {{}}, .flat = {}};

class UnitPasses {
 public:
  UnitPasses(Lowering& in, const UnitParameters& parameters, int k, bool recomputed)
      : in_(in),
        w_(in.writer),
        parameters_(parameters),
        kind_(in.model.reference.kinds[at(k)]),
        source_(in.job.model.kinds[at(k)]),
        map_(in.model.kinds[at(k)]),
        recomputed_(recomputed),
        uses_(in, parameters),
        applications_(in, k, recomputed),
        forward_(applications_.forward),
        backward_(applications_.backward),
        passes_(applications_.passes),
        read_(applications_.read),
        kept_(applications_.kept) {}

  UnitProcedures write() {
    const std::string name = word(source_.name) + (recomputed_ ? ".recomputed" : "");
    UnitProcedures out;
    out.forward = begin("forward." + name, StepPhase::forward);
    write_forward();
    out.backward = begin("backward." + name, StepPhase::backward);
    write_backward();
    return out;
  }

  /// Axes along which each plan's gradient came out partial.
  const std::map<int, std::vector<AxisList>>& partial_of_plans() const { return uses_.partial; }

 private:
  static std::string word(std::string text) {
    std::ranges::replace(text, ' ', '-');
    return text;
  }

  int begin(const std::string& name, StepPhase phase) {
    in_.program.procedures.push_back({.name = name, .body = {}});
    const int number = static_cast<int>(in_.program.procedures.size()) - 1;
    body_ = std::make_unique<std::vector<Step>>();
    w_.write_to(*body_);
    w_.forget_buffers();
    w_.set_phase(phase);
    number_ = number;
    return number;
  }

  void end() {
    in_.program.procedures[at(number_)].body = std::move(*body_);
    held_.clear();
    copies_.clear();
    gradients_.clear();
  }

  // --- values

  bool is_parameter(int v) const { return kind_.values[at(v)].parameter >= 0; }

  const ParameterPlan& plan_of(int v, int& piece) const {
    const auto& [plan, part] = parameters_.plan_of[at(kind_.values[at(v)].parameter)];
    piece = part;
    return parameters_.plans[at(plan)];
  }

  Dtype dtype_of(int v) const {
    for (std::size_t m = 0; m < map_.value_of.size(); ++m) {
      if (map_.value_of[m] != v) continue;
      switch (source_.values[m].type) {
        case ValueType::compute:
          return in_.job.precision.compute;
        case ValueType::fp32:
          return Dtype::fp32;
        case ValueType::mask:
          return Dtype::uint8;
        case ValueType::int64:
          return Dtype::int64;
      }
    }
    return Dtype::fp32;
  }

  std::string name_of_value(int v) const { return word(kind_.values[at(v)].name); }

  Held held_input(int v) const {
    Spread spread{.tensor = kind_.values[at(v)].dims, .by = {}, .partial = {}};
    for (int d : spread.tensor) spread.by.push_back(in_.layouts.division(d, Place::parallel));
    return {
        .buffer = input_buffer(in_, kind_.values[at(v)].input), .spread = spread, .holders = {}};
  }

  /// The value divided like that, put together if it is partial.
  Held& value(int v, const std::vector<Division>& by) {
    if (kind_.values[at(v)].input >= 0 && !held_.contains(v)) held_[v] = held_input(v);
    ensure(held_.contains(v), "a value is made before it is used");
    Held& own = held_[v];
    if (!own.spread.partial.empty()) {
      Held whole = w_.brought(own, by, name_of_value(v));
      w_.drop(own);
      own = whole;
    }
    if (own.spread.by == by) return own;
    auto& copies = copies_[v];
    const auto found =
        std::ranges::find_if(copies, [&](const Held& h) { return h.spread.by == by; });
    if (found != copies.end()) return *found;
    copies.push_back(w_.brought(own, by, name_of_value(v)));
    return copies.back();
  }

  void drop_copies(int v) {
    for (Held& copy : copies_[v]) w_.drop(copy);
    copies_.erase(v);
  }

  /// Partial inputs that may stay so: all that the kernel does with them is linear, and nothing
  /// there is divided by the axes in question.
  std::vector<AxisList> left_partial(const Applied& a, const std::vector<const Spread*>& inputs) {
    std::vector<AxisList> partial(inputs.size());
    if (a.place == Place::stream) return partial;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i] == nullptr || inputs[i]->op != Combine::sum) continue;
      if (inputs[i]->by == a.uses[i].by) partial[i] = inputs[i]->partial;
    }
    if (!results_of(w_.kernel(a.kernel), a.by, partial)) partial.assign(inputs.size(), {});
    return partial;
  }

  // --- instructions

  InstructionKind kind_of(const Kernel& kernel, InstructionKind plain) const {
    for (const Statement& s : kernel.statements) {
      if (plain == InstructionKind::recompute) break;
      if (draws(s.function)) return InstructionKind::random;
      if (s.function.starts_with("route") || s.function.starts_with("chosen")) {
        return InstructionKind::route;
      }
    }
    return plain;
  }

  Instruction call(const Applied& a, InstructionKind plain) const {
    const Kernel& kernel = w_.kernel(a.kernel);
    Instruction out{.kind = kind_of(kernel, plain)};
    out.kernel = a.kernel;
    out.label = word(source_.operators[at(map_.operator_of[at(a.application)])].name);
    for (int d : positions_of(kernel)) out.positions.push_back({.dim = d, .by = a.by[at(d)]});
    if (!a.key.empty()) {
      out.key = {.name = a.key, .unit = {.variable = IndexTerm::Variable::unit, .offset = 0}};
    }
    return out;
  }

  BufferRef parameter_buffer(int v) const {
    int piece = 0;
    const ParameterPlan& plan = plan_of(v, piece);
    return buffer_of(plan, plan.whole, piece);
  }

  void run_forward(const Applied& a, InstructionKind plain) {
    Instruction instruction = call(a, plain);
    std::vector<const Spread*> spreads;
    for (int v : a.reads) {
      spreads.push_back(held_.contains(v) && !is_parameter(v) ? &held_[v].spread : nullptr);
    }
    const std::vector<AxisList> passed = left_partial(a, spreads);
    for (std::size_t i = 0; i < a.reads.size(); ++i) {
      const int v = a.reads[i];
      if (is_parameter(v)) {
        instruction.inputs.push_back(parameter_buffer(v));
      } else if (!passed[i].empty()) {
        instruction.inputs.push_back(held_[v].buffer);
      } else {
        instruction.inputs.push_back(value(v, a.uses[i].by).buffer);
      }
    }
    const auto partial = results_of(w_.kernel(a.kernel), a.by, passed);
    ensure(partial.has_value(), "complete inputs always have a result");
    for (std::size_t i = 0; i < a.to.size(); ++i) {
      Spread spread = a.uses[a.reads.size() + i];
      spread.partial = minus((*partial)[i].axes, {in_.mesh.micro_axis()});
      spread.op = (*partial)[i].op;
      held_[a.to[i]] = made(a.to[i], spread);
      instruction.outputs.push_back(held_[a.to[i]].buffer);
    }
    w_.add(std::move(instruction));
  }

  Held made(int v, const Spread& spread) {
    if (v == kind_.stream_out && !again_ && spread.by == stream_spread(in_).by) {
      return w_.make_at(stream_buffer(in_, false, 1), spread);
    }
    return w_.make(name_of_value(v), spread, dtype_of(v));
  }

  // --- forward

  void write_forward() {
    uses_.gather(false);
    if (kind_.stream_in >= 0) {
      held_[kind_.stream_in] = {.buffer = stream_buffer(in_, false, 0),
                                .spread = stream_spread(in_),
                                .holders = std::make_shared<int>(1)};
    }
    std::vector<bool> all(forward_.size(), true);
    run_all(all, kept_, InstructionKind::compute);
    if (kind_.stream_out >= 0) hand_on();
    for (int v : kept_) left_[v] = held_.at(v);
    uses_.let_go(false);
    end();
  }

  /// Runs applications in order, letting go of values after their last use but for those to keep.
  void run_all(const std::vector<bool>& runs, const std::set<int>& keep, InstructionKind plain) {
    std::map<int, std::size_t> last;
    for (std::size_t a = 0; a < forward_.size(); ++a) {
      if (!runs[a]) continue;
      for (int v : forward_[a].reads) last[v] = a;
      for (int v : forward_[a].to) last.try_emplace(v, a);
    }
    for (std::size_t a = 0; a < forward_.size(); ++a) {
      if (!runs[a]) continue;
      run_forward(forward_[a], plain);
      const std::vector<int>& made = forward_[a].to;
      if (!again_ && std::ranges::find(made, kind_.loss) != made.end()) add_loss();
      for (const auto& [v, when] : last) {
        if (when == a) finish_value(v, keep);
      }
    }
  }

  void finish_value(int v, const std::set<int>& keep) {
    if (is_parameter(v) || !held_.contains(v)) return;
    if (v == kind_.stream_out && !again_) return;
    if (keep.contains(v) && !held_[v].spread.partial.empty()) {
      held_[v] = resolved(v);
    }
    drop_copies(v);
    if (keep.contains(v)) return;
    w_.drop(held_[v]);
    held_.erase(v);
  }

  /// The loss of the step: each token's, weighted.
  void add_loss() {
    const BufferRef part = {.family = w_.family("loss.part", kScalarType, Indexing::none)};
    Held held = w_.make_at(part, {});
    Instruction instruction{.kind = InstructionKind::compute};
    instruction.kernel =
        w_.add_kernel(kernel_from("kernel weighted(y[s t], w[s t], n[]) -> (l[]) {\n i[] = "
                                  "inv(n[])\n d[s t] = w[s t] * i[]\n "
                                  "l[] = y[s t] * d[s t]\n}"));
    const BufferRef loss = value(kind_.loss, whole_loss().by).buffer;
    instruction.inputs = {loss, input_buffer(in_, in_.model.reference.weights), count_buffer(in_)};
    instruction.outputs = {part};
    instruction.label = "loss";
    w_.add(std::move(instruction));
    w_.move(InstructionKind::accumulate, part, loss_buffer(in_));
    w_.drop(held);
  }

  /// How the losses of tokens lie.
  Spread whole_loss() const {
    Spread spread{.tensor = kind_.values[at(kind_.loss)].dims, .by = {}, .partial = {}};
    for (int d : spread.tensor) spread.by.push_back(in_.layouts.division(d, Place::parallel));
    return spread;
  }

  /// A value that is kept although nothing in forward needed it complete.
  Held resolved(int v) {
    Held own = held_[v];
    Held whole = w_.brought(own, own.spread.by, name_of_value(v));
    w_.drop(own);
    return whole;
  }

  void hand_on() {
    Held& own = held_[kind_.stream_out];
    const BufferRef target = stream_buffer(in_, false, 1);
    const Spread stream = stream_spread(in_);
    if (own.buffer == target && own.spread.partial.empty()) return;
    Held out = own.buffer == target
                   ? w_.brought(own, stream.by, name_of_value(kind_.stream_out))
                   : w_.brought(own, stream.by, name_of_value(kind_.stream_out), &target);
    w_.drop(own);
    held_.erase(kind_.stream_out);
    (void)out;
  }

  // --- backward

  void write_backward() {
    uses_.gather(true);
    again_ = true;
    for (int v : kept_) {
      held_[v] = kept_value(v);
      w_.note_alive(held_[v].buffer);
    }
    if (recomputed_) run_again();
    begin_gradients();
    for (std::size_t b = 0; b < backward_.size(); ++b) run_backward(b);
    if (kind_.stream_in >= 0) hand_back();
    for (int v : std::vector<int>(read_.begin(), read_.end())) finish_value(v, {});
    if (kind_.stream_in >= 0 && held_.contains(kind_.stream_in)) {
      finish_value(kind_.stream_in, {});
    }
    drop_gradients();
    uses_.scatter_gradients();
    uses_.let_go(true);
    end();
    again_ = false;
  }

  /// Gradients that nothing further back asks for.
  void drop_gradients() {
    for (auto& [v, all] : gradients_) {
      for (Held& h : all) {
        if (v != kind_.stream_in) w_.drop(h);
      }
    }
  }

  /// A value that forward left: the same buffer under the same name.
  Held kept_value(int v) {
    if (v == kind_.stream_in) {
      return {.buffer = stream_buffer(in_, false, 0),
              .spread = stream_spread(in_),
              .holders = std::make_shared<int>(1)};
    }
    Held held = left_.at(v);
    held.holders = std::make_shared<int>(1);
    return held;
  }

  /// Runs the unit forward once more: what backward reads stays, the rest passes by.
  void run_again() {
    const std::vector<bool> runs(forward_.size(), true);
    std::set<int> keep = read_;
    if (kind_.stream_in >= 0) keep.insert(kind_.stream_in);
    run_all(runs, keep, InstructionKind::recompute);
  }

  void begin_gradients() {
    if (kind_.stream_out >= 0) {
      gradients_[kind_.stream_out] = {{.buffer = stream_buffer(in_, true, 1),
                                       .spread = stream_spread(in_),
                                       .holders = std::make_shared<int>(1)}};
    }
    if (kind_.loss < 0) return;
    const Reference& reference = in_.model.reference;
    const Spread spread = whole_loss();
    Held seed = w_.make("d.loss", spread, Dtype::fp32);
    Instruction instruction{.kind = InstructionKind::compute};
    instruction.kernel = w_.add_kernel(in_.model.kernels[at(reference.seed_kernel)]);
    instruction.inputs = {input_buffer(in_, reference.weights), count_buffer(in_)};
    instruction.outputs = {seed.buffer};
    instruction.label = "loss-weight";
    w_.add(std::move(instruction));
    gradients_[kind_.loss] = {seed};
  }

  /// Adds a share to a value's gradient: to one that lies alike, or beside the others.
  void give(int v, Held share) {
    std::vector<Held>& all = gradients_[v];
    for (Held& h : all) {
      const bool alike = h.spread.by == share.spread.by && h.spread.partial == share.spread.partial;
      if (!alike) continue;
      add_up(h, share, v);
      return;
    }
    all.push_back(std::move(share));
  }

  /// sum += share. Where others hold the sum's buffer too, a new one is made.
  void add_up(Held& sum, Held& share, int v) {
    if (*sum.holders > 1 && *share.holders == 1) std::swap(sum, share);
    if (*sum.holders > 1) {
      Held fresh = w_.make("d." + name_of_value(v), sum.spread, dtype_of(v));
      w_.move(InstructionKind::copy, sum.buffer, fresh.buffer);
      w_.drop(sum);
      sum = fresh;
    }
    w_.move(InstructionKind::accumulate, share.buffer, sum.buffer);
    w_.drop(share);
  }

  /// The gradient of a value, divided like that. Partial only where `passes`.
  Held& gradient(int v, const std::vector<Division>& by, bool passes) {
    std::vector<Held>& all = gradients_[v];
    ensure(!all.empty(), "a gradient has arrived");
    if (passes && all.size() == 1 && all[0].spread.by == by) return all[0];
    for (Held& h : all) {
      Held whole = w_.brought(h, by, "d." + name_of_value(v));
      w_.drop(h);
      h = whole;
    }
    while (all.size() > 1) {
      Held share = all.back();
      all.pop_back();
      add_up(all.front(), share, v);
    }
    return all.front();
  }

  /// A gradient divided as the application needs it, before it is known whether it may stay
  /// partial.
  void divide_gradient(int v, const Applied& a) {
    std::vector<Held>& all = gradients_[v];
    if (a.place == Place::stream || all.size() != 1 || all[0].spread.partial.empty()) return;
    const auto place = std::ranges::find(a.from, v) - a.from.begin();
    const Spread& use = a.uses[static_cast<std::size_t>(place)];
    if (all[0].spread.by == use.by) return;
    Held divided = w_.divided(all[0], use.by, "d." + name_of_value(v));
    w_.drop(all[0]);
    all[0] = divided;
  }

  void run_backward(std::size_t b) {
    const Applied& a = backward_[b];
    const std::vector<AxisList> passed =
        a.kernel >= 0 ? gradients_left_partial(a) : std::vector<AxisList>{};
    // What is needed complete here is put together once, also for those to whom it is passed on.
    for (std::size_t i = 0; a.kernel >= 0 && i < a.from.size(); ++i) {
      if (passed[i].empty()) gradient(a.from[i], a.uses[i].by, false);
    }
    pass_gradients(b);
    if (a.kernel >= 0) {
      Instruction instruction = call(a, InstructionKind::compute);
      for (std::size_t i = 0; i < a.from.size(); ++i) {
        instruction.inputs.push_back(gradient(a.from[i], a.uses[i].by, !passed[i].empty()).buffer);
      }
      read_values(a, instruction);
      make_gradients(a, passed, instruction);
    }
    for (int v : outputs_of(a.application)) {
      for (Held& h : gradients_[v]) w_.drop(h);
      gradients_.erase(v);
    }
    for (int v : last_read_at(b)) finish_value(v, {});
  }

  /// Axes along which incoming gradients may stay partial.
  std::vector<AxisList> gradients_left_partial(const Applied& a) {
    for (int v : a.from) divide_gradient(v, a);
    std::vector<const Spread*> spreads;
    for (int v : a.from) {
      const std::vector<Held>& all = gradients_[v];
      spreads.push_back(all.size() == 1 ? &all.front().spread : nullptr);
    }
    spreads.resize(a.from.size() + a.reads.size(), nullptr);
    return left_partial(a, spreads);
  }

  const std::vector<int>& outputs_of(int application) const {
    return kind_.applications[at(application)].outputs;
  }

  /// Inputs whose gradient is an output's as it stands share its buffer.
  void pass_gradients(std::size_t b) {
    for (const auto& [to, from] : passes_[b]) {
      const Place place = backward_[b].place;
      const bool moves = place == Place::stream || place == Place::parallel;
      if (moves && !gradients_[from].empty()) {
        gradient(from, divisions_at(from, place), place == Place::parallel);
      }
      for (const Held& h : gradients_[from]) {
        Held share = h;
        ++*share.holders;
        if (is_parameter(to)) continue;
        give(to, share);
      }
    }
  }

  std::vector<Division> divisions_at(int v, Place place) const {
    std::vector<Division> by;
    for (int d : kind_.values[at(v)].dims) by.push_back(in_.layouts.division(d, place));
    return by;
  }

  void read_values(const Applied& a, Instruction& instruction) {
    for (std::size_t i = 0; i < a.reads.size(); ++i) {
      const int v = a.reads[i];
      const Spread& use = a.uses[a.from.size() + i];
      instruction.inputs.push_back(is_parameter(v) ? parameter_buffer(v) : value(v, use.by).buffer);
    }
  }

  void make_gradients(const Applied& a, std::vector<AxisList> passed, Instruction& instruction) {
    passed.resize(a.from.size() + a.reads.size());
    const auto partial = results_of(w_.kernel(a.kernel), a.by, passed);
    ensure(partial.has_value(), "complete inputs always have a result");
    std::vector<std::pair<int, Held>> made;
    std::vector<int> finished;
    for (std::size_t i = 0; i < a.to.size(); ++i) {
      Spread spread = a.uses[a.from.size() + a.reads.size() + i];
      spread.partial = minus((*partial)[i].axes, {in_.mesh.micro_axis()});
      if (is_parameter(a.to[i])) {
        instruction.outputs.push_back(
            uses_.gradient(kind_.values[at(a.to[i])].parameter, spread, finished));
        continue;
      }
      made.emplace_back(a.to[i], w_.make("d." + name_of_value(a.to[i]), spread, dtype_of(a.to[i])));
      instruction.outputs.push_back(made.back().second.buffer);
    }
    w_.add(std::move(instruction));
    for (auto& [v, held] : made) give(v, held);
    for (int plan : finished) uses_.settle(plan);
  }

  /// Values of this pass that no later application reads.
  std::vector<int> last_read_at(std::size_t b) const {
    std::vector<int> out;
    for (int v : backward_[b].reads) {
      bool later = is_parameter(v) || !held_.contains(v);
      for (std::size_t c = b + 1; c < backward_.size(); ++c) {
        later = later || std::ranges::find(backward_[c].reads, v) != backward_[c].reads.end();
      }
      if (!later && std::ranges::find(out, v) == out.end()) out.push_back(v);
    }
    return out;
  }

  void hand_back() {
    const int v = kind_.stream_in;
    const BufferRef target = stream_buffer(in_, true, 0);
    Held& own = gradient(v, stream_spread(in_).by, false);
    if (own.buffer == target) return;
    Held out = w_.make_at(target, stream_spread(in_));
    w_.move(InstructionKind::copy, own.buffer, out.buffer);
    w_.drop(own);
    gradients_.erase(v);
  }

  Lowering& in_;
  Writer& w_;
  const UnitParameters& parameters_;
  const ReferenceKind& kind_;
  const UnitKind& source_;
  const KindMap& map_;
  bool recomputed_ = false;
  bool again_ = false;  // backward is being written
  int number_ = -1;
  std::unique_ptr<std::vector<Step>> body_;

  ParameterUses uses_;
  UnitApplications applications_;
  const std::vector<Applied>& forward_;
  const std::vector<Applied>& backward_;
  const std::vector<std::vector<std::pair<int, int>>>& passes_;  // by backward application
  const std::set<int>& read_;                                    // values that backward reads
  const std::set<int>& kept_;                                    // values that forward leaves

  std::map<int, Held> held_;
  std::map<int, std::vector<Held>> copies_;  // values divided otherwise
  std::map<int, Held> left_;                 // kept values as forward leaves them
  std::map<int, std::vector<Held>> gradients_;
};

}  // namespace

UnitProcedures write_unit(Lowering& in, UnitParameters& parameters, int kind, bool recomputed) {
  UnitPasses passes(in, parameters, kind, recomputed);
  const UnitProcedures out = passes.write();
  for (const auto& [p, pieces] : passes.partial_of_plans()) {
    parameters.plans[at(p)].piece_partial = pieces;
    parameters.plans[at(p)].partial = common_partial(pieces);
  }
  return out;
}

}  // namespace placet
