#include "algebra/small_step.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "program/kernel_text.h"
#include "units/at.h"

namespace placet {

int ProgramWriter::axis(const std::string& name, std::int64_t degree,
                        std::vector<std::int64_t> shares) {
  program.axes.push_back({.name = name, .degree = degree, .shares = std::move(shares)});
  return static_cast<int>(program.axes.size()) - 1;
}

int ProgramWriter::dim(const std::string& name, std::int64_t extent) {
  program.dims.push_back({.name = name, .extent = extent});
  return static_cast<int>(program.dims.size()) - 1;
}

int ProgramWriter::kernel(const std::string& text) { return add_kernel(kernel_from(text)); }

int ProgramWriter::add_kernel(Kernel kernel) {
  const std::string name = kernel.name;
  for (int number = 2;; ++number) {
    const auto found = std::ranges::find(program.kernels, kernel.name, &Kernel::name);
    if (found == program.kernels.end()) break;
    if (*found == kernel) return static_cast<int>(found - program.kernels.begin());
    kernel.name = name + "." + std::to_string(number);
  }
  program.kernels.push_back(std::move(kernel));
  return static_cast<int>(program.kernels.size()) - 1;
}

BufferRef ProgramWriter::buffer(const std::string& name, std::vector<DividedDim> dims,
                                AxisList flat) {
  Family family{.name = name, .type = {.pieces = {{std::move(dims)}}, .flat = std::move(flat)}};
  for (int number = 2;
       std::ranges::find(program.families, family.name, &Family::name) != program.families.end();
       ++number) {
    family.name = name + "." + std::to_string(number);
  }
  program.families.push_back(std::move(family));
  return {.family = static_cast<int>(program.families.size()) - 1};
}

Instruction& ProgramWriter::add(InstructionKind kind, std::vector<BufferRef> inputs,
                                std::vector<BufferRef> outputs) {
  Instruction& what = body->emplace_back().what.emplace<Instruction>();
  what.kind = kind;
  what.inputs = std::move(inputs);
  what.outputs = std::move(outputs);
  return what;
}

Instruction& ProgramWriter::call(int kernel, std::vector<BufferRef> inputs,
                                 std::vector<BufferRef> outputs) {
  Instruction& what = add(InstructionKind::compute, std::move(inputs), std::move(outputs));
  what.kernel = kernel;
  what.label = program.kernels[at(kernel)].name;
  return what;
}

Instruction& ProgramWriter::over(InstructionKind kind, AxisList axes, BufferRef from, BufferRef to,
                                 int dim) {
  Instruction& what = add(kind, {from}, {to});
  what.axes = std::move(axes);
  what.dim = dim;
  return what;
}

void ProgramWriter::backward(int kernel, const std::vector<BufferRef>& tensors,
                             const std::vector<BufferRef>& from,
                             const std::vector<std::pair<int, BufferRef>>& to) {
  const Kernel& forward = program.kernels[at(kernel)];
  std::vector<int> outputs;
  std::vector<int> wanted;
  std::vector<BufferRef> made;
  for (std::size_t o = 0; o < from.size(); ++o) {
    outputs.push_back(forward.inputs + static_cast<int>(o));
  }
  for (const auto& [input, buffer] : to) {
    wanted.push_back(input);
    made.push_back(buffer);
  }
  const std::optional<Adjoint> adjoint = adjoint_of(forward, outputs, wanted);
  if (!adjoint || adjoint->to != wanted) throw std::logic_error("no such gradient");
  std::vector<BufferRef> inputs = from;
  for (int t : adjoint->reads) inputs.push_back(tensors.at(at(t)));
  call(add_kernel(adjoint->kernel), inputs, made);
}

void ProgramWriter::alloc_all(const std::vector<BufferRef>& buffers) {
  for (const BufferRef& b : buffers) add(InstructionKind::alloc, {}, {b});
}

void ProgramWriter::free_all(const std::vector<BufferRef>& buffers) {
  for (const BufferRef& b : buffers) add(InstructionKind::free, {b}, {});
}

BufferRef at_micro_batch(BufferRef ref) {
  ref.micro_batch = {.variable = IndexTerm::Variable::micro_batch};
  return ref;
}

SmallNet add_small_net(ProgramWriter& w, std::int64_t samples, std::int64_t hidden) {
  SmallNet n;
  n.sample = w.dim("sample", samples);
  n.token = w.dim("token", 2);
  n.in = w.dim("in", 3);
  n.hidden = w.dim("hidden", hidden);
  n.out = w.dim("out", 2);
  n.lower = w.kernel(
      "kernel lower(x[s t i], w[h i]) -> (a[s t h]) {\n"
      " z[s t h] = x[s t i] * w[h i]\n a[s t h] = act(z[s t h])\n}");
  n.upper =
      w.kernel("kernel upper(a[s t h], v[o h]) -> (y[s t o]) {\n y[s t o] = a[s t h] * v[o h]\n}");
  n.loss = w.kernel(
      "kernel loss(y[s t o], z[s t o]) -> (l[s t]) {\n l[s t] = sum o of cost(y[s t o], z[s t "
      "o])\n}");
  n.count = w.kernel("kernel count(w[s t]) -> (n[]) {\n n[] = w[s t]\n}");
  n.seed = w.kernel(
      "kernel seed(w[s t], n[]) -> (d[s t]) {\n i[] = inv(n[])\n d[s t] = w[s t] * i[]\n}");
  n.squares = w.kernel("kernel squares(g[...]) -> (q[]) {\n q[] = g[...] * g[...]\n}");
  n.limit = w.kernel("kernel limit(q[]) -> (c[]) {\n c[] = limited(q[])\n}");
  n.update = w.kernel(
      "kernel update(p[...], m[...], g[...], c[]) -> (q[...], n[...]) {\n"
      " h[...] = g[...] * c[]\n n[...] = moment(m[...], h[...])\n"
      " q[...] = stepped(p[...], n[...], h[...])\n}");
  n.weighted = w.kernel("kernel weighted(d[s t], l[s t]) -> (y[]) {\n y[] = d[s t] * l[s t]\n}");
  Reference& r = w.program.reference;
  r.inputs = {{"x", {n.sample, n.token, n.in}},
              {"z", {n.sample, n.token, n.out}},
              {"weights", {n.sample, n.token}}};
  r.kinds = {{.name = "lower",
              .values = {{.name = "x", .dims = {n.sample, n.token, n.in}, .input = 0},
                         {.name = "w", .dims = {n.hidden, n.in}, .parameter = 0},
                         {.name = "a", .dims = {n.sample, n.token, n.hidden}}},
              .parameters = {{.name = "w", .value = 1}},
              .applications = {{.kernel = n.lower, .inputs = {0, 1}, .outputs = {2}}},
              .stream_out = 2},
             {.name = "upper",
              .values = {{.name = "a", .dims = {n.sample, n.token, n.hidden}},
                         {.name = "v", .dims = {n.out, n.hidden}, .parameter = 0},
                         {.name = "y", .dims = {n.sample, n.token, n.out}},
                         {.name = "z", .dims = {n.sample, n.token, n.out}, .input = 1},
                         {.name = "l", .dims = {n.sample, n.token}}},
              .parameters = {{.name = "v", .value = 1}},
              .applications = {{.kernel = n.upper, .inputs = {0, 1}, .outputs = {2}},
                               {.kernel = n.loss, .inputs = {2, 3}, .outputs = {4}}},
              .stream_in = 0,
              .loss = 4}};
  r.units = {{.kind = 0}, {.kind = 1}};
  r.rules = {{.kernel = n.update, .states = {"moment"}}};
  r.count_kernel = n.count;
  r.seed_kernel = n.seed;
  r.weights = 2;
  r.norm_kernel = n.squares;
  r.clip_kernel = n.limit;
  return n;
}

namespace {

StateRef parameter_of(int unit) { return {.kind = StateRef::Kind::parameter, .unit = unit}; }
StateRef state_of(int unit) { return {.kind = StateRef::Kind::state, .unit = unit}; }
StateRef input_of(int input) { return {.kind = StateRef::Kind::input, .tensor = input}; }

/// Writes the program of `small_step` piece by piece.
class SmallWriter {
 public:
  explicit SmallWriter(const SmallStep& request) : request_(request) {}

