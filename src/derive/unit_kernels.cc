#include "derive/unit_kernels.h"

#include <algorithm>

#include "derive/narrow_products.h"
#include "profile/autocast.h"
#include "units/at.h"

namespace placet {

double UnitKernels::bytes_each(int v) const {
  switch (kind.values[at(v)].type) {
    case ValueType::compute:
      return static_cast<double>(bits_of(job.precision.compute)) / 8;
    case ValueType::fp32:
      return 4;
    case ValueType::mask:
      return 1;
    case ValueType::int64:
      return 8;
  }
  return 0;
}

double UnitKernels::bytes_of_value(int v) const {
  return bytes_each(v) * static_cast<double>(unit.local.values[at(v)]);
}

double UnitKernels::gradient_bytes(int v) const {
  return unit.prepared.gradients.values[at(v)] ? bytes_of_value(v) : 0;
}

double UnitKernels::inputs(const Operator& op) const {
  return sum_over(op.inputs, [&](int v) { return bytes_of_value(v); });
}
double UnitKernels::outputs(const Operator& op) const {
  return sum_over(op.outputs, [&](int v) { return bytes_of_value(v); });
}
double UnitKernels::input_gradients(const Operator& op) const {
  return sum_over(op.inputs, [&](int v) { return gradient_bytes(v); });
}

double UnitKernels::kept_inside(const Operator& op) const {
  return sum_over(op.internals,
                  [&](int v) { return unit.plan.is_kept[at(v)] ? bytes_of_value(v) : 0.0; });
}

/// Tokens that an operator works on, samples of the micro-batch included.
std::int64_t UnitKernels::tokens_of(const Operator& op) const {
  const bool whole = op.region == Region::parallel;
  return layout.micro_batch * (whole ? layout.tokens : layout.residual_tokens);
}

KernelWork UnitKernels::stream(const Operator& op, double bytes, std::int64_t launches) {
  return {.what = op.name, .bytes = std::max(0.0, bytes), .launches = launches};
}

ProductShape UnitKernels::product_of(const Operator& op) const {
  const int p = op.parameters.front();
  const Parameter& declared = kind.parameters[at(p)];
  const LocalParameter& local = unit.local.parameters[at(p)];
  const std::int64_t rows = std::max<std::int64_t>(1, local.matrix_rows);
  const std::int64_t columns = std::max<std::int64_t>(1, local.matrix_columns);
  const std::size_t first = declared.dims.size() >= 2 ? declared.dims.size() - 2 : 0;
  const Index out = kind.values[at(op.outputs.front())].dims.back().index;
  const Index in = kind.values[at(op.inputs.front())].dims.back().index;
  const bool rows_are_out = segmented_dim(declared) == static_cast<int>(first) ||
                            declared.dims[first].index == out || declared.dims.back().index == in;
  ProductShape shape{.n = rows_are_out ? rows : columns, .k = rows_are_out ? columns : rows};
  shape.batch = std::max<std::int64_t>(1, local.elements / (rows * columns));
  shape.m = tokens_of(op);
  if (op.kind == OpKind::grouped_linear) {
    const std::int64_t routed = unit.local.values[at(op.inputs.front())] / shape.k;
    shape.m = std::max<std::int64_t>(1, routed / shape.batch);
  }
  return shape;
}

MatmulFormat UnitKernels::format(const Operator& op) const {
  const bool is_left = !job.profile.autocasts.empty() && !is_cast(job.profile, op);
  const auto is_wide = [&](int v) { return kind.values[at(v)].type == ValueType::fp32; };
  if (is_left && std::ranges::any_of(op.inputs, is_wide)) return MatmulFormat::fp32;
  return matmul_format_of(has_products_format(job, kind, op) ? job.precision.products->numbers.dtype
                                                             : job.precision.compute);
}

bool UnitKernels::is_narrow(const Operator& op) const {
  return has_products_format(job, kind, op) &&
         format(op) != matmul_format_of(job.precision.compute);
}

void UnitKernels::write_dequantised(const Operator& op, std::vector<KernelWork>& out) const {
  double moved = 0;
  std::int64_t kernels = 0;
  for (const int p : op.parameters) {
    const Parameter& declared = kind.parameters[at(p)];
    if (!declared.dtype || declared.constants.empty()) continue;
    const std::int64_t elements = unit.local.parameters[at(p)].elements;
    const Bytes read = bytes_of(elements, *declared.dtype) + bytes_of(elements, declared.constants);
    const Bytes written = bytes_of(elements, job.precision.compute);
    moved += static_cast<double>(in_bytes(read)) + static_cast<double>(in_bytes(written));
    kernels += static_cast<std::int64_t>(declared.constants.size());
  }
  if (kernels == 0) return;
  out.push_back(
      {.kind = KernelWork::Kind::dequantise, .what = op.name, .bytes = moved, .launches = kernels});
}

KernelWork UnitKernels::product(const Operator& op, const ProductShape& shape) const {
  const double wide = static_cast<double>(bits_of(job.precision.compute)) / 8;
  const auto area = [](std::int64_t a, std::int64_t b) {
    return static_cast<double>(a) * static_cast<double>(b);
  };
  const double elements = area(shape.m, shape.k) + area(shape.k, shape.n) + area(shape.m, shape.n);
  const std::int64_t launches =
      launches_of(op, shape.batch) * (is_narrow(op) ? 1 + timing.narrow_launches : 1);
  return {.kind = KernelWork::Kind::product,
          .what = op.name,
          .shape = shape,
          .format = format(op),
          .bytes = wide * elements * static_cast<double>(shape.batch),
          .flops = flops_of(shape),
          .launches = once_for_all(op) ? 1 : launches,
          .inner_launches = once_for_all(op) ? launches : 0,
          .aligned = is_aligned(op)};
}

/// Whether the host asks once for the products of all experts, and a library's loop launches
/// them.
bool UnitKernels::once_for_all(const Operator& op) const {
  return op.kind == OpKind::grouped_linear && timing.host_per_expert_launch.has_value();
}

/// Of a product with so many experts' matrices: one each, unless the engine has one for all.
std::int64_t UnitKernels::launches_of(const Operator& op, std::int64_t experts) const {
  if (op.kind != OpKind::grouped_linear) return 1;
  return std::max<std::int64_t>(1, experts * timing.launches_per_expert);
}

/// Whether rows of the weight and of the output have an even length: elements of half precision
/// are loaded in pairs at least.
bool UnitKernels::is_aligned(const Operator& op) const {
  if (op.parameters.empty()) return head_size(op) % 2 == 0;
  const ProductShape shape = product_of(op);
  return shape.n % 2 == 0 && shape.k % 2 == 0;
}

void UnitKernels::write_cast(const Operator& op, const ProductShape& s, bool backward,
                             std::vector<KernelWork>& out) const {
  if (!is_narrow(op) || (!backward && is_cast_before(op))) return;
  const double elements = static_cast<double>(s.batch) * static_cast<double>(s.m) *
                          static_cast<double>(backward ? s.n : s.k) * part_cast(op, backward);
  const double written = static_cast<double>(bits_of(job.precision.products->numbers.dtype)) / 8;
  const double read = cast_reads(op, backward);
  const double moved = elements * (2 * written + read);
  const std::int64_t launches = launches_of(op, s.batch);
  out.push_back(stream(op, moved, once_for_all(op) ? 1 : launches));
  if (once_for_all(op)) out.back().inner_launches = launches;
}

/// Whether a product before has cast the same input.
bool UnitKernels::is_cast_before(const Operator& op) const {
  for (const Operator& other : kind.operators) {
    if (&other == &op) return false;
    const bool reads_it = has_product(other) && other.inputs.front() == op.inputs.front();
    if (reads_it && is_narrow(other)) return true;
  }
  return false;
}

/// The part of an operand that a device casts: what is gathered from a divided stream is cast
/// before.
double UnitKernels::part_cast(const Operator& op, bool backward) const {
  const int v = backward ? op.outputs.front() : op.inputs.front();
  const bool gathered = op.kind == OpKind::linear && op.region == Region::parallel &&
                        kind.values[at(v)].region == Region::residual;
  if (!gathered) return 1;
  return static_cast<double>(layout.residual_tokens) / static_cast<double>(layout.tokens);
}

/// Bytes per element that a cast reads.
double UnitKernels::cast_reads(const Operator& op, bool backward) const {
  if (op.kind == OpKind::grouped_linear) return timing.cast_bytes;
  const int producer = unit.prepared.values[at(op.inputs.front())].producer;
  const bool normed = producer >= 0 && kind.operators[at(producer)].kind == OpKind::norm;
  return !backward && normed && timing.norm_casts ? 0.0 : timing.linear_cast_bytes;
}

bool UnitKernels::in_chunks(const Operator& op) const {
  if (op.kind != OpKind::scan || op.inputs.size() != 2) return false;
  const Dim& steps = kind.values[at(op.inputs[1])].dims.back();
  const Dim& mixed = kind.values[at(op.inputs[0])].dims.back();
  const Dim& channels = kind.values[at(op.outputs.front())].dims.back();
  return mixed.size > channels.size && channels.size % steps.size == 0;
}

ScanShape UnitKernels::scan_of(const Operator& op) const {
  const Dim& mixed = kind.values[at(op.inputs[0])].dims.back();
  const Dim& channels = kind.values[at(op.outputs.front())].dims.back();
  const Dim& steps = kind.values[at(op.inputs[1])].dims.back();
  const std::int64_t groups = std::max<std::int64_t>(1, channels.parts);
  ScanShape shape{.tokens = std::max<std::int64_t>(1, tokens_of(op)),
                  .head_size = channels.size / steps.size,
                  .state = (mixed.size - channels.size) / 2 / groups,
                  .chunk = timing.scan_chunk};
  shape.heads = unit.local.values[at(op.inputs[1])] / shape.tokens;
  shape.groups = std::max<std::int64_t>(1, groups * shape.heads / steps.size);
  return shape;
}

KernelWork UnitKernels::scan(const Operator& op, bool backward) const {
  const ScanShape shape = scan_of(op);
  return {.what = op.name,
          .format = matmul_format_of(job.precision.compute),
          .bytes = scan_bytes(shape, backward),
          .flops = scan_flops(shape, backward),
          .head_size = shape.head_size,
          .length = shape.chunk,
          .backward = backward,
          .scan = true,
          .launches = backward ? kScanLaunchesBackward : kScanLaunches};
}

bool UnitKernels::has_product(const Operator& op) const {
  return (op.kind == OpKind::linear || op.kind == OpKind::grouped_linear) &&
         !op.parameters.empty() && !op.outputs.empty();
}

}  // namespace placet
