// How far times are from measured runs of the same kind: what `placet validate` gave for the tables
// of the project, kept as data (data/validation/errors.json, which tools/write-error-bands writes).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "catalog/catalog.h"
#include "profile/job.h"

namespace placet {

/// Runs of one kind and the errors of their step times. Empty: of any engine, on any device.
struct ErrorBand {
  std::string engine;  // name without version: "megatron"
  std::string device;  // "h100-sxm"
  std::optional<bool> has_experts;
  std::int64_t rows = 0;
  double mean_abs = 0;  // mean of |predicted / measured - 1|
  double bias = 0;      // mean of predicted / measured - 1
  std::vector<std::string> tables;

  friend bool operator==(const ErrorBand&, const ErrorBand&) = default;
};

struct ErrorBands {
  std::string source;
  std::string date;
  std::vector<ErrorBand> bands;
};

/// Throws InputError for what is wrong in the file.
ErrorBands load_error_bands(const Catalog& catalog);

/// The runs that are nearest to a job: of the same engine, device and kind of MLP; else of the same
/// engine and kind; else of the same device and kind; else of the kind. None: there are no such
/// runs, or the job has no cluster. On several kinds of devices, that of the first.
std::optional<ErrorBand> nearest_band(const ErrorBands& bands, const Job& job);

/// The same from the catalogue; none where it has no such file.
std::optional<ErrorBand> similar_runs(const Catalog& catalog, const Job& job);

}  // namespace placet
