#include "report/trained.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/human.h"

namespace placet {

std::vector<std::pair<Dtype, std::int64_t>> frozen_formats(const Job& job) {
  std::vector<std::pair<Dtype, std::int64_t>> out;
  for (const TensorEntry& entry : list_tensors(job.model)) {
    if (entry.trainable || entry.shared) continue;
    std::int64_t elements = entry.count;
    for (const std::int64_t size : entry.shape) elements *= size;
    const Dtype format = entry.dtype.value_or(job.precision.parameters);
    const auto known = std::ranges::find(out, format, &std::pair<Dtype, std::int64_t>::first);
    if (known == out.end()) {
      out.emplace_back(format, elements);
    } else {
      known->second += elements;
    }
  }
  std::ranges::stable_sort(out, std::greater{}, &std::pair<Dtype, std::int64_t>::second);
  return out;
}

std::string share_text(const TrainedPart& part) {
  return fmt::format("{:.3g} %", 100 * part.share());
}

std::string modules_text(const TrainedPart& part) {
  constexpr std::size_t kMost = 12;
  if (part.modules.empty()) return "nothing";
  const std::size_t shown = std::min(kMost, part.modules.size());
  std::string text =
      fmt::format("{}", fmt::join(part.modules.begin(),
                                  part.modules.begin() + static_cast<std::ptrdiff_t>(shown), ", "));
  if (shown < part.modules.size()) {
    text += fmt::format(" and {} more", part.modules.size() - shown);
  }
  return text;
}

std::string trained_text(const Job& job) {
  const TrainedPart part = trained_part(job.model);
  if (part.trained == part.total) return "";
  std::vector<std::string> formats;
  for (const auto& [dtype, count] : frozen_formats(job)) formats.emplace_back(name_of(dtype));
  return fmt::format("{} of {} parameters ({}): {}; frozen parameters rest in {}",
                     grouped(part.trained), grouped(part.total), share_text(part),
                     modules_text(part), fmt::join(formats, " and "));
}

}  // namespace placet
