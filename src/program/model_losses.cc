// What a model is trained on: the kernels of its losses.
#include "program/model_losses.h"

#include <string>

#include "units/at.h"

namespace placet {

void add_loss(KindBuilder& unit, const Operator& op) {
  const int z = unit.value_of(op.inputs[0]);
  const int labels = unit.value_of(op.inputs[1]);
  const bool predicts_further = unit.source().role == UnitRole::mtp;
  unit.set_input(labels, predicts_further ? kNextLabels : kLabels);
  const int y = unit.value_of(op.outputs[0]);
  const Dims st = unit.dims_at(labels);
  const int m = unit.value_of(op.internals.at(internal::kLossMax));
  const int l = unit.value_of(op.internals.at(internal::kLossSum));
  const int t = unit.value_of(op.internals.at(internal::kLossTarget));
  KernelWriter k = unit.writer("logit-max");
  const std::string tokens = k.list(st);
  const std::string logits = k.list(unit.dims_at(z));
  const std::string v = k.named(unit.dims_at(z).back());
  k.input("z" + logits);
  k.output("m" + tokens);
  k.line("m" + tokens + " = max " + v + " of id(z" + logits + ")");
  unit.apply(k, {z}, {m});
  KernelWriter sums = unit.writer("loss-sums");
  for (const std::string& input : {"z" + logits, "m" + tokens, "labels" + tokens}) {
    sums.input(input);
  }
  sums.output("l" + tokens);
  sums.output("t" + tokens);
  sums.line("e" + logits + " = exp_shift(z" + logits + ", m" + tokens + ")");
  sums.line("l" + tokens + " = e" + logits);
  sums.line("h" + logits + " = onehot(labels" + tokens + "; at " + v + ")");
  sums.line("t" + tokens + " = h" + logits + " * z" + logits);
  unit.apply(sums, {z, m, labels}, {l, t});
  KernelWriter loss = unit.writer("loss");
  for (const std::string& input : {"l" + tokens, "m" + tokens, "t" + tokens}) loss.input(input);
  loss.output("y" + tokens);
  loss.line("g" + tokens + " = log(l" + tokens + ")");
  const std::string sum = "g" + tokens + " + m" + tokens + " - t" + tokens;
  if (predicts_further) {
    loss.line("u" + tokens + " = " + sum);
    loss.line("c[] = prediction_weight()");
    loss.line("y" + tokens + " = c[] * u" + tokens);
  } else {
    loss.line("y" + tokens + " = " + sum);
  }
  unit.apply(loss, {l, m, t}, {y});
  unit.add_loss(y);
}

void add_balance_loss(KindBuilder& unit, const std::vector<int>& inputs) {
  const int z = inputs.front();
  const int scores = unit.dims_at(z).back();
  const std::string mark = "balance." + std::to_string(z);
  const bool by_sample = unit.balance() == ReferenceRequest::Balance::sample;
  const Dims counted = by_sample ? Dims{unit.sample(), scores} : Dims{scores};
  const int load = unit.inside(mark + ".load", counted);
  const int y = unit.inside(mark + ".loss", {unit.sample(), unit.token()});
  KernelWriter k = unit.writer("load");
  std::string operands;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const std::string name = "z" + std::to_string(i) + k.list(unit.dims_at(inputs[i]));
    k.input(name);
    operands += (i == 0 ? "" : ", ") + name;
  }
  const std::string scored = k.list(unit.dims_at(z));
  const std::string loads = k.list(unit.dims_at(load));
  const std::string tokens = k.list(unit.dims_at(y));
  k.output("f" + loads);
  k.line("m" + scored + " = chosen." + std::to_string(unit.choices()) + "(" + operands +
         "; whole " + k.named(scores) + ")");
  k.line("f" + loads + " = m" + scored);
  unit.apply(k, inputs, {load});
  KernelWriter loss = unit.writer("balance");
  loss.input("z" + scored);
  loss.input("f" + loads);
  loss.output("y" + tokens);
  loss.line("p" + scored + " = affinity(z" + scored + "; whole " + loss.named(scores) + ")");
  loss.line("c[] = balance_weight()");
  loss.line("y" + tokens + " = c[] * f" + loads + " * p" + scored);
  unit.apply(loss, {z, load}, {y});
  unit.add_loss(y);
}

}  // namespace placet
