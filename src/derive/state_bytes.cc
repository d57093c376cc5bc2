#include "derive/state_bytes.h"

#include "units/checked.h"
#include "units/shares.h"

namespace placet {
namespace {

/// Elements of Adafactor-like state: one per row and one per column of the last two dims.
std::int64_t row_and_column(const Parameter& parameter, std::int64_t elements) {
  if (parameter.dims.size() < 2) return elements;
  const std::int64_t rows = parameter.dims[parameter.dims.size() - 2].size;
  const std::int64_t columns = parameter.dims.back().size;
  return largest_share(elements, columns) + largest_share(elements, rows);
}

Dtype parameter_dtype(const Job& job, const Parameter& parameter) {
  return parameter.dtype ? *parameter.dtype : job.precision.parameters;
}

Bytes parameter_bytes(const Job& job, const Parameter& parameter, const LocalParameter& local) {
  const auto in = [&](Dtype dtype, const std::vector<BlockConstants>& constants) {
    return bytes_of(local.rest[0], dtype) + bytes_of(local.rest[0], constants);
  };
  const Bytes as_they_are = in(parameter_dtype(job, parameter), parameter.constants);
  if (!local.narrow || parameter.dtype || job.weight_copies == WeightCopies{}) return as_they_are;
  const StorageFormat& numbers = job.precision.products->numbers;
  const Bytes narrow = in(numbers.dtype, numbers.constants);
  if (job.weight_copies.in_place > 0) return narrow * count(job.weight_copies.in_place);
  // What is gathered for use goes with its copies.
  const bool is_there = (local.rests_in_part | local.materialized) == 0;
  return as_they_are + narrow * count(is_there ? job.weight_copies.beside : 0);
}

void split_media(std::int64_t whole, const LocalParameter& local, std::size_t s, StateBytes& out) {
  if (local.on_host[s] == Rational(0)) {
    out.device[s] += whole;
    return;
  }
  const std::int64_t moved = in_bytes(part_rounded_up(bytes(whole), local.on_host[s]));
  (local.on_nvme[s] ? out.nvme : out.host)[s] += moved;
  out.device[s] += whole - moved;
}

}  // namespace

StateBytes& StateBytes::operator+=(const StateBytes& other) {
  for (std::size_t s = 0; s < device.size(); ++s) {
    device[s] = checked_add(device[s], other.device[s], "memory");
    host[s] = checked_add(host[s], other.host[s], "host memory");
    nvme[s] = checked_add(nvme[s], other.nvme[s], "NVMe");
  }
  return *this;
}

StateBytes& StateBytes::operator-=(const StateBytes& other) {
  for (std::size_t s = 0; s < device.size(); ++s) {
    device[s] -= other.device[s];
    host[s] -= other.host[s];
    nvme[s] -= other.nvme[s];
  }
  return *this;
}

StateBytes operator*(StateBytes bytes, std::int64_t count) {
  for (std::size_t s = 0; s < bytes.device.size(); ++s) {
    bytes.device[s] = checked_multiply(bytes.device[s], count, "memory");
    bytes.host[s] = checked_multiply(bytes.host[s], count, "host memory");
    bytes.nvme[s] = checked_multiply(bytes.nvme[s], count, "NVMe");
  }
  return bytes;
}

bool has_master(const Job& job, const Parameter& parameter) {
  const bool low = bits_of(parameter_dtype(job, parameter)) < 32;
  return low && job.precision.master && job.optimizer.keeps_master;
}

Dtype gradient_dtype(const Job& job, const LocalParameter& local) {
  return local.waits_in.value_or(job.precision.gradients);
}

StateBytes state_bytes(const Job& job, const Parameter& parameter, const LocalParameter& local) {
  StateBytes out;
  split_media(in_bytes(parameter_bytes(job, parameter, local)), local, 0, out);
  if (!local.trainable) return out;
  std::int64_t per_element = 0;
  std::int64_t optimizer = 0;
  if (has_master(job, parameter)) {
    per_element += bits_of(*job.precision.master);
  }
  for (const OptimizerState& state : states_of(job.optimizer, parameter)) {
    switch (state.extent) {
      case OptimizerState::Extent::element:
        per_element += bits_of(state.dtype);
        break;
      case OptimizerState::Extent::row_and_column:
        optimizer += in_bytes(bytes_of(row_and_column(parameter, local.rest[1]), state.dtype));
        break;
      case OptimizerState::Extent::block:
        optimizer +=
            in_bytes(bytes_of(largest_share(local.rest[1], job.optimizer.block), state.dtype));
        break;
    }
  }
  optimizer += checked_multiply(local.rest[1], per_element, "optimizer state") / 8;
  split_media(optimizer, local, 1, out);
  split_media(in_bytes(bytes_of(local.rest[2], gradient_dtype(job, local))), local, 2, out);
  return out;
}

Bytes gathered_bytes(const Job& job, const Parameter& parameter, std::int64_t elements) {
  if (!parameter.dtype) return bytes_of(elements, job.precision.gather);
  return bytes_of(elements, *parameter.dtype) + bytes_of(elements, parameter.constants);
}

}  // namespace placet
