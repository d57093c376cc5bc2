#include "algebra/data_parallel.h"

#include <algorithm>
#include <map>
#include <utility>

#include "algebra/small_step.h"
#include "units/at.h"

namespace placet {
namespace {

constexpr int kSample = 0;  // position of the samples among the reference's dims
constexpr int kData = 0;
constexpr int kMicroBatch = 1;

class DataParallelWriter {
 public:
  DataParallelWriter(const ModelReference& model, std::int64_t degree, std::int64_t micro_batches)
      : micro_batches_(micro_batches) {
    w_.axis("data", degree);
    w_.axis("micro-batch", micro_batches);
    w_.program.dims = model.dims;
    for (const Kernel& kernel : model.kernels) w_.add_kernel(kernel);  // all differ
    w_.program.reference = model.reference;
    w_.program.classes.push_back({.name = "all", .box = {{}}});
  }

  Program write() {
    const Reference& r = w_.program.reference;
    weighted_ = w_.kernel("kernel weighted(d[...], l[...]) -> (y[]) {\n y[] = d[...] * l[...]\n}");
    for (const ReferenceKind& kind : r.kinds) {
      backward_.push_back(backward_of(kind, w_.program.kernels));
      has_gradient_.push_back(values_with_gradient(kind, w_.program.kernels));
    }
    declare_inputs();
    for (std::size_t u = 0; u < r.units.size(); ++u) declare_unit(u);
    std::vector<Step> body;
    w_.body = &body;
    count();
    in_loop([&] {
      std::vector<Step>* outside = w_.body;
      std::vector<Step> inside;
      w_.body = &inside;
      for (std::size_t u = 0; u < r.units.size(); ++u) forward(u);
      for (std::size_t u = r.units.size(); u-- > 0;) backward(u);
      w_.body = outside;
      w_.alloc_all(per_micro_batch_);
      outside->insert(outside->end(), inside.begin(), inside.end());
      w_.free_all(per_micro_batch_);
    });
    update();
    w_.over(InstructionKind::all_reduce, {kData}, loss_, loss_);
    // All buffers of the step are there from its beginning to its end.
    std::vector<Step>& whole = w_.program.classes[0].body;
    w_.body = &whole;
    w_.alloc_all(temporary_);
    for (const BufferRef& b : cleared_) w_.add(InstructionKind::zero, {}, {b});
    whole.insert(whole.end(), body.begin(), body.end());
    w_.free_all(temporary_);
    return std::move(w_.program);
  }

 private:
  const ReferenceKind& kind_of(std::size_t unit) const {
    const Reference& r = w_.program.reference;
    return r.kinds[at(r.units[unit].kind)];
  }

  std::vector<DividedDim> divided(const std::vector<int>& dims) const {
    std::vector<DividedDim> result;
    for (int d : dims) {
      result.push_back({d, d == kSample ? Division{{kData}, {kMicroBatch}} : Division{}});
    }
    return result;
  }

  BufferRef temporary(const std::string& name, const std::vector<int>& dims) {
    const BufferRef ref = w_.buffer(name, divided(dims));
    if (std::ranges::find(dims, kSample) == dims.end()) {
      temporary_.push_back(ref);
      return ref;
    }
    w_.program.families.back().by_micro_batch = true;
    per_micro_batch_.push_back(at_micro_batch(ref));
    return per_micro_batch_.back();
  }

  void declare_inputs() {
    const Reference& r = w_.program.reference;
    for (std::size_t i = 0; i < r.inputs.size(); ++i) {
      BufferRef ref = w_.buffer(r.inputs[i].name, divided(r.inputs[i].dims));
      w_.program.families.back().by_micro_batch = true;
      for (std::int64_t j = 0; j < micro_batches_; ++j) {
        ref.micro_batch = {.offset = j};
        w_.program.classes[0].initial.push_back(
            {ref, {{.kind = StateRef::Kind::input, .tensor = static_cast<int>(i)}}});
      }
      inputs_.push_back(at_micro_batch(ref));
    }
    count_ = temporary("count", {});
    number_ = temporary("number", {});
    seeds_ = temporary("seeds", r.inputs[at(r.weights)].dims);
    loss_ = initial("loss", {}, {});
    cleared_ = {count_, loss_};
    w_.program.classes[0].results = {{loss_, {{.kind = StateRef::Kind::loss}}}};
  }

  struct Held {
    BufferRef parameter;
    std::vector<BufferRef> states;
    BufferRef gradient;
  };

