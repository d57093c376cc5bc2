// Rule 3 of docs/theory.md §4: what the update must see, where it runs, what goes back after it.
#include <algorithm>

#include "derive/moved_states.h"
#include "derive/parameter_messages.h"
#include "derive/state_bytes.h"
#include "derive/update_inputs.h"
#include "profile/products.h"

namespace placet {
namespace {

class UpdateTraffic {
 public:
  explicit UpdateTraffic(ParameterMessages& out) : out_(out) {}

  /// After the update parameters go from the layout of their optimizer state to their own.
  void write(const Parameter& declared, const LocalParameter& parameter) {
    gather_for_update(declared, parameter);
    // Parameters that rest nowhere are made from the master when they are used.
    const AxisMask spread = parameter.owned & ~parameter.divided[0] & ~parameter.cut;
    if (spread != 0 && parameter.materialized == 0) {
      const ParameterMove gather{.what = "updated parameters",
                                 .dtype = updated_format(parameter),
                                 .phase = Phase::update,
                                 .grain = grain(parameter),
                                 .sharded = true};
      // Axes along which parameters rest divided anyway keep their part: only the rest is gathered.
      out_.add(
          gather, spread,
          own_part(out_.layout, parameter, out_.padded(parameter, spread | parameter.divided[0]),
                   parameter.divided[0]));
    }
    if (!is_moved(parameter)) return;
    copy_states(declared, parameter);
    copy_gradients(parameter);
    copy_parameters(declared, parameter);
  }

 private:
  /// Small tensors that stay whole although their axis divides them are gathered as for use, or
  /// all in one message.
  MessageGrain grain(const LocalParameter& parameter) const {
    if (parameter.persistent == 0) return out_.profile.update_grain;
    return out_.profile.joins_whole_updates ? MessageGrain::everything : out_.profile.gather_grain;
  }

  /// Matrices that rest in the format of products, with one scale a tensor, are gathered in it;
  /// those with scales of blocks need both their sets of numbers and are made after the gather.
  Dtype updated_format(const LocalParameter& parameter) const {
    const Precision& precision = out_.job.precision;
    if (!parameter.narrow || !precision.products) return precision.parameters;
    const bool rests = weight_copies(precision, out_.profile, out_.job.cluster).in_place > 0;
    const StorageFormat& numbers = precision.products->numbers;
    return rests && numbers.constants.empty() ? numbers.dtype : precision.parameters;
  }

  /// What the update must see whole and does not: gradients scattered although their optimizer
  /// state is whole, state divided only at rest, matrices and statistics that cuts tear.
  void gather_for_update(const Parameter& declared, const LocalParameter& parameter) {
    if (const AxisMask axes = gradient_gather_axes(parameter); axes != 0) {
      const ParameterMove gradients{.state = State::gradients,
                                    .what = "gradients for the update",
                                    .dtype = out_.job.precision.gradients,
                                    .phase = Phase::update};
      out_.add(gradients, axes, gathered_gradient(out_.layout, parameter));
    }
    if (parameter.regathered != 0) regather_state(declared, parameter);
    gather_regions(declared, parameter);
  }

  void regather_state(const Parameter& declared, const LocalParameter& parameter) {
    const ParameterMove gather{
        .state = State::optimizer,
        .what = "optimizer state for the update",
        .dtype = Dtype::uint8,
        .phase = Phase::update,
        .entries = own_part(out_.layout, parameter, parameter.elements, parameter.owned)};
    out_.add(gather, parameter.regathered, gathered_state(out_.layout, declared, parameter));
  }

  /// Optimizers that see more than elements: whole matrices are put together along the axes that
  /// tear them (shards along other axes hold whole matrices); sums along a torn row or column are
  /// reduced. Blocks never lie across shards.
  void gather_regions(const Parameter& declared, const LocalParameter& parameter) {
    if (declared.dims.size() < 2) return;
    const AxisMask torn = parameter.cut_rows | parameter.cut_columns;
    switch (region_of(out_.job.optimizer, declared)) {
      case UpdateRegion::element:
      case UpdateRegion::block:
        return;
      case UpdateRegion::matrix: {
        const ParameterMove gather{.state = State::gradients,
                                   .what = "matrices for the update",
                                   .dtype = out_.job.precision.gradients,
                                   .phase = Phase::update};
        out_.add(gather, torn, gathered_matrix(out_.layout, declared, parameter));
        return;
      }
      case UpdateRegion::row_and_column: {
        ParameterMove sums{.collective = Collective::all_reduce,
                           .op = ReduceOp::sum,
                           .state = State::optimizer,
                           .what = "column sums for the update",
                           .dtype = Dtype::fp32,
                           .phase = Phase::update};
        out_.add(sums, parameter.cut_rows | parameter.owned,
                 parameter.elements / std::max<std::int64_t>(1, parameter.matrix_rows));
        sums.what = "row sums for the update";
        const std::int64_t rows =
            parameter.elements / std::max<std::int64_t>(1, parameter.matrix_columns);
        out_.add(sums, parameter.cut_columns, own_part(out_.layout, rows, parameter.owned));
        return;
      }
    }
  }

