// The blocks of pipeline stages as one text, "Et*3|(tt|)*2,tL": stages are parted by '|', a letter
// is a layer of a stage, of which 't' is a block, "x*3" and "(...)*3" stand for three in a row.
#pragma once

#include <optional>
#include <string>

namespace placet {

/// Blocks of each stage of such a text, "3,2,2,1". 0 for one that holds the embedding or the output
/// alone. None: it is no such text, a stage is empty, or it holds more than 10,000 letters.
std::optional<std::string> blocks_of_stages(const std::string& text);

/// How many zeros stand in front of ones, as a number: "3" for "([0]*3+[1]*58)" and "[0, 0, 0, 1]",
/// "0" for "1", one for all. None: it is no such text, or a zero stands behind a one.
std::optional<std::string> zeros_in_front(const std::string& text);

/// How many zeros and ones such a list has, as a number: "61" for "([0]*3+[1]*58)". None: it is no
/// list, or one of anything else.
std::optional<std::string> length_of_digits(const std::string& text);

/// Such a text for the blocks of each stage, "3,2,1": "Et*3|t*2|t*1L", with the embedding (E) on
/// the first and the output (L) on the last.
std::string stages_of_blocks(const std::string& blocks);

}  // namespace placet