  BufferRef initial(const std::string& name, const std::vector<int>& dims, const StateRef& ref) {
    const BufferRef buffer = w_.buffer(name, divided(dims));
    w_.program.classes[0].initial.push_back({buffer, {ref}});
    return buffer;
  }

  void declare_parameter(std::size_t unit, std::size_t p) {
    const ReferenceKind& kind = kind_of(unit);
    const ReferenceParameter& parameter = kind.parameters[p];
    const std::vector<int>& dims = kind.values[at(parameter.value)].dims;
    StateRef ref{.kind = StateRef::Kind::parameter,
                 .unit = static_cast<int>(unit),
                 .tensor = static_cast<int>(p)};
    Held held{.parameter = initial(parameter.name, dims, ref)};
    ref.kind = StateRef::Kind::state;
    const UpdateRule& rule = w_.program.reference.rules[at(parameter.rule)];
    for (std::size_t s = 0; s < rule.states.size() && parameter.trainable; ++s) {
      ref.state = static_cast<int>(s);
      held.states.push_back(initial(rule.states[s], dims, ref));
    }
    held.gradient = temporary("gradient", dims);
    cleared_.push_back(held.gradient);
    held_[{static_cast<int>(unit), static_cast<int>(p)}] = held;
  }

  const Held& held(std::size_t unit, int parameter) const {
    const auto& tied = kind_of(unit).parameters[at(parameter)].tied;
    return tied ? held(at(tied->unit), tied->parameter)
                : held_.at({static_cast<int>(unit), parameter});
  }

  void declare_unit(std::size_t unit) {
    const ReferenceKind& kind = kind_of(unit);
    for (std::size_t p = 0; p < kind.parameters.size(); ++p) {
      if (!kind.parameters[p].tied) declare_parameter(unit, p);
    }
    values_.emplace_back();
    gradients_.emplace_back();
    for (std::size_t v = 0; v < kind.values.size(); ++v) {
      const ReferenceValue& value = kind.values[v];
      const bool streams = static_cast<int>(v) == kind.stream_in;
      const std::size_t out = streams ? at(kind_of(unit - 1).stream_out) : 0;
      if (value.input >= 0) {
        values_[unit].push_back(inputs_[at(value.input)]);
        gradients_[unit].push_back({});
      } else if (value.parameter >= 0) {
        values_[unit].push_back(held(unit, value.parameter).parameter);
        gradients_[unit].push_back(held(unit, value.parameter).gradient);
      } else if (streams) {
        values_[unit].push_back(values_[unit - 1][out]);
        gradients_[unit].push_back(gradients_[unit - 1][out]);
      } else {
        values_[unit].push_back(temporary(value.name, value.dims));
        gradients_[unit].push_back(temporary("d." + value.name, value.dims));
        cleared_gradients_.push_back(gradients_[unit].back());
      }
    }
  }

  template <class Write>
  void in_loop(Write write) {
    std::vector<Step>* outside = w_.body;
    std::vector<Step> inside;
    w_.body = &inside;
    write();
    w_.body = outside;
    Loop& loop = outside->emplace_back().what.emplace<Loop>();
    loop.variable = IndexTerm::Variable::micro_batch;
    loop.last = micro_batches_ - 1;
    loop.body = std::move(inside);
  }

  void count() {
    const Reference& r = w_.program.reference;
    in_loop([&] {
      w_.call(r.count_kernel, {inputs_[at(r.weights)]}, {number_});
      w_.add(InstructionKind::accumulate, {number_}, {count_});
    });
    w_.over(InstructionKind::all_reduce, {kData}, count_, count_);
  }

  /// Calls a kernel on values of the unit; samples are counted over the whole batch.
  void apply(std::size_t unit, const Application& a, int kernel, std::vector<BufferRef> in,
             std::vector<BufferRef> out) {
    std::vector<BufferRef> all = in;
    all.insert(all.end(), out.begin(), out.end());
    Instruction& what = w_.call(kernel, std::move(in), std::move(out));
    if (!a.key.empty()) {
      what.kind = InstructionKind::random;
      what.key = {.name = a.key, .unit = {.offset = static_cast<std::int64_t>(unit)}};
    }
    const Kernel& k = w_.program.kernels[at(kernel)];
    for (int d : positions_of(k)) {
      bool is_sample = false;
      for (std::size_t t = 0; t < all.size(); ++t) {
        const auto& dims = w_.program.families[at(all[t].family)].type.pieces[0].dims;
        const auto& names = k.tensors[t].dims;
        for (std::size_t i = 0; i < names.size() && i < dims.size(); ++i) {
          is_sample = is_sample || (names[i] == d && dims[i].dim == kSample);
        }
      }
      if (is_sample) what.positions.push_back({.dim = d, .by = {{kData}, {kMicroBatch}}});
    }
  }

