// Drawing faults.
#include <algorithm>

#include "mutation/mutants.h"
#include "units/error.h"

namespace placet::testing {
namespace {

std::vector<std::string> axis_names(const Program& program) {
  std::vector<std::string> names;
  for (std::size_t a = 0; a + 1 < program.axes.size(); ++a) {
    if (program.axes[a].degree > 1) names.push_back(program.axes[a].name);
  }
  return names;
}

class Drawer {
 public:
  Drawer(const Program& program, std::mt19937& generator)
      : program_(program), generator_(generator), axes_(axis_names(program)) {
    for (std::size_t a = 0; a + 1 < program.axes.size(); ++a) ranks_ *= program.axes[a].degree;
  }

  std::vector<Fault> draw(int per_kind) {
    std::vector<Fault> faults;
    for (int op = 0; op < kFaultOpCount; ++op) {
      for (const std::string& argument : arguments(static_cast<FaultOp>(op))) {
        add(static_cast<FaultOp>(op), argument, per_kind, faults);
      }
    }
    return faults;
  }

 private:
  std::size_t below(std::size_t n) {
    return static_cast<std::size_t>(generator_() % std::max<std::size_t>(n, 1));
  }

  /// Words behind the kind, a few of those that the operation has.
  std::vector<std::string> arguments(FaultOp op) {
    std::vector<std::string> all = {""};
    if (op == FaultOp::move) all = {", by=-1", ", by=1", ", by=-3", ", by=4", ", by=-12"};
    if (op == FaultOp::shift_slice) all = {", by=1", ", by=-1"};
    if (op == FaultOp::reduce_op) all = {", to=mean", ", to=max", ", to=min"};
    if (op == FaultOp::substitute) all = {", to=slice", ", to=copy", ", to=broadcast"};
    if (op == FaultOp::compress || op == FaultOp::mask) all = {", by=some"};
    if (op == FaultOp::redim) all = {", to=0", ", to=1", ", to=2"};
    if (op == FaultOp::reuse_buffer) all = {", of=*"};
    if (op == FaultOp::swap_order) all = {", with=1", ", with=2"};
    if (op == FaultOp::rescale) {
      all = {", by=m", ", by=1/m", ", by=2", ", by=1/tokens"};
      for (const std::string& axis : axes_) {
        all.push_back(", by=" + axis);
        all.push_back(", by=1/" + axis);
      }
    }
    if (op == FaultOp::regroup) all = groups();
    std::shuffle(all.begin(), all.end(), generator_);
    if (all.size() > 3) all.resize(3);
    return all;
  }

  std::vector<std::string> groups() const {
    std::vector<std::string> all;
    for (std::size_t set = 1; set < std::size_t{1} << axes_.size(); ++set) {
      std::string names;
      for (std::size_t a = 0; a < axes_.size(); ++a) {
        if ((set >> a & 1U) != 0) names += (names.empty() ? "" : "*") + axes_[a];
      }
      all.push_back(", to=" + names);
    }
    return all;
  }

  void add(FaultOp op, const std::string& argument, int per_kind, std::vector<Fault>& faults) {
    const std::string head = std::string(name_of(op)) + "(";
    const Fault any = fault_from(head + "any" + argument + ")");
    std::map<InstructionKind, int> counts;
    for (const FaultMatch& match : list_matches(program_, any)) ++counts[match.kind];
    for (const auto& [kind, count] : counts) {
      for (int k = 0; k < std::min(per_kind, count); ++k) {
        const std::string everywhere = head + std::string(name_of(kind)) + argument;
        std::string text = everywhere + scope();
        std::size_t matches = matches_of(text);
        if (matches == 0) matches = matches_of(text = everywhere);
        if (matches == 0) continue;
        faults.push_back(fault_from(text + ", nth=" + std::to_string(1 + below(matches)) + ")"));
      }
    }
  }

  std::size_t matches_of(const std::string& text) const {
    return list_matches(program_, fault_from(text + ")")).size();
  }

  /// On all devices, on one, in one layer, step or micro-batch, or in one of these on one device.
  std::string scope() {
    switch (below(10)) {
      case 0:
      case 1:
        return "";
      case 2:
      case 3:
        return ", rank=" + std::to_string(below(static_cast<std::size_t>(ranks_)));
      case 4:
        return ", rank=" + std::to_string(below(static_cast<std::size_t>(ranks_))) + part();
      default:
        return part();
    }
  }

  std::string part() {
    switch (below(4)) {
      case 0:
        return ", layer=" + std::to_string(below(2));
      case 1:
        return ", step=" + std::to_string(1 + below(2));
      default:
        return ", microbatch=" + std::to_string(below(2));
    }
  }

  const Program& program_;
  std::mt19937& generator_;
  std::vector<std::string> axes_;
  std::int64_t ranks_ = 1;
};

}  // namespace

std::vector<Fault> draw_faults(const Program& program, std::mt19937& generator, int per_kind) {
  return Drawer(program, generator).draw(per_kind);
}

}  // namespace placet::testing