  // --- host memory

  /// Optimizer state in host memory, updated on the device: it comes in and goes back.
  void copy_states(const Parameter& declared, const LocalParameter& parameter) {
    if (parameter.on_host[1] == Rational(0) || updated_on_host(parameter) != Rational(0)) return;
    ParameterMove copy{.collective = Collective::host_copy,
                       .state = State::optimizer,
                       .dtype = Dtype::uint8,
                       .phase = Phase::update,
                       .nvme = parameter.on_nvme[1]};
    const std::int64_t size =
        state_bytes(out_.job, declared, parameter).off_device(State::optimizer);
    copy.what = "optimizer state from host";
    out_.add(copy, 0, size, 1);
    copy.what = "optimizer state to host";
    out_.add(copy, 0, size, 1);
  }

  /// Gradients that rest on the host go there each time they are reduced; what else of them the
  /// update on the host needs, once. The part that is updated on the device comes back.
  void copy_gradients(const LocalParameter& parameter) {
    ParameterMove copy{.collective = Collective::host_copy,
                       .state = State::gradients,
                       .what = "gradients to host",
                       .dtype = out_.job.precision.gradients,
                       .phase = Phase::update};
    const Rational there = parameter.on_host[2];
    const Rational updated = updated_on_host(parameter);
    if (updated > there) out_.add(copy, 0, elements_moved(parameter.rest[1], updated - there), 1);
    if (there == Rational(0)) return;
    copy.nvme = parameter.on_nvme[2];
    copy.phase = Phase::backward;
    copy.per_micro_batch = true;
    out_.add(copy, 0, elements_moved(parameter.rest[2], there), 1);
    if (there <= updated) return;
    copy.phase = Phase::update;
    copy.per_micro_batch = false;
    copy.what = "gradients from host";
    out_.add(copy, 0, elements_moved(parameter.rest[2], there - updated), 1);
  }

  /// Parameters updated on the other side of the host link than they rest on.
  void copy_parameters(const Parameter& declared, const LocalParameter& parameter) {
    const Rational there = parameter.on_host[0];
    const Rational updated = updated_on_host(parameter);
    if (there == updated || parameter.materialized != 0) return;
    ParameterMove copy{.collective = Collective::host_copy,
                       .what = "updated parameters from host",
                       .dtype = out_.job.precision.parameters,
                       .phase = Phase::update};
    if (there > updated) {
      copy.nvme = parameter.on_nvme[0];
      const std::int64_t moved = elements_moved(parameter.rest[0], there - updated);
      copy.what = "updated parameters to host";
      out_.add(copy, 0, moved, 1);
      // Without a master the update begins with the parameters themselves.
      copy.what = "parameters from host for the update";
      if (!has_master(out_.job, declared)) out_.add(copy, 0, moved, 1);
    } else {
      // Where parameters rest in smaller parts than they are updated in, only those come up.
      const std::int64_t part = std::min(parameter.rest[0], parameter.rest[1]);
      const std::int64_t moved = elements_moved(part, updated - there);
      out_.add(copy, 0, moved, 1);
      copy.what = "parameters to host for the update";
      if (!has_master(out_.job, declared)) out_.add(copy, 0, moved, 1);
    }
  }

  ParameterMessages& out_;
};

}  // namespace

bool is_moved(const LocalParameter& parameter) {
  return parameter.update.has_value() ||
         std::ranges::any_of(parameter.on_host,
                             [](const Rational& part) { return part != Rational(0); });
}

void write_update(ParameterMessages& out, const Parameter& declared,
                  const LocalParameter& parameter) {
  UpdateTraffic(out).write(declared, parameter);
}

}  // namespace placet
