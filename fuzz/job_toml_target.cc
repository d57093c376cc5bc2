// Job files in TOML.
#include "job_target.h"

namespace placet::fuzz {

std::string_view target_name() { return "job_toml"; }

void read_one(std::string_view text) { read_job(write_scratch("job.toml", text)); }

}  // namespace placet::fuzz
