# Whether FoundationDB can be built and linked here. Read by tests/run and .ci/run.

# Whether a library is in the cache of the linker, in the folder of the second argument, or where
# libraries are.
has_library() {
    ldconfig -p 2>/dev/null | grep -q "$1" && return 0
    for folder in ${2:-} /usr/lib /usr/lib/* /usr/lib/llvm-*/lib /usr/local/lib; do
        for file in "$folder/$1"*; do
            [ -e "$file" ] && return 0
        done
    done
    return 1
}

# Says what is missing to build and link with the feature fdb: nothing where all is there.
missing_for_foundationdb() {
    if ! has_library libfdb_c.so "${FDB_CLIENT_LIB_PATH:-}"; then
        echo "its client library (libfdb_c.so) is not installed"
    elif ! has_library libclang "${LIBCLANG_PATH:-}"; then
        echo "libclang, which builds its binding, is not installed"
    fi
}
