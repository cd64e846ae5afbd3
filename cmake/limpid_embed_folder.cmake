# Makes a source file that holds the files of a folder, for the program to serve: limpid::web_files() of
# server/web_files.h, a table of path, content type, bytes and ETag. Run as a script (-DFOLDER= -DOUTPUT=), or call
# limpid_embed_folder().
if(CMAKE_SCRIPT_MODE_FILE)
  set(types html text/html css text/css js text/javascript svg image/svg+xml)
  file(GLOB files RELATIVE ${FOLDER} ${FOLDER}/*)
  set(arrays "")
  set(rows "")
  set(n 0)
  foreach(name IN LISTS files)
    string(REGEX REPLACE ".*\\." "" extension ${name})
    list(FIND types "${extension}" index)
    if(index LESS 0)
      message(FATAL_ERROR "${name}: the content type of .${extension} is unknown")
    endif()
    math(EXPR index "${index} + 1")
    list(GET types ${index} type)
    string(REGEX REPLACE "^text/.*" "\\0; charset=utf-8" type ${type})
    file(READ ${FOLDER}/${name} bytes HEX)
    file(SHA256 ${FOLDER}/${name} hash)
    string(SUBSTRING ${hash} 0 32 hash)
    string(LENGTH "${bytes}" digits)
    math(EXPR size "${digits} / 2")
    string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
    string(REGEX REPLACE "((0x..,){24})" "\\1\n" bytes "${bytes}")
    string(APPEND arrays "const unsigned char kBytes${n}[] = {\n${bytes}0};\n")
    string(APPEND rows "    {\"/${name}\", \"${type}\", {reinterpret_cast<const char*>(kBytes${n}), ${size}},\n"
                       "     \"\\\"${hash}\\\"\"},\n")
    math(EXPR n "${n} + 1")
  endforeach()
  file(WRITE ${OUTPUT} "#include \"server/web_files.h\"\n\nnamespace limpid {\nnamespace {\n${arrays}"
                       "const WebFile kFiles[] = {\n${rows}};\n}  // namespace\n\n"
                       "std::span<const WebFile> web_files() { return kFiles; }\n\n}  // namespace limpid\n")
  return()
endif()

set(LIMPID_EMBED_FOLDER_SCRIPT ${CMAKE_CURRENT_LIST_FILE})
function(limpid_embed_folder target folder)
  get_filename_component(folder ${folder} ABSOLUTE)
  set(output ${CMAKE_CURRENT_BINARY_DIR}/web_file_table.cpp)
  file(GLOB files CONFIGURE_DEPENDS ${folder}/*)
  add_custom_command(OUTPUT ${output}
                     COMMAND ${CMAKE_COMMAND} -DFOLDER=${folder} -DOUTPUT=${output} -P ${LIMPID_EMBED_FOLDER_SCRIPT}
                     DEPENDS ${files} ${LIMPID_EMBED_FOLDER_SCRIPT} VERBATIM)
  target_sources(${target} PRIVATE ${output})
endfunction()
