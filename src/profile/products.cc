#include "profile/products.h"

#include <algorithm>

namespace placet {

MatmulFormat matmul_format_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::fp16:
      return MatmulFormat::fp16;
    case Dtype::fp8:
    case Dtype::int8:
    case Dtype::uint8:
      return MatmulFormat::fp8;
    case Dtype::fp4:
    case Dtype::nf4:
    case Dtype::int4:
      return MatmulFormat::fp4;
    case Dtype::fp32:
    case Dtype::int32:
    case Dtype::int64:
    case Dtype::fp64:
      return MatmulFormat::fp32;
    case Dtype::bf16:
      return MatmulFormat::bf16;
  }
  return MatmulFormat::bf16;
}

namespace {

std::int64_t sets_of_numbers(const StorageFormat& numbers, const std::optional<Cluster>& cluster) {
  if (!numbers.constants.empty()) return 2;
  const bool both_orders =
      cluster && std::ranges::all_of(cluster->groups, [](const DeviceGroup& group) {
        return group.device.reads_both_orders;
      });
  return both_orders ? 1 : 2;
}

}  // namespace

WeightCopies weight_copies(const Precision& precision, const Profile& profile,
                           const std::optional<Cluster>& cluster) {
  if (!precision.products) return {};
  const StorageFormat& numbers = precision.products->numbers;
  if (bits_of(numbers.dtype) >= bits_of(precision.compute)) return {};
  const std::vector<std::string>& resting = profile.weights_rest_in;
  const bool rests = std::ranges::find(resting, precision.products->name) != resting.end();
  const std::int64_t sets = sets_of_numbers(numbers, cluster);
  if (rests) return {.in_place = sets};
  return {.beside = profile.keeps_weight_copies ? sets : 0};
}

}  // namespace placet