  Program write() {
    data_ = w_.axis("data", request_.data, request_.data_shares);
    tensor_ = w_.axis("tensor", request_.tensor, request_.tensor_shares);
    micro_ = w_.axis("micro-batch", request_.micro_batches);
    n_ = add_small_net(w_, request_.samples, request_.hidden);
    w_.program.classes.push_back({.name = "all", .box = {{}, {}}});
    declare();
    w_.body = &w_.program.classes[0].body;
    w_.alloc_all(step_buffers_);
    count_tokens();
    for (const BufferRef& b : {gw_, gv_, loss_}) w_.add(InstructionKind::zero, {}, {b});
    micro_batches();
    const auto sum = InstructionKind::all_reduce;
    if (!request_.divided_state) {
      w_.over(sum, {data_}, gw_, gw_);
      w_.over(sum, {data_}, gv_, gv_);
    }
    w_.over(sum, {data_}, loss_, loss_);
    update();
    w_.free_all(step_buffers_);
    return std::move(w_.program);
  }

 private:
  void declare() {
    const Division samples{{data_}, {micro_}};
    const Division cut{{tensor_}};
    const DividedDim s{n_.sample, samples};
    const DividedDim t{n_.token, {}};
    const DividedDim h{n_.hidden, cut};
    x_ = of_micro_batch("x", {s, t, {n_.in, {}}});
    z_ = of_micro_batch("z", {s, t, {n_.out, {}}});
    weights_ = of_micro_batch("weights", {s, t});
    const std::vector<DividedDim> w{h, {n_.in, {}}};
    const std::vector<DividedDim> v{{n_.out, {}}, h};
    const AxisList flat = request_.divided_state ? AxisList{data_} : AxisList{};
    w_tensor_ = w_.buffer("w", w);
    v_tensor_ = w_.buffer("v", v);
    mw_ = w_.buffer("mw", w, flat);
    mv_ = w_.buffer("mv", v, flat);
    gw_ = made("gw", w);
    gv_ = made("gv", v);
    dw_ = made("dw", w);
    dv_ = made("dv", v);
    a_ = of_micro_batch("a", {s, t, h});
    da_ = of_micro_batch("da", {s, t, h});
    y_ = of_micro_batch("y", {s, t, {n_.out, {}}});
    dy_ = of_micro_batch("dy", {s, t, {n_.out, {}}});
    l_ = of_micro_batch("l", {s, t});
    d_ = of_micro_batch("d", {s, t});
    n_count_ = made("n", {});
    one_ = made("one", {});
    q_ = made("q", {});
    c_ = made("c", {});
    loss_ = w_.buffer("loss", {});
    if (request_.divided_state) {
      pw_ = made("pw", w, flat);
      pv_ = made("pv", v, flat);
      sw_ = made("sw", w, flat);
      sv_ = made("sv", v, flat);
    }
    initial();
  }

