// The rules that a job must keep (docs/theory.md §5, composition rules): judged, never refused.
// Every finding has a stable name, its reason with the values, and a cure in the words of the
// placement grammar or of the flags.
//
//   meaning                         a mode that cannot stand under its cut (§2)
//   product                         degrees multiply to the devices
//   divisibility                    heads, widths, vocabulary, experts, blocks, tokens, samples
//   shares                          one share per coordinate, no idle ones, blocks all placed
//   compute-before-storage          shards of what the compute cuts leave are not empty (advice)
//   update-where-owned              the update runs where parameters are kept (warning)
//   link-order                      the busiest axis on the fastest links (advice)
//   whole-regions                   optimizers that see matrices or blocks get them whole
//   materialized-gradients          gradients consumed inside backward
//   materialized-parameters-source  parameters rebuilt from a resting copy
//   recompute                       A=M and the recomputation choice agree
//   schedule                        what the schedule asks of degree and micro-batches
//   no-effect                       options and classes that change nothing (warning)
//   engine                          what the engine profile refuses
//
// Rules 4 and 6 to 8 of the theory (reduce where partial, random streams, normalisation, norms)
// hold by construction of the derivation; whether a step program keeps them is for its checker to
// prove.
#pragma once

#include <span>
#include <vector>

#include "placement/finding.h"
#include "profile/job.h"
#include "units/quantity.h"

namespace placet {

/// All findings of a job, in the order above; empty: every rule is kept. Takes microseconds, and
/// builds no text, where nothing is wrong.
std::vector<Finding> check_rules(const Job& job);

/// Advice on the order of the axes: `sent` are the bytes that each axis sends per device and step
/// (one entry per axis; a group of several axes counts for its outermost). Where an outer axis on
/// slower links sends more than an inner one on faster links, the pair that gains most is named.
/// Case: dp=8 tp=8 on hosts of 8: tp sends 90 GB inside the host, dp 10 GB across: no advice; the
/// other way round: one. Empty without a cluster.
std::vector<Finding> advise_link_order(const Job& job, std::span<const Bytes> sent);

}  // namespace placet
