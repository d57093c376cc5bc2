#include "lower/small.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "lower/lower.h"
#include "lower/mesh.h"
#include "lower/stages.h"
#include "units/at.h"
#include "units/checked.h"

namespace placet {
namespace {

/// Key and value heads of the model's attention: tensor axes are kept where they are fewer than the
/// devices.
std::int64_t fewest_kv_heads(const Model& model) {
  std::int64_t fewest = 0;
  for (const UnitKind& kind : model.kinds) {
    for (const Operator& op : kind.operators) {
      if (op.kind != OpKind::attention) continue;
      const std::int64_t heads = kind.values[at(op.inputs.at(1))].dims.back().parts;
      fewest = fewest == 0 ? heads : std::min(fewest, heads);
    }
  }
  return fewest;
}

/// The least divisor of a degree from `from` to eight: what the degree divides evenly is divided
/// evenly then too. Where it has none, `from`.
/// Case: of 8 from 3 on 4; of 97 from 2 on 2, which may divide dims unevenly.
std::int64_t least_divisor(std::int64_t degree, std::int64_t from) {
  constexpr std::int64_t kMost = 8;
  if (degree <= from) return degree;
  for (std::int64_t divisor = from; divisor <= std::min(degree, kMost); ++divisor) {
    if (degree % divisor == 0) return divisor;
  }
  return from;
}

void shorten_axes(Job& job) {
  const auto divides_heads = [&](std::size_t a) {
    return job.placement.axes[a].how.cut == Cut::tensor || exchanges_heads(job, a);
  };
  std::int64_t devices = 1;
  for (std::size_t a = 0; a < job.placement.axes.size(); ++a) {
    if (divides_heads(a)) devices *= job.placement.axes[a].degree;
  }
  const std::int64_t heads = fewest_kv_heads(job.model);
  const bool shares_heads = heads > 1 && devices > heads;
  for (std::size_t a = 0; a < job.placement.axes.size(); ++a) {
    AxisPlacement& axis = job.placement.axes[a];
    if (axis.how.cut == Cut::layer) {
      axis.degree = std::min<std::int64_t>(axis.degree, 2);
      axis.shares.clear();
    } else if (axis.shares.empty() && !(shares_heads && divides_heads(a))) {
      // On a ring of two the device before a device is the one behind it.
      axis.degree = least_divisor(axis.degree, goes_round(job, a) ? 3 : 2);
    }
  }
}

std::int64_t stages_of_pipeline(const Job& job) {
  const int layer = layer_axis(job.placement);
  if (layer < 0) return 1;
  return virtual_stages(job.schedule, job.placement.axes[at(layer)].degree);
}

/// The first two blocks of each kind, and more of the last kind until every stage has one.
void drop_blocks(Job& job) {
  const std::int64_t least = std::max<std::int64_t>(2, stages_of_pipeline(job));
  std::map<int, int> seen;
  std::vector<Unit> blocks;
  std::vector<Unit> rest;
  std::vector<Unit> more;
  for (const Unit& unit : job.model.units) {
    if (job.model.kinds[at(unit.kind)].role != UnitRole::block) {
      (blocks.empty() && more.empty() ? blocks : rest).push_back(unit);
      continue;
    }
    (++seen[unit.kind] <= 2 ? blocks : more).push_back(unit);
  }
  std::vector<Unit> units = blocks;
  std::int64_t count = static_cast<std::int64_t>(std::ranges::count_if(
      units, [&](const Unit& u) { return job.model.kinds[at(u.kind)].role == UnitRole::block; }));
  for (const Unit& unit : more) {
    if (count >= least) break;
    units.push_back(unit);
    ++count;
  }
  std::ranges::sort(units, [&](const Unit& a, const Unit& b) {
    const bool first = job.model.kinds[at(a.kind)].role != UnitRole::block;
    const bool second = job.model.kinds[at(b.kind)].role != UnitRole::block;
    if (first != second) return first;
    return a.number < b.number;
  });
  units.insert(units.end(), rest.begin(), rest.end());
  job.model.units = std::move(units);
  job.model.figures.blocks = count;
}

/// The fewest samples of which each device has its share in every micro-batch. Case: shares 2,1,1:
/// 12 samples, 6 and 3 and 3, are 4 per device in the mean.
void shorten_batch(Job& job, std::int64_t micro_batches) {
  std::int64_t replicas = 1;
  job.batch.micro = 1;
  for (const AxisPlacement& axis : job.placement.axes) {
    if (axis.how.cut != Cut::batch && axis.how.cut != Cut::expert) continue;
    replicas *= axis.degree;
    if (axis.shares.empty()) continue;
    const auto all = std::accumulate(axis.shares.begin(), axis.shares.end(), std::int64_t{0});
    job.batch.micro = std::lcm(job.batch.micro, all / std::gcd(all, axis.degree));
  }
  job.batch.global = checked_multiply(checked_multiply(replicas, job.batch.micro, "samples"),
                                      micro_batches, "samples");
}

/// Dims that are bound to one dim of a kernel have one extent.
class Extents {
 public:
  Extents(const Program& program, std::int64_t fewest) : program_(program), fewest_(fewest) {
    parent_.resize(program.dims.size());
    std::iota(parent_.begin(), parent_.end(), 0);
    least_.assign(program.dims.size(), 1);
  }

  void join_kernels() {
    for (const Procedure& p : program_.procedures) join_body(p.body);
    for (const DeviceClass& c : program_.classes) join_body(c.body);
  }

  /// Where a code compares positions with each other, the first entry may see nothing but itself:
  /// no part may be that entry alone.
  void lengthen_compared() {
    for (const auto& [dim, parts] : placed_) {
      const int mine = root(dim);
      const auto is_mine = [&](int d) { return root(d) == mine; };
      if (std::ranges::none_of(compared_, is_mine)) continue;
      least_[at(mine)] = std::lcm(least_[at(mine)], checked_multiply(2, parts, "parts of a dim"));
    }
  }

  void read_divisions() {
    const auto read = [&](const DividedDim& d) {
      std::int64_t& least = least_[at(root(d.dim))];
      const std::int64_t parts = parts_of(d.by);
      least = std::lcm(least, parts);
      if (program_.dims[at(d.dim)].extent % parts != 0) uneven_.insert(root(d.dim));
    };
    for (const Family& family : program_.families) {
      for (const PieceType& piece : family.type.pieces) std::ranges::for_each(piece.dims, read);
    }
  }

  std::int64_t extent_of(int dim) {
    const std::int64_t parts = least_[at(root(dim))];
    const std::int64_t least = (fewest_ + parts - 1) / parts * parts;
    return uneven_.contains(root(dim)) ? least + 1 : least;
  }

 private:
  int root(int d) {
    while (parent_[at(d)] != d) d = parent_[at(d)];
    return d;
  }

  void unite(int a, int b) {
    if (a < 0 || b < 0 || root(a) == root(b)) return;
    parent_[at(root(b))] = root(a);
  }

  void join_body(const std::vector<Step>& body) {
    for (const Step& step : body) {
      const auto* i = std::get_if<Instruction>(&step.what);
      if (i != nullptr && calls_kernel(i->kind)) join(*i);
      if (const auto* loop = std::get_if<Loop>(&step.what)) join_body(loop->body);
    }
  }

