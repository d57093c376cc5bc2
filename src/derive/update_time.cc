#include "derive/update_time.h"

#include <algorithm>

#include "derive/kernel_time.h"
#include "derive/state_bytes.h"
#include "derive/unit_kernels.h"
#include "derive/update_inputs.h"
#include "units/at.h"

namespace placet {
namespace {

/// As its update sees it: whole along the axes whose parts of its state are gathered.
LocalParameter seen_by_update(const Layout& layout, const LocalParameter& own) {
  LocalParameter seen = own;
  if (own.regathered != 0) seen.rest[1] = own_part(layout, own, own.elements, own.owned);
  return seen;
}

double bytes_each(Dtype dtype) { return static_cast<double>(bits_of(dtype)) / 8; }

double times(std::int64_t count, double each) { return static_cast<double>(count) * each; }

/// Of the parameter, beyond its master copy read once and written once.
double parameter_bytes_each(const Job& job, const Parameter& declared, const LocalParameter& own,
                            bool master) {
  const UpdateCost& cost = cost_of(job.optimizer, declared);
  const double resting = bytes_each(declared.dtype.value_or(job.precision.parameters));
  if (!master) return times(cost.parameter_reads + 1, resting);
  const double written = own.rest[0] > 0 ? resting : 0;
  return times(cost.parameter_reads - 1, bytes_each(*job.precision.master)) + written;
}

/// Bytes that the host's drives read and write for an update which runs there: optimizer state both
/// ways, gradients in, parameters back.
double through_nvme(const StateBytes& bytes) {
  return static_cast<double>(bytes.nvme[0]) + 2 * static_cast<double>(bytes.nvme[1]) +
         static_cast<double>(bytes.nvme[2]);
}

/// Elements of whole matrices that the device updates, and how many matrices these are.
struct Matrices {
  double elements = 0;
  double count = 0;
  std::int64_t rows = 0;  // the shorter side
  std::int64_t columns = 0;
};

Matrices matrices_of(const Layout& layout, const Parameter& declared, const LocalParameter& own) {
  const Optimizer& optimizer = layout.job->optimizer;
  const bool whole = region_of(optimizer, declared) == UpdateRegion::matrix;
  if (!whole || optimizer.matrices.iterations == 0 || declared.dims.size() < 2) return {};
  const std::int64_t gathered = gathered_matrix(layout, declared, own);
  const std::int64_t part =
      gathered != 0 ? gathered : own_part(layout, own, own.elements, own.owned);
  const std::int64_t a = declared.dims[declared.dims.size() - 2].size;
  const std::int64_t b = declared.dims.back().size;
  Matrices out{.rows = std::min(a, b), .columns = std::max(a, b)};
  // Of heads that several devices hold, each has its own copy of the whole.
  out.elements = static_cast<double>(part) / static_cast<double>(own.replicas);
  out.count = out.elements / static_cast<double>(a) / static_cast<double>(b);
  return out;
}

KernelWork kernel_of(MatrixProduct product, const Matrices& matrices, Dtype dtype) {
  const std::int64_t m = matrices.rows;
  const std::int64_t n = matrices.columns;
  const double small = static_cast<double>(m) * static_cast<double>(m);
  const double large = static_cast<double>(m) * static_cast<double>(n);
  KernelWork kernel{.kind = KernelWork::Kind::product, .format = matmul_format_of(dtype)};
  double numbers = 0;
  switch (product) {
    case MatrixProduct::gram:
      kernel.shape = {.m = m, .n = m, .k = n};
      numbers = large + small;
      break;
    case MatrixProduct::square:
      kernel.shape = {.m = m, .n = m, .k = m};
      numbers = 2 * small;
      break;
    case MatrixProduct::apply:
      kernel.shape = {.m = m, .n = n, .k = m};
      numbers = small + 2 * large;
      break;
  }
  kernel.bytes = numbers * bytes_each(dtype);
  kernel.flops = flops_of(kernel.shape);
  return kernel;
}

/// Of a parameter as its update sees it, with its states' bytes.
double bytes_of_update(const Layout& layout, const Parameter& declared, const LocalParameter& seen,
                       const StateBytes& states) {
  const Job& job = *layout.job;
  const EngineTiming& timing = job.profile.timing;
  const UpdateCost& cost = cost_of(job.optimizer, declared);
  const bool master = has_master(job, declared);
  const Dtype format =
      master ? *job.precision.master : declared.dtype.value_or(job.precision.parameters);
  const auto elements = static_cast<double>(seen.rest[1]);
  const auto state = static_cast<double>(states.device[1]) +
                     static_cast<double>(states.off_device(State::optimizer));
  double bytes = 2 * state;
  bytes += elements * parameter_bytes_each(job, declared, seen, master);
  bytes += elements * times(cost.gradient_reads, bytes_each(job.precision.gradients));
  if (timing.update_in_steps) {
    bytes = std::max(bytes, elements * times(cost.words_in_steps, bytes_each(format)));
  }
  const MatrixUpdate& matrices = job.optimizer.matrices;
  bytes += matrices_of(layout, declared, seen).elements *
           times(matrices.passes, bytes_each(matrices.dtype));
  const double clipped = job.clips_by_global_norm ? timing.clip_bytes : 0;
  if (seen.partial != 0) bytes += static_cast<double>(seen.elements) * timing.flattened_bytes;
  return bytes + elements * (timing.update_extra_bytes + clipped);
}

/// Of one unit of the run.
UpdateSeconds updated_by(const Layout& layout, const Stage& stage, const UnitRun& run,
                         const UpdateRates& rates) {
  const Model& model = layout.job->model;
  const LocalUnit& unit = layout.units[at(run.local)];
  const UnitKind& kind = model.kinds[at(unit.kind)];
  UpdateSeconds out;
  for (std::size_t p = 0; p < unit.parameters.size(); ++p) {
    if (is_second_use(model, stage, kind.parameters[p])) continue;
    out += parameter_update(layout, kind.parameters[p], unit.parameters[p], rates);
  }
  return out;
}

}  // namespace

double UpdateSeconds::total() const { return device + std::max(host, drives); }

UpdateSeconds& UpdateSeconds::operator+=(const UpdateSeconds& other) {
  device += other.device;
  host += other.host;
  drives += other.drives;
  return *this;
}

UpdateSeconds operator*(double times, UpdateSeconds one) {
  return {.device = times * one.device, .host = times * one.host, .drives = times * one.drives};
}

UpdateRates update_rates(const Cluster& cluster, const GroupSet& devices) {
  const auto least = [&](auto rate) {
    BytesPerSecond out = rate(cluster.groups[devices.front()]);
    for (const std::size_t g : devices) out = std::min(out, rate(cluster.groups[g]));
    return out;
  };
  UpdateRates out{
      .memory = least([](const DeviceGroup& group) { return group.device.rates.memory; }),
      .host_link = least([](const DeviceGroup& group) { return group.host_link; }),
      .nvme = least([](const DeviceGroup& group) { return nvme_rate(group); }),
      .devices = {}};
  for (const std::size_t g : devices) out.devices.push_back(&cluster.groups[g].device.rates);
  return out;
}

double update_bytes(const Layout& layout, const Parameter& declared, const LocalParameter& own) {
  if (!own.trainable || !layout.job->optimizer.updates) return 0;
  const LocalParameter seen = seen_by_update(layout, own);
  return bytes_of_update(layout, declared, seen, state_bytes(*layout.job, declared, seen));
}

Seconds matrices_time(const Layout& layout, const Parameter& declared, const LocalParameter& own,
                      const DeviceRates& rates) {
  const Matrices matrices = matrices_of(layout, declared, own);
  if (matrices.count == 0) return {};
  const MatrixUpdate& update = layout.job->optimizer.matrices;
  Seconds iteration;
  for (const MatrixProduct product : update.products) {
    iteration += product_time(rates, kernel_of(product, matrices, update.dtype));
  }
  return iteration * (matrices.count * static_cast<double>(update.iterations));
}

UpdateSeconds parameter_update(const Layout& layout, const Parameter& declared,
                               const LocalParameter& own, const UpdateRates& rates) {
  const Job& job = *layout.job;
  if (!own.trainable || !job.optimizer.updates) return {};
  const LocalParameter seen = seen_by_update(layout, own);
  const StateBytes states = state_bytes(job, declared, seen);
  const double bytes = bytes_of_update(layout, declared, seen, states);
  const double flops = static_cast<double>(seen.rest[1]) * cost_of(job.optimizer, declared).flops;
  double device = bytes / in_bytes_per_second(rates.memory);
  Seconds matrices;
  for (const DeviceRates* of : rates.devices) {
    const double rate = in_flops_per_second(matmul_rate(*of, MatmulFormat::fp32));
    if (rate > 0) device = std::max(device, flops / rate);
    matrices = std::max(matrices, matrices_time(layout, declared, own, *of));
  }
  // Products of matrices take no less where the host computes them.
  const double host = in_double(updated_on_host(own));
  UpdateSeconds out{.device = device * (1 - host) + in_seconds(matrices),
                    .host = host * bytes / in_bytes_per_second(rates.host_link)};
  if (host > 0) out.drives = through_nvme(states) / in_bytes_per_second(rates.nvme);
  return out;
}

Seconds update_time(const Layout& layout, const Stage& stage, const StageUnits& units) {
  const UpdateRates rates = update_rates(*layout.job->cluster, units.groups);
  UpdateSeconds all;
  for (const UnitRun& run : units.runs) {
    all += static_cast<double>(run.count) * updated_by(layout, stage, run, rates);
  }
  return seconds(all.total());
}

Seconds update_time(const Layout& layout, const Stage& stage) {
  return update_time(layout, stage, units_of(layout, stage));
}

}  // namespace placet