  std::vector<BufferRef> buffers(std::size_t unit, const std::vector<int>& values) const {
    std::vector<BufferRef> result;
    for (int v : values) result.push_back(values_[unit][at(v)]);
    return result;
  }

  void forward(std::size_t unit) {
    const Reference& r = w_.program.reference;
    const ReferenceKind& kind = kind_of(unit);
    for (const Application& a : kind.applications) {
      apply(unit, a, a.kernel, buffers(unit, a.inputs), buffers(unit, a.outputs));
    }
    if (unit + 1 == r.units.size()) {
      for (const BufferRef& b : cleared_gradients_) w_.add(InstructionKind::zero, {}, {b});
    }
    if (kind.loss < 0) return;
    w_.call(r.seed_kernel, {inputs_[at(r.weights)], count_}, {seeds_});
    w_.call(weighted_, {seeds_, values_[unit][at(kind.loss)]}, {number_});
    w_.add(InstructionKind::accumulate, {number_}, {loss_});
    w_.add(InstructionKind::accumulate, {seeds_}, {gradients_[unit][at(kind.loss)]});
  }

  void backward(std::size_t unit) {
    const ReferenceKind& kind = kind_of(unit);
    for (const BackwardApplication& b : backward_[at(w_.program.reference.units[unit].kind)]) {
      const Application& a = kind.applications[at(b.application)];
      const int inputs = w_.program.kernels[at(a.kernel)].inputs;
      const auto value = [&](int t) {
        return t < inputs ? a.inputs[at(t)] : a.outputs[at(t - inputs)];
      };
      std::vector<BufferRef> in;
      std::vector<BufferRef> shares;
      for (int t : b.adjoint.from) in.push_back(gradients_[unit][at(value(t))]);
      for (int t : b.adjoint.reads) in.push_back(values_[unit][at(value(t))]);
      for (int t : b.adjoint.to)
        shares.push_back(temporary("share", kind.values[at(value(t))].dims));
      apply(unit, a, w_.add_kernel(b.adjoint.kernel), in, shares);
      for (std::size_t i = 0; i < shares.size(); ++i) {
        w_.add(InstructionKind::accumulate, {shares[i]},
               {gradients_[unit][at(value(b.adjoint.to[i]))]});
      }
    }
  }

  void update() {
    const Reference& r = w_.program.reference;
    const BufferRef squares = temporary("squares", {});
    const BufferRef factor = temporary("factor", {});
    cleared_.push_back(squares);
    std::vector<std::pair<const Held*, int>> trained;
    for (const auto& [where, held] : held_) {
      const ReferenceParameter& p = kind_of(at(where.first)).parameters[at(where.second)];
      if (p.trainable) trained.emplace_back(&held, r.rules[at(p.rule)].kernel);
    }
    for (const auto& [held, kernel] : trained) {
      w_.over(InstructionKind::all_reduce, {kData}, held->gradient, held->gradient);
      if (r.norm_kernel < 0) continue;
      w_.call(r.norm_kernel, {held->gradient}, {number_});
      w_.add(InstructionKind::accumulate, {number_}, {squares});
    }
    if (r.norm_kernel >= 0) w_.call(r.clip_kernel, {squares}, {factor});
    for (const auto& [held, kernel] : trained) {
      std::vector<BufferRef> out{held->parameter};
      out.insert(out.end(), held->states.begin(), held->states.end());
      std::vector<BufferRef> in = out;
      in.push_back(held->gradient);
      if (r.norm_kernel >= 0) in.push_back(factor);
      w_.call(kernel, in, out);
    }
  }

  ProgramWriter w_;
  std::int64_t micro_batches_;
  int weighted_ = 0;
  std::vector<std::vector<BackwardApplication>> backward_;
  std::vector<std::vector<bool>> has_gradient_;
  std::vector<BufferRef> inputs_;
  std::map<std::pair<int, int>, Held> held_;
  std::vector<std::vector<BufferRef>> values_, gradients_;
  std::vector<BufferRef> temporary_, cleared_, per_micro_batch_, cleared_gradients_;
  BufferRef count_, number_, seeds_, loss_;
};

}  // namespace

Program data_parallel(const ModelReference& model, std::int64_t degree,
                      std::int64_t micro_batches) {
  return DataParallelWriter(model, degree, micro_batches).write();
}

}  // namespace placet
