// Numbers as people read them. Bytes are decimal (1 GB = 10^9), as in the papers; where a device's
// capacity is meant, GiB stands beside it, as drivers print it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "units/quantity.h"

namespace placet {

/// Three significant digits: "1.12 TB", "31.4 GB", "140 GB", "512 B", "0 B".
std::string human_bytes(Bytes amount);

/// "79.1 GiB", one decimal.
std::string human_gibibytes(Bytes amount);

/// A count with three significant digits: "70.6 B" (10^9), "1.5 M", "930".
std::string human_count(std::int64_t n);

/// FLOPs: "4.2e14" as "423 TFLOP".
std::string human_flops(double flops);

/// Thousands apart: "70,553,706,496".
std::string grouped(std::int64_t n);

/// "1.50x", "0.33x"; "-" if `base` is zero and `value` is not, "1x" if both are.
std::string human_ratio(Bytes value, Bytes base);

/// "50.2 GB/s".
std::string human_rate(BytesPerSecond rate);

/// "step_seconds" with dashes and underscores as blanks: "all reduce".
std::string spaced(std::string_view name);

/// Width on a terminal: UTF-8 code points, each one column wide.
std::size_t columns_of(std::string_view text);

/// "40.2 %"; "-" for zero, which stands for a part of a peak that is not known.
std::string utilisation_text(double part);

}  // namespace placet
