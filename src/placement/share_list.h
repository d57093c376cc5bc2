// The shares of an axis as text: "22,20,20,18", "1,2x5,1" for 1,2,2,2,2,2,1, and "(3,3,7,7)x4" for
// what comes again in groups, as blocks do on the devices of a pipeline that go round.
//
//   shares = share { "," share }     share = run | "(" run { "," run } ")" "x" COUNT
//   run   = INT [ "x" COUNT ]
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "placement/source_text.h"

namespace placet {

/// Reads items up to what is no comma. Throws InputError at the character.
std::vector<std::int64_t> read_shares(SourceText& source);

/// The shortest text among those that write a share that comes three times or more on end, or a
/// group that comes again right behind itself, once and how often it comes; of equally short ones
/// the one that repeats less. It reads back.
///   22,20,20,18         22,20,20,18       2,2,2     2x3
///   1,1,2,2,1,1,2,2     (1,1,2,2)x2
std::string print_shares(const std::vector<std::int64_t>& shares);

/// The text of a placement with its shares so. For people: programs may know the lists alone.
///   pp=4[3,3,7,7,3,3,7,7]:LAYERS   pp=4[(3,3,7,7)x2]:LAYERS
std::string with_short_shares(std::string_view placement);

}  // namespace placet
