// Settings changed in the text of their source, so that all else of it stays as it is: other keys,
// their order, comments.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "interop/source.h"

namespace placet {

/// What becomes of a key.
struct KeyChange {
  std::string key;
  std::optional<std::string> value;  // none: the key goes
};

/// The text of `source` with the changes in it: a key that the source has (the last such setting)
/// gets its value, another is put beside its neighbours, in a new object where its own is not there
/// yet. Of a launch script, a new option is put beside the last of the options in `own`, those of
/// the engine that is launched: what launches it takes none of them. JSON that stands on one line
/// is written anew. Read again, the text has these changes and no others. Throws InputError with
/// file and line where a change cannot be made in place, as in a line that many aliases stand for.
std::string changed_text(Source source, std::string text, const std::vector<KeyChange>& changes,
                         const std::vector<std::string>& own);

}  // namespace placet
