# Makes a source file that holds the bytes of `input` as limpid::<namespace>::<name>_text(), so that the program
# needs no file beside it. Run as a script (-DINPUT= -DOUTPUT= -DNAMESPACE= -DNAME=), or call limpid_embed().
if(CMAKE_SCRIPT_MODE_FILE)
  file(READ ${INPUT} bytes HEX)
  string(LENGTH "${bytes}" digits)
  math(EXPR size "${digits} / 2")
  string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
  string(REGEX REPLACE "((0x..,){24})" "\\1\n" bytes "${bytes}")
  file(WRITE ${OUTPUT} "#include <string_view>\nnamespace limpid::${NAMESPACE} {\n"
                       "namespace {\nconst unsigned char kBytes[] = {\n${bytes}0};\n}\n"
                       "std::string_view ${NAME}_text();\n"
                       "std::string_view ${NAME}_text() { return {reinterpret_cast<const char*>(kBytes), ${size}}; }\n}\n")
  return()
endif()

set(LIMPID_EMBED_SCRIPT ${CMAKE_CURRENT_LIST_FILE})
function(limpid_embed target input namespace name)
  set(output ${CMAKE_CURRENT_BINARY_DIR}/${name}_text.cpp)
  add_custom_command(OUTPUT ${output}
                     COMMAND ${CMAKE_COMMAND} -DINPUT=${input} -DOUTPUT=${output} -DNAMESPACE=${namespace}
                             -DNAME=${name} -P ${LIMPID_EMBED_SCRIPT}
                     DEPENDS ${input} ${LIMPID_EMBED_SCRIPT} VERBATIM)
  target_sources(${target} PRIVATE ${output})
endfunction()