  void initial() {
    DeviceClass& all = w_.program.classes[0];
    all.initial = {{w_tensor_, {parameter_of(0)}},
                   {v_tensor_, {parameter_of(1)}},
                   {mw_, {state_of(0)}},
                   {mv_, {state_of(1)}},
                   {loss_, {{}}}};
    for (std::int64_t j = 0; j < request_.micro_batches; ++j) {
      int input = 0;
      for (BufferRef b : {x_, z_, weights_}) {
        b.micro_batch = {.offset = j};
        all.initial.push_back({b, {input_of(input++)}});
      }
    }
    all.results = {{loss_, {{.kind = StateRef::Kind::loss}}}};
  }

  BufferRef of_micro_batch(const std::string& name, std::vector<DividedDim> dims) {
    const BufferRef ref = w_.buffer(name, std::move(dims));
    w_.program.families.back().by_micro_batch = true;
    return at_micro_batch(ref);
  }

  BufferRef made(const std::string& name, std::vector<DividedDim> dims, AxisList flat = {}) {
    const BufferRef ref = w_.buffer(name, std::move(dims), std::move(flat));
    step_buffers_.push_back(ref);
    return ref;
  }

  /// A loop over micro-batches; instructions go there until `end`.
  void begin_loop() {
    outside_ = w_.body;
    Loop& loop = outside_->emplace_back().what.emplace<Loop>();
    loop.variable = IndexTerm::Variable::micro_batch;
    loop.last = request_.micro_batches - 1;
    w_.body = &loop.body;
  }
  void end_loop() { w_.body = outside_; }

  void count_tokens() {
    w_.add(InstructionKind::zero, {}, {n_count_});
    begin_loop();
    w_.call(n_.count, {weights_}, {one_});
    w_.add(InstructionKind::accumulate, {one_}, {n_count_});
    end_loop();
    w_.over(InstructionKind::all_reduce, {data_}, n_count_, n_count_);
  }

