# Installs BUILD below SCRATCH, builds PROJECT against it and runs both programs.
function(run text)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE out ERROR_VARIABLE out)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${text}: status ${status}\n${out}")
  endif()
  set(out "${out}" PARENT_SCOPE)
endfunction()

function(expect part)
  string(FIND "${out}" "${part}" at)
  if(at EQUAL -1)
    message(FATAL_ERROR "expected '${part}' in:\n${out}")
  endif()
endfunction()

file(REMOVE_RECURSE "${SCRATCH}")
run("installing" ${CMAKE_COMMAND} --install "${BUILD}" --prefix "${SCRATCH}/prefix")
run("configuring" ${CMAKE_COMMAND} -S "${PROJECT}" -B "${SCRATCH}/build" -G "${GENERATOR}"
    "-DCMAKE_CXX_COMPILER=${COMPILER}" "-DCMAKE_PREFIX_PATH=${SCRATCH}/prefix")
expect("catalogue: ${SCRATCH}/prefix/share/placet/data")
run("building" ${CMAKE_COMMAND} --build "${SCRATCH}/build")
run("the project's program" "${SCRATCH}/build/mine")
expect("catalogue ${SCRATCH}/prefix/share/placet/data")
# 16 bytes of 8.03e9 parameters over 8; the head's matrix, 1.05 GB; logits and their gradients,
# 2.10 GB each; 34 values of 8192 x 4096 that blocks and head keep, 0.067 GB each.
expect("fits: 23.6 GB of 84.9 GB per device (28 %)")
run("the installed program" "${SCRATCH}/prefix/bin/placet" devices --names)
expect("h100-sxm")
