#include "program/model_reference.h"

#include <algorithm>
#include <utility>

#include "program/kind_builder.h"
#include "units/at.h"
#include "units/error.h"

namespace placet {
namespace {

class Builder {
 public:
  Builder(const Model& model, const ReferenceRequest& request)
      : model_(model), request_(request), unit_(out_, request) {}

  ModelReference build() {
    const int sample = unit_.sample();
    const int token = unit_.token();
    Reference& r = out_.reference;
    r.inputs = {
        {"ids", {sample, token}}, {"labels", {sample, token}}, {"weights", {sample, token}}};
    r.weights = 2;
    if (predictions() > 0) {
      r.inputs.push_back({"next-labels", {sample, token}});
      unit_.set_predicts_further();
    }
    add_step_kernels();
    for (const UnitKind& kind : model_.kinds) add_kind(kind);
    for (const Unit& unit : model_.units) r.units.push_back({unit.kind, unit.number});
    tie_parameters();
    r.choices = {"loss: mean over the weighted tokens of the global batch", balance(),
                 "capacity: none", "random numbers: by logical position"};
    if (request_.scales_loss) {
      r.choices.push_back("loss scale: dynamic; a step in which a gradient overflows is skipped");
    }
    if (predictions() > 0) {
      r.choices.push_back(
          "multi-token prediction: its loss is added with one weight for all tokens");
    }
    if (unit_.fuses_matrices()) {
      r.choices.emplace_back("matrices of one fused tensor: each orthogonalised by itself");
    }
    for (const std::string& term : model_.left_out) r.choices.push_back("not in it: " + term);
    return std::move(out_);
  }

 private:
  /// Modules that predict further tokens.
  std::int64_t predictions() const {
    const auto modules = std::ranges::count_if(model_.units, [&](const Unit& unit) {
      return model_.kinds[at(unit.kind)].role == UnitRole::mtp;
    });
    if (modules > 1) refuse_part("a chain of multi-token-prediction modules");
    return modules;
  }

  std::string balance() const {
    switch (request_.balance) {
      case ReferenceRequest::Balance::none:
        return "balance loss: none";
      case ReferenceRequest::Balance::sample:
        return "balance loss: of each sample by itself";
      case ReferenceRequest::Balance::step:
        return "balance loss: of the global batch";
    }
    fail_internally("every scope of a balance loss has its words");
  }

  void add_step_kernels() {
    Reference& r = out_.reference;
    r.count_kernel = unit_.add_kernel("kernel count(w[s t]) -> (n[]) {\n n[] = w[s t]\n}");
    r.seed_kernel = unit_.add_kernel(
        "kernel seed(w[s t], n[]) -> (d[s t]) {\n i[] = inv(n[])\n d[s t] = w[s t] * i[]\n}");
    if (request_.clips) {
      r.norm_kernel =
          unit_.add_kernel("kernel squares(g[...]) -> (q[]) {\n q[] = g[...] * g[...]\n}");
    }
    if (request_.scales_loss) add_scaling();
    if (request_.clips && request_.scales_loss) {
      r.clip_kernel =
          unit_.add_kernel("kernel limit(q[], s[]) -> (c[]) {\n c[] = limited(q[], s[])\n}");
    } else if (request_.clips) {
      r.clip_kernel = unit_.add_kernel("kernel limit(q[]) -> (c[]) {\n c[] = limited(q[])\n}");
    } else if (request_.scales_loss) {
      r.clip_kernel = unit_.add_kernel("kernel unscale(s[]) -> (c[]) {\n c[] = inv(s[])\n}");
    }
    for (std::size_t i = 0; i < request_.rules.size(); ++i) unit_.add_rule(i, nullptr);
  }

  /// The loss is multiplied by a number that grows while steps pass without overflow, and shrinks
  /// with one that has some; such a step changes nothing else (Micikevicius et al., 2018, §3.2).
  void add_scaling() {
    Reference& r = out_.reference;
    r.numbers = {"loss-scale", "steps-without-overflow"};
    r.scale_kernel =
        unit_.add_kernel("kernel scale(d[...], s[]) -> (e[...]) {\n e[...] = d[...] * s[]\n}");
    r.overflow_kernel = unit_.add_kernel(
        "kernel overflow(g[...]) -> (f[]) {\n i[...] = nonfinite(g[...])\n f[] = i[...]\n}");
    r.adjust_kernel = unit_.add_kernel(
        "kernel adjust(s[], k[], f[]) -> (t[], l[]) {\n t[] = rescaled(s[], k[], f[])\n"
        " l[] = counted(k[], f[])\n}");
  }

  void add_kind(const UnitKind& kind) {
    unit_.begin(kind);
    for (std::size_t o = 0; o < kind.operators.size(); ++o) {
      unit_.set_operator(static_cast<int>(o));
      add_operator(unit_, kind.operators[o]);
    }
    unit_.finish();
  }

  void tie_parameters() {
    for (std::size_t k = 0; k < model_.kinds.size(); ++k) {
      const UnitKind& kind = model_.kinds[k];
      for (std::size_t p = 0; p < kind.parameters.size(); ++p) {
        if (kind.parameters[p].tied) tie_parameter(k, p, *kind.parameters[p].tied);
      }
    }
  }

  void tie_parameter(std::size_t kind, std::size_t parameter, const Parameter::Tie& tie) {
    const auto owner = std::ranges::find(model_.units, tie.kind, &Unit::kind);
    ensure(owner != model_.units.end(), "a shared tensor has an owner");
    const std::vector<int>& own = out_.kinds[at(tie.kind)].pieces[at(tie.parameter)];
    const std::vector<int>& here = out_.kinds[kind].pieces[parameter];
    ensure(own.size() == here.size(), "both uses of a shared tensor have its pieces");
    for (std::size_t i = 0; i < here.size(); ++i) {
      out_.reference.kinds[kind].parameters[at(here[i])].tied = {
          .unit = static_cast<int>(owner - model_.units.begin()), .parameter = own[i]};
    }
  }

  const Model& model_;
  const ReferenceRequest& request_;
  ModelReference out_;
  KindBuilder unit_;
};

}  // namespace

ModelReference reference_of(const Model& model, const ReferenceRequest& request) {
  return Builder(model, request).build();
}

}  // namespace placet
