# Finds cpp-httplib as Debian compiles it (package libcpp-httplib-dev): imported target
# Httplib::Httplib. Its package brings no CMake file, and its types depend on what it was compiled with.
find_path(Httplib_INCLUDE_DIR httplib.h)
find_library(Httplib_LIBRARY cpp-httplib)
find_package(OpenSSL QUIET)
find_package(ZLIB QUIET)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Httplib
    REQUIRED_VARS Httplib_LIBRARY Httplib_INCLUDE_DIR OPENSSL_FOUND ZLIB_FOUND)
if(Httplib_FOUND AND NOT TARGET Httplib::Httplib)
  add_library(Httplib::Httplib UNKNOWN IMPORTED)
  set_target_properties(Httplib::Httplib PROPERTIES
      IMPORTED_LOCATION "${Httplib_LIBRARY}"
      INTERFACE_INCLUDE_DIRECTORIES "${Httplib_INCLUDE_DIR}"
      INTERFACE_LINK_LIBRARIES "OpenSSL::SSL;OpenSSL::Crypto;ZLIB::ZLIB"
      INTERFACE_COMPILE_DEFINITIONS
          "CPPHTTPLIB_OPENSSL_SUPPORT;CPPHTTPLIB_ZLIB_SUPPORT;CPPHTTPLIB_BROTLI_SUPPORT")
endif()
mark_as_advanced(Httplib_INCLUDE_DIR Httplib_LIBRARY)
