// Holds the compiled headers of all tests (cmake/precompiled.cmake).
