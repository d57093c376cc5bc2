# Libraries that Placet stands on. They are found here, at the top, as an imported target is seen
# only from the directory that found it and below. Which folder may use which is checked by
# tests/architecture.

find_package(nlohmann_json 3.11 REQUIRED)  # catalog, interop, report, serve
find_package(RapidJSON 1.1 REQUIRED)       # catalog
find_package(toml11 3.7 REQUIRED)          # catalog
find_package(fmt 9 REQUIRED)               # text, until the compiler has std::format
find_package(CLI11 2.1 REQUIRED)           # cli
find_package(Threads REQUIRED)             # validate
find_package(TBB 2021 REQUIRED)            # search
find_library(PLACET_MIMALLOC mimalloc)     # the program, where it is there
mark_as_advanced(PLACET_MIMALLOC)

list(APPEND CMAKE_MODULE_PATH "${CMAKE_CURRENT_LIST_DIR}")
find_package(LibCsv REQUIRED)              # catalog (tables of measured runs)
find_package(LibYaml REQUIRED)             # interop (configurations of engines)
find_package(Httplib QUIET)                # serve, which without it says so
set(MPI_CXX_SKIP_MPICXX ON)
find_package(MPI QUIET COMPONENTS CXX)     # execute (ranks of mpirun), which without it says so

# Its package brings no target.
add_library(RapidJSON::RapidJSON INTERFACE IMPORTED)
target_include_directories(RapidJSON::RapidJSON SYSTEM INTERFACE "${RAPIDJSON_INCLUDE_DIRS}")

# Libraries of headers only: nobody who links an installed Placet needs them.
set(PLACET_HEADER_ONLY
    nlohmann_json::nlohmann_json RapidJSON::RapidJSON toml11::toml11 CLI11::CLI11)
