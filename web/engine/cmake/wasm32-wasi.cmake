# Toolchain: clang and libc++ of the PyPI package ziglang, for WebAssembly with exceptions. ZIG names
# its program; `./dev web` installs the version that is known to work.
set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_SYSTEM_PROCESSOR wasm32)
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)

set(ZIG "$ENV{ZIG}" CACHE FILEPATH "The program zig of the PyPI package ziglang")
if(NOT ZIG)
  message(FATAL_ERROR "ZIG names no program: ./dev web sets it")
endif()
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES ZIG)
get_filename_component(ZIG_HOME "${ZIG}" DIRECTORY)

# CMake takes one program for each tool.
set(wrappers "${CMAKE_BINARY_DIR}/tools")
foreach(tool cc ar ranlib)
  file(CONFIGURE OUTPUT "${wrappers}/${tool}" CONTENT "#!/bin/sh\nexec '@ZIG@' @tool@ \"$@\"\n" @ONLY)
  file(CHMOD "${wrappers}/${tool}" PERMISSIONS
      OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
endforeach()
set(CMAKE_C_COMPILER "${wrappers}/cc")
set(CMAKE_CXX_COMPILER "${wrappers}/cc")
set(CMAKE_ASM_COMPILER "${wrappers}/cc")
set(CMAKE_AR "${wrappers}/ar")
set(CMAKE_RANLIB "${wrappers}/ranlib")

set(machine "-target wasm32-wasi -mcpu=generic+exception_handling+bulk_memory -fno-sanitize=all -fno-stack-protector")
# libc++ is compiled from the package's sources with these settings (web/engine/runtime): the one that
# it brings compiled knows no exceptions and no files. There is one thread; asking for another fails,
# which callers expect.
set(library
    _LIBCPP_ABI_VERSION=1
    _LIBCPP_ABI_NAMESPACE=__1
    _LIBCPP_HAS_THREADS=1
    _LIBCPP_HAS_THREAD_API_PTHREAD=1
    _LIBCPP_HAS_THREAD_API_EXTERNAL=0
    _LIBCPP_HAS_THREAD_API_WIN32=0
    _LIBCPP_HAS_MONOTONIC_CLOCK=1
    _LIBCPP_HAS_TERMINAL=0
    _LIBCPP_HAS_MUSL_LIBC=1
    _LIBCPP_HAS_FILESYSTEM=1
    _LIBCPP_HAS_RANDOM_DEVICE=0
    _LIBCPP_HAS_LOCALIZATION=1
    _LIBCPP_HAS_UNICODE=1
    _LIBCPP_HAS_WIDE_CHARACTERS=1
    _LIBCPP_HAS_TIME_ZONE_DATABASE=0
    _LIBCPP_HAS_NO_STD_MODULES
    _LIBCPP_HAS_VENDOR_AVAILABILITY_ANNOTATIONS=0
    _LIBCXXABI_DISABLE_VISIBILITY_ANNOTATIONS
    _LIBCPP_DISABLE_VISIBILITY_ANNOTATIONS
    _LIBCPP_PSTL_BACKEND_SERIAL
    _LIBCPP_HARDENING_MODE=_LIBCPP_HARDENING_MODE_NONE
    _LIBCPP_ASSERTION_SEMANTIC_DEFAULT=_LIBCPP_ASSERTION_SEMANTIC_IGNORE
    _WASI_EMULATED_SIGNAL
    NDEBUG)
list(TRANSFORM library PREPEND "-D")
list(JOIN library " " library)
set(headers "-I${ZIG_HOME}/lib/libcxx/include -I${ZIG_HOME}/lib/libcxxabi/include")

set(CMAKE_C_FLAGS_INIT "${machine}")
set(CMAKE_ASM_FLAGS_INIT "${machine}")
set(CMAKE_CXX_FLAGS_INIT "${machine} -fwasm-exceptions ${library} ${headers}")
set(CMAKE_C_COMPILER_WORKS ON)
set(CMAKE_CXX_COMPILER_WORKS ON)
