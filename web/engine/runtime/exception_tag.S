# The tag that C++ exceptions are thrown with; each module that throws needs its definition once.
  .tagtype __cpp_exception i32
  .globl __cpp_exception
__cpp_exception:
