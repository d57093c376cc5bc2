#include "lower/mesh.h"

#include <algorithm>
#include <numeric>

#include "lower/writer.h"
#include "units/at.h"
#include "units/error.h"

namespace placet {
namespace {

bool is_group(const ModelReference& model, std::size_t d) { return model.outer[d] > 1; }

bool is_of_heads(Index index) { return index == Index::head || index == Index::kv_head; }

/// The counts of key and value heads after which the tensor axes must have a boundary.
std::vector<std::int64_t> head_counts(const ModelReference& model) {
  std::vector<std::int64_t> counts;
  for (std::size_t d = 0; d < model.dims.size(); ++d) {
    if (is_group(model, d)) counts.push_back(model.outer[d]);
  }
  return counts;
}

bool cuts_heads(const AxisPlacement& axis) {
  return axis.how.cut == Cut::tensor && (contains(axis.how.tensor_indices, Index::head) ||
                                         contains(axis.how.tensor_indices, Index::kv_head));
}

bool cuts_both_sides(const How& how) {
  return contains(how.tensor_indices, Index::hidden) && (how.tensor_indices & kTensorIndices) != 0;
}

/// Factors of an axis of `degree` whose coordinates begin after `before` ones: boundaries at each
/// count of heads that falls inside.
std::vector<std::int64_t> factors_of(std::int64_t degree, std::int64_t before,
                                     const std::vector<std::int64_t>& counts) {
  std::vector<std::int64_t> marks{before, before * degree};
  for (std::int64_t count : counts) {
    if (count <= before || count >= before * degree) continue;
    if (count % before != 0 || (before * degree) % count != 0) {
      refuse("--placement", std::to_string(before * degree),
             "devices cannot share " + std::to_string(count) + " key and value heads evenly");
    }
    marks.push_back(count);
  }
  std::ranges::sort(marks);
  std::vector<std::int64_t> factors;
  for (std::size_t i = 1; i < marks.size(); ++i) {
    if (marks[i] % marks[i - 1] != 0) {
      refuse("--placement", std::to_string(degree), "kinds of blocks need different splits of it");
    }
    if (marks[i] != marks[i - 1]) factors.push_back(marks[i] / marks[i - 1]);
  }
  if (factors.empty()) factors.push_back(1);
  return factors;
}

/// The parts of each axis: those that cut heads divide them first, of these the ones that cut both
/// sides of matrices last, then those that exchange them.
std::vector<std::vector<std::int64_t>> factors_of_axes(const Job& job,
                                                       const ModelReference& model) {
  const std::vector<std::int64_t> counts = head_counts(model);
  const std::vector<AxisPlacement>& axes = job.placement.axes;
  std::vector<std::vector<std::int64_t>> factors;
  factors.reserve(axes.size());
  for (const AxisPlacement& axis : axes) factors.push_back({axis.degree});
  std::int64_t before = 1;
  const auto split = [&](std::size_t a) {
    if (!axes[a].shares.empty()) return;
    factors[a] = factors_of(axes[a].degree, before, counts);
    before *= axes[a].degree;
  };
  for (const bool both : {false, true}) {
    for (std::size_t a = 0; a < axes.size(); ++a) {
      if (cuts_heads(axes[a]) && cuts_both_sides(axes[a].how) == both) split(a);
    }
  }
  for (std::size_t a = 0; a < axes.size(); ++a) {
    if (exchanges_heads(job, a)) split(a);
  }
  return factors;
}

}  // namespace

bool exchanges_heads(const Job& job, std::size_t axis) {
  return job.placement.axes[axis].how.cut == Cut::sequence && axis < job.attention.size() &&
         job.attention[axis].cuts_heads;
}

bool goes_round(const Job& job, std::size_t axis) {
  if (job.placement.axes[axis].how.cut != Cut::sequence || axis >= job.attention.size()) {
    return false;
  }
  return std::ranges::any_of(job.attention[axis].steps, [](const ExchangeStep& step) {
    return step.movement == ExchangeStep::Movement::pieces ||
           step.movement == ExchangeStep::Movement::pieces_sum;
  });
}

Mesh mesh_of(const Job& job, const ModelReference& model) {
  Mesh mesh;
  std::int64_t replicas = 1;
  const auto factors_by_axis = factors_of_axes(job, model);
  for (std::size_t a = 0; a < job.placement.axes.size(); ++a) {
    const AxisPlacement& axis = job.placement.axes[a];
    const std::vector<std::int64_t>& factors = factors_by_axis[a];
    AxisList& parts = mesh.parts.emplace_back();
    for (std::size_t f = 0; f < factors.size(); ++f) {
      parts.push_back(static_cast<int>(mesh.axes.size()));
      const std::string mark = factors.size() > 1 ? "." + std::to_string(f) : "";
      const bool shared = !axis.shares.empty() && axis.how.cut != Cut::layer;
      mesh.axes.push_back({.name = std::string(axis.axis.text()) + mark,
                           .degree = factors[f],
                           .shares = shared ? axis.shares : std::vector<std::int64_t>{}});
    }
    if (axis.how.cut == Cut::batch || axis.how.cut == Cut::expert) replicas *= axis.degree;
  }
  const std::int64_t together = job.batch.micro * replicas;
  if (together < 1 || job.batch.global % together != 0) {
    refuse("--global-batch", std::to_string(job.batch.global),
           "is not a whole number of micro-batches on all replicas");
  }
  mesh.micro_batches = job.batch.global / together;
  mesh.axes.push_back({.name = "micro-batch", .degree = mesh.micro_batches, .shares = {}});
  return mesh;
}

const How& Layouts::experts(std::size_t a) const {
  return how_of(axis(a), bit_of(TensorClass::experts), std::nullopt);
}

const How& Layouts::how_at(std::size_t a, Place place) const {
  return place == Place::routed ? experts(a) : axis(a).how;
}

bool Layouts::is_batch(std::size_t a) const {
  return axis(a).how.cut == Cut::batch || axis(a).how.cut == Cut::expert;
}

bool Layouts::splits_stream(std::size_t a) const {
  return axis(a).how.cut == Cut::tensor && axis(a).how.modes.activations == Mode::sharded_gather;
}

Division Layouts::division(int dim, Place place) const {
  switch (model_.indices[at(dim)]) {
    case Index::sample:
      return samples(place);
    case Index::token:
      return tokens(place);
    case Index::key_token:
    case Index::latent:
    case Index::head_size:
    case Index::position:
    case Index::other:
      return {};
    case Index::choice:
    case Index::hidden:
    case Index::head:
    case Index::kv_head:
    case Index::ffn:
    case Index::vocab:
    case Index::expert:
    case Index::adapter:
    case Index::state:
      return cut(dim, place);
  }
  fail_internally("every index has a division");
}

/// Micro-batches first, then the devices that share one.
Division Layouts::samples(Place place) const {
  Division division;
  if (mesh_.micro_batches > 1) division.push_back({mesh_.micro_axis()});
  // Axes that divide no samples among experts divide last: what comes together there are
  // neighbours.
  const auto of = [&](bool everywhere) {
    return axes_where(
        [&](std::size_t a) { return is_batch(a) && (experts(a).cut == Cut::batch) == everywhere; });
  };
  for (const AxisList& level : {of(true), place == Place::routed ? AxisList{} : of(false)}) {
    if (!level.empty()) division.push_back(level);
  }
  return division;
}

Division Layouts::tokens(Place place) const {
  Division division;
  const AxisList sequence = axes_where([&](std::size_t a) {
    if (axis(a).how.cut != Cut::sequence) return false;
    if (place == Place::core && exchanges_heads(job_, a)) return false;
    return place != Place::routed || experts(a).cut == Cut::sequence;
  });
  if (!sequence.empty()) division.push_back(sequence);
  const AxisList split = axes_where([&](std::size_t a) {
    if (!splits_stream(a) || place == Place::parallel || place == Place::core) return false;
    return place != Place::routed ||
           (experts(a).cut != Cut::tensor && experts(a).cut != Cut::expert);
  });
  if (!split.empty()) division.push_back(split);
  return division;
}

Division Layouts::keys() const {
  const AxisList ring = axes_where([&](std::size_t a) { return goes_round(job_, a); });
  return ring.empty() ? Division{} : Division{ring};
}

Division Layouts::cut(int dim, Place place) const {
  const Index index = model_.indices[at(dim)];
  if (place == Place::core) return heads(dim);
  AxisList axes;
  if (index == Index::expert) {
    axes = axes_where([&](std::size_t a) {
      if (experts(a).cut != Cut::expert) return false;
      // Where every device of the axis has the tokens, results are summed instead of sent.
      const bool whole = axis(a).how.cut == Cut::tensor && !splits_stream(a);
      return place == Place::routed || (place == Place::edge && whole);
    });
  } else if (index == Index::hidden || place == Place::parallel || place == Place::routed) {
    axes = heads_part(dim, axes_cutting(index, place));
  }
  return axes.empty() ? Division{} : Division{axes};
}

/// Inside the attention core: what tensor axes have cut is divided further by those that exchange
/// heads.
Division Layouts::heads(int dim) const {
  Division division = cut(dim, Place::parallel);
  const Index index = model_.indices[at(dim)];
  if (!is_of_heads(index)) return division;
  AxisList all = axes_cutting(index, Place::parallel);
  const AxisList exchanging = axes_where([&](std::size_t a) { return exchanges_heads(job_, a); });
  all.insert(all.end(), exchanging.begin(), exchanging.end());
  if (AxisList more = common(heads_part(dim, all), exchanging); !more.empty()) {
    division.push_back(std::move(more));
  }
  return division;
}

/// Of the axes that cut heads, those that divide this dim: key and value heads as many as there
/// are, the queries of each by what is left.
AxisList Layouts::heads_part(int dim, const AxisList& axes) const {
  const Index index = model_.indices[at(dim)];
  if (!is_of_heads(index)) return axes;
  const bool group = is_group(model_, at(dim));
  const std::int64_t outer = group ? model_.outer[at(dim)] : model_.dims[at(dim)].extent;
  AxisList first;
  AxisList rest;
  std::int64_t product = 1;
  for (int a : axes) {
    if (product < outer) {
      first.push_back(a);
      product *= mesh_.axes[at(a)].degree;
    } else {
      rest.push_back(a);
    }
  }
  return group ? rest : first;
}

/// The indices of a parameter's dims. Rows of a head without a dim of heads before them are of the
/// only key and value head.
std::vector<Index> Layouts::indices_of(const std::vector<int>& dims) const {
  std::vector<Index> indices;
  for (const int dim : dims) {
    const Index index = model_.indices[at(dim)];
    const bool only_head = index == Index::head_size && std::ranges::none_of(indices, is_of_heads);
    indices.push_back(only_head ? Index::kv_head : index);
  }
  return indices;
}

/// Axes that cut both sides of matrices divide last, as what they divide comes together.
AxisList Layouts::axes_cutting(Index index, Place place) const {
  const auto cutting = [&](bool both) {
    return axes_where([&](std::size_t a) {
      const How& how = how_at(a, place);
      return how.cut == Cut::tensor && contains(how.tensor_indices, index) &&
             cuts_both_sides(how) == both;
    });
  };
  AxisList axes = cutting(false);
  const AxisList both = cutting(true);
  axes.insert(axes.end(), both.begin(), both.end());
  return axes;
}

bool Layouts::are_of_cuts(const AxisList& axes, const std::vector<int>& dims, Place place) const {
  AxisList cutting;
  for (const Index index : indices_of(dims)) cutting = united(cutting, axes_cutting(index, place));
  return minus(axes, cutting).empty();
}

/// Heads and the queries of each are one dim of the parameter.
void Layouts::leave_to_first(const std::vector<int>& dims, Place place,
                             const std::vector<Division*>& by) const {
  const std::vector<Index> indices = indices_of(dims);
  AxisList taken;
  for (std::size_t d = 0; d < dims.size(); ++d) {
    const bool goes_on = d > 0 && is_of_heads(indices[d - 1]) && is_of_heads(indices[d]);
    if (d > 0 && !goes_on) taken = united(taken, axes_cutting(indices[d - 1], place));
    for (AxisList& level : *by[d]) level = minus(level, taken);
    std::erase_if(*by[d], [](const AxisList& level) { return level.empty(); });
  }
}

std::vector<Division> Layouts::parameter_divisions(const std::vector<int>& dims,
                                                   ClassSet classes) const {
  constexpr IndexSet kCut = kTensorIndices | bit_of(Index::hidden) | bit_of(Index::expert);
  const Place place = contains(classes, TensorClass::experts) ? Place::routed : Place::parallel;
  std::vector<Division> by;
  std::vector<Division*> all;
  by.reserve(dims.size());
  for (const int dim : dims) {
    by.push_back(contains(kCut, model_.indices[at(dim)]) ? cut(dim, place) : Division{});
    all.push_back(&by.back());
  }
  leave_to_first(dims, place, all);
  return by;
}

}  // namespace placet
