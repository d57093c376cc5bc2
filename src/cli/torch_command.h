// The calls that are about programs of PyTorch: they are the Python package's
// (python/src/placet/torch), and this program hands them over.
#pragma once

namespace placet {

/// Where the call is `audit RUN ...` or `check --torch SCRIPT ...`, becomes the Python program that
/// answers it (the one that PLACET_PYTHON names, or python3) and does not return; its exit statuses
/// are ours. Any other call: returns. Throws InputError where there is no Python.
void hand_over_to_python(int argc, const char* const* argv);

}  // namespace placet
