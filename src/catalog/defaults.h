// What is assumed of a job where nothing is said: data/defaults/job.json, each figure with its
// source (docs/formats.md, section 1).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "catalog/catalog.h"
#include "model/model.h"

namespace placet {

/// A figure and where it comes from.
struct DefaultFigure {
  std::int64_t value = 0;
  std::string source;

  friend bool operator==(const DefaultFigure&, const DefaultFigure&) = default;
};

struct JobDefaults {
  DefaultFigure sequence;  // tokens, where the model takes as many
  struct TokensPerStep {
    std::int64_t parameters = 0;  // of models up to so many
    DefaultFigure tokens;
    friend bool operator==(const TokensPerStep&, const TokensPerStep&) = default;
  };
  std::vector<TokensPerStep> tokens_per_step;  // parameters rising
  DefaultFigure devices_per_sample;            // at most, of a step's samples
  DefaultFigure samples_with_adapters;         // per step, where only adapters are trained

  friend bool operator==(const JobDefaults&, const JobDefaults&) = default;
};

/// Throws InputError for what is wrong in the file.
JobDefaults load_defaults(const Catalog& catalog);

/// Samples per step for a model on so many devices, and why.
struct AssumedBatch {
  std::int64_t samples = 1;
  std::string why;

  friend bool operator==(const AssumedBatch&, const AssumedBatch&) = default;
};

/// The tokens of a step by the model's size over the tokens of a sample, but no fewer than one
/// sample for `devices_per_sample` devices; rounded up to a multiple of the devices, or, where
/// there are fewer samples than devices, of as many as hold one sample each.
/// Case: 8.03e9 parameters, 8 devices, 4096 tokens: 2,097,152 / 4096 = 512 samples, 64 per device.
/// Case: 4.06e11 parameters, 16,384 devices, 8192 tokens: 512 samples would leave 32 devices for
/// each; 2048 is one for 8.
AssumedBatch assumed_batch(const JobDefaults& defaults, const Model& model, std::int64_t devices,
                           std::int64_t sequence);

}  // namespace placet
