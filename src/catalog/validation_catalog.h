// How measured runs are read: data/validation (docs/formats.md). Which engine profile a row's
// framework means, what the words of its cells mean here, which of its figures are measurements of
// what, and what fills the gaps that a source leaves. Every rule has a source and a date.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "catalog/catalog.h"

namespace placet {

/// What a cell must hold: one of the texts, in which * stands for any characters. The empty text
/// means an empty cell.
struct CellPattern {
  std::string column;
  std::vector<std::string> any_of;

  friend bool operator==(const CellPattern&, const CellPattern&) = default;
};
/// All must hold; an empty list always does.
using RowPattern = std::vector<CellPattern>;

struct Evidence {
  std::string source;
  std::string date;

  friend bool operator==(const Evidence&, const Evidence&) = default;
};

/// Values of cells that a source leaves empty. "=n_heads" copies another cell of the row.
struct Filling {
  RowPattern when;
  std::vector<std::pair<std::string, std::string>> cells;  // column, value
  bool instead = false;     // of what the row holds, which is known to be of another run
  bool from_table = false;  // read off figures of the table itself, not off another source
  bool is_custom = false;   // not of this source: a row that needs it is not scored
  Evidence evidence;

  friend bool operator==(const Filling&, const Filling&) = default;
};

/// Rows that are not scored, and why.
struct Exclusion {
  RowPattern when;
  std::string reason;
  Evidence evidence;

  friend bool operator==(const Exclusion&, const Exclusion&) = default;
};

/// What is known about one source beside its table: data/validation/assumptions/<source_id>.json.
/// Or what is customary where nothing is known of it: data/validation/customs.json.
struct SourceReading {
  std::vector<std::string> also;  // patterns of further source_ids that it speaks of
  std::vector<Filling> fillings;
  std::vector<Exclusion> exclusions;
  std::vector<Exclusion> time_exclusions;  // of their times only

  friend bool operator==(const SourceReading&, const SourceReading&) = default;
};

/// What a framework calls its layouts: axes outermost first, and the placement term that each
/// sharding stage of the data-parallel axes is.
struct RunLayout {
  std::vector<std::string> order;           // of pp, dp, cp, ep, tp
  std::vector<std::string> sharding_terms;  // by sharding stage 0..3
  std::string context_term;                 // how attention is carried out along cp

  friend bool operator==(const RunLayout&, const RunLayout&) = default;
};

/// The profile of the engine that made a row. The first rule that matches holds.
struct EngineRule {
  RowPattern when;
  bool is_guess = false;  // of a framework that no profile is of: a row that needs it is not scored
  std::string profile;    // "name@version"; empty: there is none, and `reason` says why
  std::string reason;
  RunLayout layout;
  Evidence evidence;

  friend bool operator==(const EngineRule&, const EngineRule&) = default;
};

/// What a cell with a figure of memory measures.
struct MemoryMeasure {
  enum class Quantity : std::uint8_t {
    reserved,              // the allocator's blocks
    alive,                 // bytes alive, the most of the step
    alive_after_backward,  // the same, from the end of the last backward on
    reserved_after_backward,
    device  // what the driver says is used: reserved, and what lies outside of it
  };
  std::string name;  // "reserved", "states"
  RowPattern when;
  std::string column;
  std::string unit;  // "GiB", "GB"; empty: the row's mem_unit says
  Quantity quantity = Quantity::reserved;
  bool first_device = false;  // of rank 0; otherwise the largest of all
  bool decides = false;       // the figure that stands for the row in the totals
  Evidence evidence;

  friend bool operator==(const MemoryMeasure&, const MemoryMeasure&) = default;
};

/// Words of cells: column, then the source's spelling, then ours.
using WordTable =
    std::map<std::string, std::map<std::string, std::string, std::less<>>, std::less<>>;

struct ValidationCatalog {
  std::vector<EngineRule> engines;
  std::vector<MemoryMeasure> measures;
  WordTable words;
  std::map<std::string, SourceReading, std::less<>> sources;  // by source_id
  SourceReading customs;                                      // of all others

  friend bool operator==(const ValidationCatalog&, const ValidationCatalog&) = default;
};

/// Reads data/validation: engines.json, measures.json, words.json and assumptions/. Throws
/// InputError with file and key path for what is unknown, missing or without a source.
ValidationCatalog load_validation(const Catalog& catalog);

/// What is known of a source: its own reading, one that also speaks of it, or the customs.
const SourceReading& reading_of(const ValidationCatalog& catalog, std::string_view source_id);

/// Columns that a filling may speak of although no table has them:
///   catalogue_model  a name of data/models, for shapes that the table's columns cannot say
///   stage_blocks     blocks per virtual stage, "15,16,16,15"
///   host_runs_ahead  1 if launches pile up: the host launches faster than the device runs
///   host_us_per_block    instead: microseconds in which the host launches the forward and backward
///                        of one block and micro-batch; launches pile up if the device needs longer
///   utilisation_percent  beside it: of the device's bf16 peak while it computes
///   sharding_term    the placement term of the data-parallel axes
///   shard_group      data ranks that divide states among them, the innermost; across such groups
///                    whole replicas
///   cluster          a cluster or device of the catalogue that stands for the row's hosts
///   network          a link of data/hardware/links among hosts
///   slice_devices    devices that the innermost links join, where that is fewer than they could;
///                    the network joins such slices
///   network_gb_s     GB/s that all devices of a host reach together across hosts, measured
///   network_of_all_gb_s  the same, measured with groups over all of the job's hosts: narrower ones
///                    go at the link's own rate
///   network_latency_us   of one step of a collective, across hosts
///   host_latency_us  what a device's host needs per collective and further member of its group
///   host_latency_inside_us  the same per member on the own host; host_latency_us if not given
///   host_pace        times as long as elsewhere the hosts take for what the profile says of them
///   intra_gb_s       network_gb_s of one device inside its host
///   recompute        instead of act_ckpt, where the source says which blocks are meant
///   micro_batch_of_rank  instead of micro_batch, where the source counts per device
///   dropout_percent  of attention probabilities and of what joins the stream, as the run trained
bool is_added_column(std::string_view column);

/// Whether `text` is matched as a whole by `pattern`, where * is any run of characters.
///   matches_text("*_gqa8", "1B_dp8_gqa8")      matches_text("", "")
bool matches_text(std::string_view pattern, std::string_view text);

}  // namespace placet
