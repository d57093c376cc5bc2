// A job over the configuration that --from named, for the command that exports.
#pragma once

#include <optional>

#include "call/job_flags.h"
#include "interop/export.h"

namespace placet {

/// The source that is written again: the first of --from that is of the dialect, with the job that
/// the sources say by themselves. None: there is none of that dialect, and the job is written anew.
std::optional<Original> origin_of(const Catalog& catalog, const JobFlags& flags,
                                  const std::string& dialect);

}  // namespace placet