  void micro_batches() {
    begin_loop();
    w_.alloc_all({a_, da_, y_, dy_, l_, d_});
    w_.call(n_.lower, {x_, w_tensor_}, {a_});
    w_.call(n_.upper, {a_, v_tensor_}, {y_});
    w_.over(InstructionKind::all_reduce, {tensor_}, y_, y_);
    w_.call(n_.loss, {y_, z_}, {l_});
    w_.call(n_.seed, {weights_, n_count_}, {d_});
    w_.call(n_.weighted, {d_, l_}, {one_});
    w_.add(InstructionKind::accumulate, {one_}, {loss_});
    w_.backward(n_.loss, {y_, z_, l_}, {d_}, {{0, dy_}});
    w_.backward(n_.upper, {a_, v_tensor_, y_}, {dy_}, {{0, da_}, {1, dv_}});
    w_.add(InstructionKind::accumulate, {dv_}, {gv_});
    w_.backward(n_.lower, {x_, w_tensor_, a_}, {da_}, {{1, dw_}});
    w_.add(InstructionKind::accumulate, {dw_}, {gw_});
    w_.free_all({a_, da_, y_, dy_, l_, d_});
    end_loop();
  }

  void update() {
    BufferRef gw = gw_;
    BufferRef gv = gv_;
    BufferRef pw = w_tensor_;
    BufferRef pv = v_tensor_;
    if (request_.divided_state) {
      w_.over(InstructionKind::reduce_scatter, {data_}, gw_, sw_);
      w_.over(InstructionKind::reduce_scatter, {data_}, gv_, sv_);
      w_.over(InstructionKind::slice, {data_}, w_tensor_, pw_);
      w_.over(InstructionKind::slice, {data_}, v_tensor_, pv_);
      gw = sw_;
      gv = sv_;
      pw = pw_;
      pv = pv_;
    }
    w_.call(n_.squares, {gw}, {q_});
    w_.call(n_.squares, {gv}, {one_});
    w_.add(InstructionKind::accumulate, {one_}, {q_});
    const AxisList axes = request_.divided_state ? AxisList{data_, tensor_} : AxisList{tensor_};
    w_.over(InstructionKind::all_reduce, axes, q_, q_);
    w_.call(n_.limit, {q_}, {c_});
    w_.call(n_.update, {pw, mw_, gw, c_}, {pw, mw_});
    w_.call(n_.update, {pv, mv_, gv, c_}, {pv, mv_});
    if (request_.divided_state) {
      w_.over(InstructionKind::all_gather, {data_}, pw_, w_tensor_);
      w_.over(InstructionKind::all_gather, {data_}, pv_, v_tensor_);
    }
  }

  const SmallStep& request_;
  ProgramWriter w_;
  SmallNet n_;
  int data_ = 0, tensor_ = 0, micro_ = 0;
  BufferRef x_, z_, weights_, w_tensor_, v_tensor_, mw_, mv_, gw_, gv_, dw_, dv_, a_, da_, y_, dy_,
      l_, d_, n_count_, one_, q_, c_, loss_, pw_, pv_, sw_, sv_;
  std::vector<BufferRef> step_buffers_;
  std::vector<Step>* outside_ = nullptr;
};

void collect(std::vector<Step>& body, std::vector<InstructionPlace>& places) {
  for (std::size_t i = 0; i < body.size(); ++i) {
    if (std::holds_alternative<Instruction>(body[i].what)) places.push_back({&body, i});
    if (auto* loop = std::get_if<Loop>(&body[i].what)) collect(loop->body, places);
  }
}

}  // namespace

Program small_step(const SmallStep& request) { return SmallWriter(request).write(); }

std::vector<InstructionPlace> instructions_of(Program& program) {
  std::vector<InstructionPlace> places;
  for (Procedure& procedure : program.procedures) collect(procedure.body, places);
  for (DeviceClass& c : program.classes) collect(c.body, places);
  return places;
}

InstructionPlace nth(Program& program, InstructionKind kind, std::size_t n) {
  for (const InstructionPlace& place : instructions_of(program)) {
    if (place.what().kind == kind && n-- == 0) return place;
  }
  throw std::logic_error("no such instruction");
}

}  // namespace placet
