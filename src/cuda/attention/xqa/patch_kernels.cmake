# Adds a few lines to XQA's two kernels and writes them to the build folder. Each anchor must occur
# exactly once, so that another version of the source fails the build and is reviewed.
function(quire_patch_once text anchor addition)
  string(REPLACE "${anchor}" "" without "${${text}}")
  string(LENGTH "${${text}}" length)
  string(LENGTH "${without}" length_without)
  string(LENGTH "${anchor}" length_anchor)
  math(EXPR expected "${length_without} + ${length_anchor}")
  if(NOT length EQUAL expected)
    message(FATAL_ERROR "XQA's source is not the version that Quire patches; expected once: "
                        "${anchor}")
  endif()
  string(REPLACE "${anchor}" "${anchor}${addition}" patched "${${text}}")
  set(${text} "${patched}" PARENT_SCOPE)
endfunction()

# mha_sm90.cu:
#   Values of slots after a context's end are zeroed once they are copied: the kernel gives them the
#   weight 0, and 0 times NaN is NaN.
#   A context of length 0 gets zeros, where XQA writes nothing.
function(quire_patch_hopper_kernel from to)
  # The text has semicolons and brackets, so list functions would break it.
  file(READ ${from} source)
  quire_patch_once(source "auto const& vBuf = smem.vBuf(idxVBuf);"
                   "\n      QUIRE_ZERO_UNUSED_VALUES();")
  quire_patch_once(source
    "uint32_t const cacheSeqLen = getCacheSeqLen<usePagedKVCache>(cacheList, idxReq);"
    "\n  QUIRE_ANSWER_PADDING();")
  # XQA's launch functions start at this line; Quire has its own.
  string(FIND "${source}" "#ifndef GENERATE_CUBIN\nvoid launchHopperF8MHA(" end)
  if(end EQUAL -1)
    message(FATAL_ERROR "XQA's mha_sm90.cu has no launch function where it was")
  endif()
  string(SUBSTRING "${source}" 0 ${end} source)
  file(CONFIGURE OUTPUT ${to} CONTENT "${source}#endif\n" @ONLY)
endfunction()

# mha.cu, where thread blocks that share a request merge their results:
#   The kernel waits for prefetched keys and values before results reuse their shared memory.
#   All threads read a flag in shared memory before the merge overwrites it.
function(quire_patch_other_kernel from to)
  file(READ ${from} source)
  quire_patch_once(source "unused(xBar.produced.arrive());\n    }" "\n    ldgsts::waitGroup<0>();")
  quire_patch_once(source "auto const fullRescaleMask = UniformRescaleMask::filled(~0U);"
                   "\n    ldgsts::waitGroup<0>();")
  quire_patch_once(source "bool const isLastCta = mbsmem.isLastCta;" "\n      __syncthreads();")
  file(CONFIGURE OUTPUT ${to} CONTENT "${source}" @ONLY)
endfunction()
