// The rules that a job must keep (docs/theory.md §5, composition rules): judged, never refused.
// Every finding has a stable name, its reason with the values, and a cure in the words of the
// placement grammar or of the flags.
//
//   meaning                         a mode that cannot stand under its cut (§2)
//   product                         degrees multiply to the devices
//   divisibility                    heads, widths, vocabulary, experts, blocks, tokens, samples
//   positions                       a sample is no longer than the table of learned positions
//   recurrence                      no axis cuts the tokens that scans and convolutions run along
//   shares                          one share per coordinate, no idle ones, blocks all placed
//   compute-before-storage          shards of what the compute cuts leave are not empty (advice)
//   update-where-owned              the update runs where parameters are kept (warning)
//   whole-regions                   optimizers that see matrices or blocks get them whole
//   materialized-gradients          gradients consumed inside backward
//   materialized-parameters-source  parameters rebuilt from a resting copy
//   recompute                       A=M and the recomputation choice agree
//   schedule                        what the schedule asks of degree and micro-batches
//   no-effect                       options, classes (warning) and cuts that change nothing
//   engine                          what the engine profile refuses
//   link-order                      the busiest axis on the fastest links (advice)
//
// Rules 4 and 6 to 8 of the theory (reduce where partial, random streams, normalisation, norms)
// hold by construction of the derivation; whether a step program keeps them is for its checker to
// prove.
#pragma once

#include <span>
#include <vector>

#include "placement/finding.h"
#include "profile/conditions.h"
#include "profile/job.h"
#include "units/quantity.h"

namespace placet {

/// All findings of a job that need no derived figures, in the order above; empty: every rule is
/// kept. Takes microseconds, and builds no text, where nothing is wrong.
std::vector<Finding> check_rules(const Job& job);

/// Whether the engine refuses a job of which these parts alone are chosen, whatever the others will
/// be: by what asks for none of those.
bool is_refused(const Job& job, JobParts chosen);

/// What the groups over a set of axes send per device and step.
struct AxesBytes {
  AxisMask axes = 0;
  Bytes sent;
};

/// Advice on the order of the axes, from what is sent over each set of them. Where an outer axis on
/// slower links sends more than one further in on faster links, and writing it after that one saves
/// time (bytes over bandwidth, of all messages; those over both axes gain nothing), the pair that
/// saves most is named. Case: dp=8 tp=8 on hosts of 8: tp sends 90 GB inside the host, dp 10 GB
/// across: no advice; the other way round: one. Empty without a cluster, or with one that the mesh
/// does not fill.
std::vector<Finding> advise_link_order(const Job& job, std::span<const AxesBytes> sent);

}  // namespace placet
