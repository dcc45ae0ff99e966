# The tools of packaging, with their versions. Read by build, test and release.

TOOLS=target/tools
PATH="$PWD/$TOOLS/bin:$PATH"

# Installs a tool of Cargo where it, or this version of it, is missing.
install_tool() {
    if ! [ -x "$TOOLS/bin/$1" ] || ! grep -qs "\"$1 $2 " "$TOOLS/.crates2.json"; then
        # Not into the folder of the build: that of tools is of another kind.
        env -u CARGO_BUILD_TARGET CARGO_TARGET_DIR="$TOOLS/build" \
            cargo install --quiet --locked --root "$TOOLS" --features "${3:-}" "$1@$2"
    fi
}

CARGO_ABOUT=0.9.3
CARGO_CYCLONEDX=0.5.9
CARGO_DEB=3.8.0
CARGO_GENERATE_RPM=0.21.1

fail() {
    echo "$0: $1" >&2
    exit 1
}

# The version of the program.
version() {
    sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml
}

# The folder of a target's programs.
target_folder() {
    echo "${CARGO_TARGET_DIR:-target}"
}

# What packages hold beside the program, in target/packages: the man pages and completions of the program
# in the first argument.
make_documents() {
    rm -rf target/packages/man target/packages/completions
    mkdir -p target/packages/man target/packages/completions
    "$1" man >target/packages/man/quoin.1
    for page in $("$1" help | sed -n '/^Commands:/,/^$/s/^  \([a-z-]*\) .*/\1/p'); do
        [ "$page" = help ] || "$1" man "$page" >"target/packages/man/quoin-$page.1"
    done
    for page in $("$1" queues --help | sed -n '/^Commands:/,/^$/s/^  \([a-z-]*\) .*/\1/p'); do
        "$1" man "queues-$page" >"target/packages/man/quoin-queues-$page.1"
    done
    "$1" completions bash >target/packages/completions/quoin.bash
    "$1" completions zsh >target/packages/completions/_quoin
    "$1" completions fish >target/packages/completions/quoin.fish
}
