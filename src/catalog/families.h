// The families that data/families cannot describe, in groups by likeness; hf_config.cc looks them
// up. A family of ordinary blocks is a file there (family_files.h).
#pragma once

#include <span>
#include <string_view>
#include <utility>

#include "catalog/config_object.h"
#include "catalog/decoder.h"
#include "model/architecture.h"

namespace placet {

// Facts that many families share.
inline constexpr Switch kAlways{.fallback = true};
inline constexpr Switch kNever{};
inline constexpr NormFacts kRms{};
inline constexpr NormFacts kRmsNoWeight{.weight = false};
inline constexpr std::int64_t kMostStreams = 64;  // residual streams side by side
inline constexpr NormFacts kLayerNorm{.kind = NormKind::layer, .bias = true};

/// A block that mixes tokens, then channels.
inline BlockShape two_sublayers(Norm first, Mixer tokens, Norm second, Mixer channels) {
  return {Sublayer{.branches = {{.norm = std::move(first), .mixer = std::move(tokens)}}},
          Sublayer{.branches = {{.norm = std::move(second), .mixer = std::move(channels)}}}};
}

/// Settings of a nested object that say nothing about shapes.
inline void finish_nested(ConfigObject& config, Keys irrelevant) {
  config.know(irrelevant);
  config.know({"tie_word_embeddings"});  // of the outer object; the library writes it here too
  config.finish();
}

struct ModelFamily {
  std::string_view model_type;
  Architecture (*read)(ConfigObject& config) = nullptr;
};

std::span<const ModelFamily> sparse_families();       // mixtures of experts, latent attention
std::span<const ModelFamily> classic_families();      // gpt2, opt, bloom and their time
std::span<const ModelFamily> hybrid_families();       // state spaces
std::span<const ModelFamily> linear_families();       // linear attention; layers listed one by one
std::span<const ModelFamily> special_families();      // nested settings, one entry per layer
std::span<const ModelFamily> irregular_families();    // blocks of several sizes
std::span<const ModelFamily> convolution_families();  // short convolutions
std::span<const ModelFamily> recent_families();       // of 2025 and 2026
std::span<const ModelFamily> compressed_families();   // compressed keys, several streams
std::span<const ModelFamily> gemma_families();        // gemma 3n and 4
std::span<const ModelFamily> kimi_families();         // kimi linear, kimi k3
std::span<const ModelFamily> foreign_families();  // known from the code that comes with their files

}  // namespace placet
