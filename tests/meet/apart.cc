#include "meet/apart.h"

#include <algorithm>
#include <numeric>

#include "schedule/schedule.h"

namespace placet::testing {
namespace {

/// Whether several devices that exchange heads need the same key and value head: keys then travel
/// as a gather in the program, and copied for each of them in the closed form.
bool shares_exchanged_heads(const Job& job) {
  std::int64_t devices = 1;
  bool exchanges = false;
  for (std::size_t a = 0; a < job.placement.axes.size(); ++a) {
    const AxisPlacement& axis = job.placement.axes[a];
    const bool heads = axis.how.cut == Cut::sequence && job.attention[a].cuts_heads;
    if (heads || axis.how.cut == Cut::tensor) devices *= axis.degree;
    exchanges = exchanges || heads;
  }
  return exchanges && job.model.figures.kv_heads % devices != 0;
}

bool is_tensor(const AxisPlacement& axis) { return axis.how.cut == Cut::tensor && axis.degree > 1; }

bool divides_stream(const AxisPlacement& axis) {
  return is_tensor(axis) && axis.how.modes.activations == Mode::sharded_gather;
}

/// Whether the stream's columns come together for products, which are cut in their outputs.
bool cuts_both_sides(const AxisPlacement& axis) {
  const IndexSet indices = axis.how.tensor_indices;
  return is_tensor(axis) && contains(indices, Index::hidden) && (indices & kTensorIndices) != 0;
}

/// Whether tensor axes cut by more devices than there are key and value heads.
bool shares_heads(const Job& job) {
  std::int64_t devices = 1;
  for (const AxisPlacement& axis : job.placement.axes) {
    if (is_tensor(axis) && contains(axis.how.tensor_indices, Index::head)) devices *= axis.degree;
  }
  return job.model.figures.kv_heads % devices != 0;
}

/// Whether a tensor axis divides the stream's tokens.
bool divides_tokens(const Job& job) {
  return std::ranges::any_of(job.placement.axes, [](const AxisPlacement& axis) {
    return divides_stream(axis) && !contains(axis.how.tensor_indices, Index::hidden);
  });
}

/// Whether each device of an axis has the keys and values of all of its tokens.
bool gathers_keys(const Job& job) {
  for (std::size_t a = 0; a < job.placement.axes.size(); ++a) {
    const AxisPlacement& axis = job.placement.axes[a];
    const bool tokens = axis.degree > 1 && axis.how.cut == Cut::sequence;
    if (tokens && !job.attention[a].cuts_heads) return true;
  }
  return false;
}

/// Whether heads are exchanged for tokens: what the core makes is kept in both layouts by the
/// program, in one by the closed form.
bool exchanges_heads(const Job& job) {
  for (std::size_t a = 0; a < job.placement.axes.size(); ++a) {
    const AxisPlacement& axis = job.placement.axes[a];
    if (axis.degree > 1 && axis.how.cut == Cut::sequence && job.attention[a].cuts_heads)
      return true;
  }
  return false;
}

/// Whether a module that is made again sums or exchanges values along some axis, or its work is cut
/// and backward split.
bool repeats_messages(const Job& job) {
  if (job.recompute.kind != Recompute::Kind::selective) return false;
  const auto cuts = [&](Cut cut) {
    return std::ranges::any_of(job.placement.axes, [&](const AxisPlacement& axis) {
      return axis.degree > 1 && axis.how.cut == cut;
    });
  };
  const bool tensor = cuts(Cut::tensor);
  const bool tokens = cuts(Cut::sequence);
  if (splits_backward(job.schedule.order) && (tensor || tokens)) return true;
  return std::ranges::any_of(job.recompute.modules, [&](Module module) {
    const bool attends = module == Module::attention || module == Module::core_attention;
    const bool sums = module == Module::attention || module == Module::mlp ||
                      module == Module::moe || module == Module::shared_expert ||
                      module == Module::residual;
    return (tokens && attends) || (tensor && sums);
  });
}

/// Elements of each segment of a fused tensor that a device holds after tensor cuts of `degree`; of
/// key and value heads that several devices share, each has whole ones.
std::vector<std::int64_t> local_rows(const Parameter& parameter, std::int64_t degree,
                                     std::int64_t kv_heads) {
  std::int64_t rows = 0;
  for (const Dim& segment : parameter.segments) rows += segment.size;
  std::vector<std::int64_t> out;
  for (const Dim& segment : parameter.segments) {
    const bool shared = segment.index == Index::kv_head;
    const std::int64_t parts = shared ? std::gcd(degree, kv_heads) : degree;
    out.push_back(elements_of(parameter.dims) / rows * segment.size / parts);
  }
  return out;
}

/// Whether query, key and value rows are one tensor of which devices hold the same heads, and axes
/// divide its rows unevenly: the program has two rows of elements, the closed form one.
bool divides_shared_heads(const Job& job) {
  std::int64_t tensor = 1;
  std::int64_t data = 1;
  bool shares = false;
  for (const AxisPlacement& axis : job.placement.axes) {
    if (axis.how.cut == Cut::tensor) tensor *= axis.degree;
    const bool divides = axis.how.cut == Cut::batch || axis.how.cut == Cut::sequence;
    if (divides) data *= axis.degree;
    shares = shares || (divides && !axis.shares.empty());
  }
  const std::int64_t kv_heads = job.model.figures.kv_heads;
  if (data == 1 || kv_heads % tensor == 0) return false;
  const auto uneven = [&](const Parameter& parameter) {
    return std::ranges::any_of(local_rows(parameter, tensor, kv_heads),
                               [&](std::int64_t rows) { return shares || rows % data != 0; });
  };
  return std::ranges::any_of(job.model.kinds, [&](const UnitKind& kind) {
    return std::ranges::any_of(kind.parameters, uneven);
  });
}

/// Whether parameters made from their master are kept, while another axis divides the master.
bool keeps_made(const Job& job) {
  return std::ranges::any_of(job.placement.axes, [](const AxisPlacement& axis) {
    return axis.how.modes.parameters == Mode::materialized && axis.how.keep != Keep::none;
  });
}

/// Whether two stages share a tensor, as they do all of them in a bidirectional pipeline: replicas
/// and hosts are one group of the closed form, two of the program.
bool shares_between_stages(const Job& job) {
  const bool pipelined = std::ranges::any_of(job.placement.axes, [](const AxisPlacement& axis) {
    return axis.how.cut == Cut::layer && axis.degree > 1;
  });
  const bool both_ways = job.schedule.hosting == Hosting::bidirectional;
  const auto is_tied = [&](const Parameter& p) { return both_ways || p.tied.has_value(); };
  return pipelined && std::ranges::any_of(job.model.kinds, [&](const UnitKind& kind) {
           return std::ranges::any_of(kind.parameters, is_tied);
         });
}

/// Whether gathered parameters stay to their backward in a pipeline: the program keeps those of a
/// chunk as long as one of its micro-batches is under way, the closed form each to its backward.
bool keeps_for_chunks(const Job& job) {
  const auto keeps = [](const AxisPlacement& axis) { return axis.how.keep == Keep::backward; };
  const auto stages = [](const AxisPlacement& axis) {
    return axis.how.cut == Cut::layer && axis.degree > 1;
  };
  const Profile& profile = job.profile;
  const bool engine = profile.last_unit_stays_gathered || profile.last_block_stays_gathered ||
                      profile.reuse_elements > 0;
  return (engine || std::ranges::any_of(job.placement.axes, keeps)) &&
         std::ranges::any_of(job.placement.axes, stages);
}

/// Whether shares divide heads of which several devices hold the same.
bool shares_torn_heads(const Job& job) {
  std::int64_t devices = 1;
  bool shares = false;
  for (const AxisPlacement& axis : job.placement.axes) {
    if (!is_tensor(axis)) continue;
    devices *= axis.degree;
    shares = shares || !axis.shares.empty();
  }
  return shares && job.model.figures.kv_heads < devices;
}

bool goes_round_with_shares(const Job& job) {
  for (std::size_t a = 0; a < job.placement.axes.size(); ++a) {
    const AxisPlacement& axis = job.placement.axes[a];
    const bool round = axis.degree > 1 && axis.how.cut == Cut::sequence && axis.attention &&
                       axis.attention->word == "ring";
    if (round && !axis.shares.empty()) return true;
  }
  return false;
}

bool offloads_activations(const Job& job) {
  return std::ranges::any_of(job.placement.axes, [](const AxisPlacement& axis) {
    return axis.how.modes.activations == Mode::offloaded;
  });
}

/// Whether experts are not cut along an axis that cuts all else by its tensors: the closed form
/// then has what their devices add up where the program puts parts together, or the other way
/// round.
bool cuts_experts_otherwise(const Job& job) {
  if (job.model.figures.experts == 0) return false;
  return std::ranges::any_of(job.placement.axes, [](const AxisPlacement& axis) {
    return is_tensor(axis) && std::ranges::any_of(axis.overrides, [](const Override& one) {
             return one.how.cut != Cut::tensor;
           });
  });
}

/// Whether experts are exchanged along an axis that cuts the sequence, beside one that divides the
/// stream's tokens further: the program puts these together first, as they stand inside.
bool exchanges_over_sequence(const Job& job) {
  const std::vector<AxisPlacement>& axes = job.placement.axes;
  const auto exchanges = [](const AxisPlacement& axis) {
    return axis.how.cut == Cut::sequence &&
           std::ranges::any_of(axis.overrides,
                               [](const Override& one) { return one.how.cut == Cut::expert; });
  };
  return std::ranges::any_of(axes, exchanges) && std::ranges::any_of(axes, divides_stream);
}

bool rests_on_host(const Job& job, State state) {
  return std::ranges::any_of(job.placement.axes, [&](const AxisPlacement& axis) {
    return axis.how.modes[state] == Mode::offloaded;
  });
}

bool has_stages(const Job& job) {
  return std::ranges::any_of(job.placement.axes, [](const AxisPlacement& axis) {
    return axis.how.cut == Cut::layer && axis.degree > 1;
  });
}

/// Whether experts add biases, as those of gpt-oss do: a vector for each of them.
bool has_biased_experts(const Job& job) {
  const auto is_one = [](const Parameter& p) {
    return contains(p.classes, TensorClass::experts) && p.dims.size() == 2 &&
           p.dims.front().index == Index::expert;
  };
  return std::ranges::any_of(job.model.kinds, [&](const UnitKind& kind) {
    return std::ranges::any_of(kind.parameters, is_one);
  });
}

/// What makes messages differ; a class of tensors may be treated apart.
const char* messages_apart(const Job& job) {
  const std::vector<AxisPlacement>& axes = job.placement.axes;
  if (exchanges_over_sequence(job)) return "messages: experts exchanged over a divided stream";
  const bool whole = std::ranges::any_of(
      axes, [](const AxisPlacement& axis) { return is_tensor(axis) && !divides_stream(axis); });
  if (job.model.figures.experts > 0 && whole && std::ranges::any_of(axes, divides_stream)) {
    return "messages: experts' results, the stream divided along one of two tensor axes";
  }
  if (has_biased_experts(job) && std::ranges::any_of(axes, divides_stream)) {
    return "messages: biases of experts behind a tensor cut, over a divided stream";
  }
  const bool both_sides = std::ranges::any_of(axes, cuts_both_sides);
  if (both_sides && exchanges_heads(job)) {
    return "messages: columns come together beside exchanged heads";
  }
  if (both_sides && divides_tokens(job)) {
    return "messages: columns come together beside divided tokens";
  }
  if (both_sides && shares_heads(job)) return "messages: columns of heads that devices share";
  if (exchanges_heads(job) && gathers_keys(job)) {
    return "messages: keys and values exchanged along one axis and gathered along another";
  }
  if (job.profile.layer_cut_defers_sharding && rests_on_host(job, State::parameters) &&
      has_stages(job)) {
    return "messages: parameters in host memory, held over a pipeline";
  }
  if (shares_between_stages(job)) return "messages: a tensor that two stages share";
  return nullptr;
}

/// Whether parameters that are not gathered are small and rest in host memory, along an axis that
/// keeps what is gathered: the closed form counts them as kept too, but copies them in again.
bool keeps_small_on_host(const Job& job) {
  return job.profile.persistent_elements > 0 &&
         std::ranges::any_of(job.placement.axes, [](const AxisPlacement& axis) {
           return axis.how.keep != Keep::none && axis.how.modes.parameters == Mode::offloaded;
         });
}

const char* peaks_apart(const Job& job) {
  const std::vector<AxisPlacement>& axes = job.placement.axes;
  if (std::ranges::any_of(axes, divides_stream)) {
    return "peaks: the stream is divided along a tensor axis";
  }
  if (std::ranges::any_of(axes, cuts_both_sides)) {
    return "peaks: columns of the stream come together";
  }
  if (shares_between_stages(job) && job.schedule.hosting == Hosting::vee) {
    return "peaks: a tensor of two units on one device of a pipeline";
  }
  if (keeps_small_on_host(job)) return "peaks: small tensors in host memory beside kept ones";
  if (keeps_for_chunks(job)) return "peaks: parameters kept to backward in a pipeline";
  if (splits_backward(job.schedule.order) && offloads_activations(job)) {
    return "peaks: activations in host memory beside a split backward";
  }
  return nullptr;
}

}  // namespace

const char* unseen(const Job& job) {
  if (shares_exchanged_heads(job)) return "fewer key and value heads than devices exchange";
  const Optimizer& o = job.optimizer;
  if (o.region != UpdateRegion::element) return "an optimizer that is not elementwise";
  return nullptr;
}

const char* apart(const Job& job, Figure figure) {
  if (divides_shared_heads(job)) return "all: shared heads of one tensor in uneven parts";
  if (shares_torn_heads(job)) return "all: shares of heads that several devices hold";
  if (figure == Figure::rest) return nullptr;
  if (goes_round_with_shares(job)) return "messages and peaks: a ring with shares";
  if (cuts_experts_otherwise(job)) {
    return "messages and peaks: experts not cut along a tensor axis";
  }
  if (keeps_made(job)) return "messages and peaks: what is made from the master is kept";
  if (repeats_messages(job)) {
    return "messages and peaks: modules with messages made again";
  }
  return figure == Figure::messages ? messages_apart(job) : peaks_apart(job);
}

}  // namespace placet::testing
