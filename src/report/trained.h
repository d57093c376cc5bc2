// What of a model is trained, as reports say it: how much, which modules, and how the rest is kept.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "model/listing.h"
#include "profile/job.h"

namespace placet {

/// Frozen parameters by the format that they rest in, the most first. Each shared tensor counts
/// once.
std::vector<std::pair<Dtype, std::int64_t>> frozen_formats(const Job& job);

/// "0.0848 %".
std::string share_text(const TrainedPart& part);

/// Its modules, twelve at most: "a.*.q_proj, a.*.v_proj and 3 more".
std::string modules_text(const TrainedPart& part);

/// "6,815,744 of 8,037,076,992 parameters (0.0848 %): ...; frozen parameters rest in bf16"; empty
/// where everything is trained.
std::string trained_text(const Job& job);

}  // namespace placet
