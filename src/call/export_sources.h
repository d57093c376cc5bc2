// What export answers: a job in a dialect, over the configuration that --from named where there is
// one of that dialect.
#pragma once

#include <optional>

#include "call/job_flags.h"
#include "interop/export.h"

namespace placet {

/// The source that is written again: the first of --from that is of the dialect, with the job that
/// the sources say by themselves. None: there is none of that dialect, and the job is written anew.
std::optional<Original> origin_of(const Catalog& catalog, const JobFlags& flags,
                                  const std::string& dialect);

/// The files that say the request in a dialect, or what it cannot say. Throws InputError.
Exported exported_of(const Catalog& catalog, const JobFlags& flags, const JobRequest& request,
                     const std::string& dialect);

}  // namespace placet
