// Schedules that are written out: one row of actions for each device (docs/formats.md, section 3).
#pragma once

#include <string>
#include <vector>

#include "schedule/schedule.h"

namespace placet {

/// Actions of a device in its order, as text; empty ones are idle slots.
using TableRows = std::vector<std::vector<std::string>>;

/// The schedule that rows of actions say. An action is STAGE KIND MICRO-BATCH: 2F0 is the forward
/// of virtual stage 2 on micro-batch 0, B its whole backward, I the part of backward that gives the
/// gradient of the input, W that of the weights. Messages and gathers (0SEND_F1, 2UNSHARD) are
/// passed over: they follow from the work. A device hosts the stages that it works on, as chunks in
/// the order of their numbers.
///
/// The table must be whole and able to run: every stage from 0 on one device, as many on each;
/// every micro-batch from 0 once forward and once backward, whole or in both parts, in that order;
/// and no device waits for ever when each begins a piece of work once what it needs is there.
/// Throws InputError that speaks of `where`, row and slot (counted from 1) otherwise.
///   {{"0F0", "0B0"}, {"1F0", "1B0"}}: two devices, one stage and one micro-batch
Schedule schedule_of_table(const TableRows& rows, const std::string& name,
                           const std::string& where);

}  // namespace placet