  void join(const Instruction& i) {
    const Kernel& kernel = program_.kernels[at(i.kernel)];
    std::vector<int> bound(kernel.dims.size(), -1);
    std::vector<BufferRef> refs = i.inputs;
    refs.insert(refs.end(), i.outputs.begin(), i.outputs.end());
    for (std::size_t t = 0; t < refs.size(); ++t) {
      const BufferType& type = program_.families[at(refs[t].family)].type;
      const PieceType& piece = type.pieces[refs[t].piece < 0 ? 0 : at(refs[t].piece)];
      const std::vector<int>& dims = kernel.tensors[t].dims;
      if (dims.size() == piece.dims.size()) bind(kernel, dims, piece, bound);
    }
    for (std::size_t d = 0; d < bound.size(); ++d) {
      if (kernel.dims[d].like >= 0) unite(bound[at(kernel.dims[d].like)], bound[d]);
    }
    note_compared(kernel, bound);
  }

  void bind(const Kernel& kernel, const std::vector<int>& dims, const PieceType& piece,
            std::vector<int>& bound) {
    const std::vector<int> positions = positions_of(kernel);
    for (std::size_t d = 0; d < dims.size(); ++d) {
      if (kernel.dims[at(dims[d])].name == kAnyDims) continue;
      const auto& [dim, by, shift] = piece.dims[d];
      unite(bound[at(dims[d])], dim);
      bound[at(dims[d])] = dim;
      const bool placed = std::ranges::find(positions, dims[d]) != positions.end();
      if (placed) placed_.emplace(dim, parts_of(by));
    }
  }

  /// Positions that are compared run over the same range: a table has a row for every token.
  void note_compared(const Kernel& kernel, const std::vector<int>& bound) {
    for (const Statement& s : kernel.statements) {
      if (s.positions.size() < 2 || draws(s.function)) continue;
      for (const int d : s.positions) {
        if (bound[at(d)] >= 0) compared_.insert(bound[at(d)]);
        unite(bound[at(s.positions.front())], bound[at(d)]);
      }
    }
  }

  std::int64_t parts_of(const Division& division) const {
    std::int64_t parts = 1;
    for (const AxisList& level : division) {
      for (int a : level) {
        const ProgramAxis& axis = program_.axes[at(a)];
        const std::int64_t n =
            axis.shares.empty()
                ? axis.degree
                : std::accumulate(axis.shares.begin(), axis.shares.end(), std::int64_t{0});
        parts = checked_multiply(parts, n, "parts of a dim");
      }
    }
    return parts;
  }

  const Program& program_;
  std::int64_t fewest_;  // entries of a dim
  std::vector<int> parent_;
  std::vector<std::int64_t> least_;
  std::set<int> uneven_;                           // roots of dims that their parts do not divide
  std::set<std::pair<int, std::int64_t>> placed_;  // dims that positions are taken of, their parts
  std::set<int> compared_;                         // dims of positions that one function takes both
};

}  // namespace

Job small_job(const Job& job) {
  Job small = job;
  shorten_axes(small);
  drop_blocks(small);
  std::int64_t replicas = 1;
  for (const AxisPlacement& axis : job.placement.axes) {
    if (axis.how.cut == Cut::batch || axis.how.cut == Cut::expert) replicas *= axis.degree;
  }
  const std::int64_t asked = std::max<std::int64_t>(
      1, job.batch.global / std::max<std::int64_t>(1, replicas * job.batch.micro));
  shorten_batch(small, std::min<std::int64_t>(asked, layer_axis(small.placement) < 0 ? 2 : 4));
  return small;
}

Program with_short_dims(Program program, std::int64_t least) {
  Extents extents(program, least);
  extents.join_kernels();
  extents.read_divisions();
  extents.lengthen_compared();
  std::vector<LogicalDim> dims = program.dims;
  for (std::size_t d = 0; d < dims.size(); ++d) {
    dims[d].extent = extents.extent_of(static_cast<int>(d));
    dims[d].chosen = std::min(dims[d].chosen, dims[d].extent);
  }
  program.dims = std::move(dims);
  return program;
}

Program lower_small(const Job& job, std::int64_t least) {
  require_program(job);
  return with_short_dims(lower(small_job(job)), least);
}

}  // namespace placet
