// The plan of a step as an engine carries it out: the plain plan, changed by one pass for each
// family of the engine's facts.
#pragma once

#include "layout/step_plan.h"
#include "profile/job.h"

namespace placet {

StepPlan realised_plan(const Job& job, const StepShape& shape);

/// Whether the plan of several micro-batches is another one than that of one.
bool asks_micro_batches(const Job& job);

// --- the passes; each says which terms it may change

/// gathers.whole_below. Case: dp=2:zero3, a norm weight of 8 elements, whole below 10: it rests
/// whole on both devices and is gathered once after the update, in place of twice per micro-batch.
void keep_small_tensors_whole(const Profile& profile, const StepShape& shape, StepPlan& plan);

/// gathers.head, last_block, joins_ends. Case: dp=2:zero3, two blocks and a head that stays: each
/// block is gathered in forward and again in backward, the head once.
void lengthen_windows(const Profile& profile, const StepShape& shape, StepPlan& plan);

/// gathers.ahead, where the placement says nothing. Case: dp=2:zero3, one unit ahead: while a block
/// runs two are whole.
void gather_ahead(const Profile& profile, const StepShape& shape, StepPlan& plan);

/// reductions.once_a_step, waits_in. Case: dp=2:zero2 with two micro-batches of which each adds 3
/// to a gradient on each device: the plain plan scatters 3 + 3 twice; put off, 6 + 6 is scattered
/// once, and gradients rest whole.
void put_off_reductions(const Profile& profile, const StepShape& shape, StepPlan& plan);

/// gathers.once_a_step, and the terms of put_off_reductions. Case: pp=2 dp=2:zero3 with four
/// micro-batches: a unit is gathered once, not eight times, and its gradient scattered once.
void hold_over_pipeline(const Profile& profile, const StepShape& shape, StepPlan& plan);

/// gathers.all, head, last_block, bucket_elements. What is used again soon stays: a unit between
/// whose uses in forward and backward at most reuse_elements are used, those of the units behind it
/// twice. Of a model of which that holds in part, the head and the last block are looked at alone.
/// Case: dp=2:zero3, a block of 30 elements and a head of 20. Within 100 both stay; within 60 the
/// head does, and the block, as 2 x 20 lie between; within 30 the head alone.
void keep_what_is_used_soon(const Job& job, StepPlan& plan);

/// reductions.replicas_each, whole_each. Case: rep=2:ddp dp=2:zero2 with two micro-batches: after
/// each scatter over dp the parts are summed over rep, twice a step in place of once at its end.
void sum_replicas_each(const Profile& profile, const StepShape& shape, StepPlan& plan);

/// reductions.tables_whole. Case: tp=2, a vocabulary of 10 rows, 5 on each device: the gradient of
/// all 10 rests on both until the update takes 5 of it.
void keep_table_gradients_whole(const Profile& profile, const StepShape& shape, StepPlan& plan);

}  // namespace placet
