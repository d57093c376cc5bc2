// Jobs that rules are tried on: a small model, and the cluster that a placement fills.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "model/build.h"
#include "placement/grammar.h"
#include "profile/job.h"

namespace placet {

inline Placement place(const char* text) { return parse_placement(text, Vocabulary{}); }

inline Parameter parameter(const char* name, std::vector<Dim> dims, ClassSet classes) {
  return {.name = name, .dims = std::move(dims), .classes = classes};
}

// 12 blocks of width 64: 8 heads of 8, 2 kv heads, MLP of 96; a vocabulary of 1000.
inline Model dense_model() {
  Model model{.name = "small"};
  const Dim hidden{Index::hidden, 64, 64};
  const Dim vocab{Index::vocab, 1000, 1000};
  model.kinds = {
      {.name = "embedding",
       .role = UnitRole::embedding,
       .parameters = {parameter("embed", {vocab, hidden}, bit_of(TensorClass::embedding))}},
      {.name = "block",
       .parameters = {parameter("q", {{Index::head, 64, 8}, hidden},
                                bit_of(TensorClass::attention)),
                      parameter("k", {{Index::kv_head, 16, 2}, hidden},
                                bit_of(TensorClass::attention)),
                      parameter("up", {{Index::ffn, 96, 96}, hidden}, bit_of(TensorClass::ffn)),
                      parameter("norm", {hidden}, bit_of(TensorClass::norms))}},
      {.name = "head",
       .role = UnitRole::head,
       .parameters = {parameter("lm_head", {vocab, hidden}, bit_of(TensorClass::head))}}};
  model.units.push_back({0, 0});
  for (int b = 0; b < 12; ++b) model.units.push_back({1, b});
  model.units.push_back({2, 0});
  return model;
}

inline Model expert_model() {
  Model model = dense_model();
  model.kinds[1].parameters.push_back(
      parameter("experts", {{Index::expert, 16, 16}, {Index::ffn, 96, 96}, {Index::hidden, 64, 64}},
                bit_of(TensorClass::experts)));
  model.figures.experts = 16;
  return model;
}

inline Cluster cluster_of(std::int64_t devices) {
  const Level inside{.link = "inside", .devices = 8, .bandwidth = gigabytes_per_second(400)};
  const Level across{.link = "across", .devices = devices, .bandwidth = gigabytes_per_second(50)};
  return {.name = "test",
          .groups = {{.count = devices, .per_host = 8, .levels = {inside, across}}}};
}

inline Job job(const char* placement, Model model = dense_model()) {
  Job out;
  out.model = std::move(model);
  out.placement = place(placement);
  out.attention.resize(out.placement.axes.size());
  out.batch = {.sequence = 128, .global = 96, .micro = 1};
  out.cluster = cluster_of(devices_of(out.placement));
  out.optimizer.name = "adam";
  return out;
}

}  // namespace placet
