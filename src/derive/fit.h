// Whether a job has the memory that it needs, in three grades, from one quantity: what the
// allocator reserves and what lies outside it (docs/theory.md §3.10).
#pragma once

#include "derive/derivation.h"
#include "derive/laid_out.h"
#include "derive/prepared.h"
#include "derive/reserve.h"
#include "profile/job.h"

namespace placet {

/// The grade of a device class with `capacity` bytes (0: not known, it fits), from what it needs:
/// too_large above the capacity; tight above all but kFitMargin of it, or where the allocator had
/// to give blocks back. Case: of 100 bytes, 95 fit, 96 are tight, 101 too large.
FitGrade grade_of(const MemoryClass& memory);

/// Capacities of devices and hosts, and the grades that the bytes alive give: an engine's allocator
/// can only make them worse.
void judge_capacity(const Job& job, Derivation& out);

/// Of an engine whose allocator caches blocks: replays a step of each class of devices that can
/// decide, and grades it by what is reserved then. Of classes with equal units the fullest decides;
/// the others are replayed where it comes within a tenth of a limit. Nothing is replayed where the
/// bytes alive are too much already, or no cluster is given. After judge_capacity.
void judge_reserved(const LaidOut& laid_out, const Prepared& prepared, Derivation& out);
/// The same from the job alone.
void judge_reserved(const Job& job, const Prepared& prepared, Derivation& out);

/// What the replay of one of its devices says of a class: reserved is never below what is alive.
void note_reserved(const Reservation& own, MemoryClass& memory);

/// What there is to say of a job that is tight, beside its figures: the warning `tight-memory`.
/// REQUIRES: it is tight.
Finding tight_finding(const Derivation& out);

/// What a report shows of the allocator, judged or not (without a cluster nothing is): the class
/// with most alive, or all of them.
enum class ShownClasses : std::uint8_t { fullest, all };
void reserve_shown(const Job& job, const Prepared& prepared, ShownClasses shown, Derivation& out);

}  // namespace placet
