#!/usr/bin/env bash
# Lines of Rust per crate and room, as a Markdown table: all lines, and lines of code (without blank lines,
# comments and test modules).
#
# usage: docs/design/size.sh
set -euo pipefail
cd "$(dirname "$0")/../.."

# Prints "<all> <code>" of the files that are named on stdin. A test module is last in its file.
count() {
    xargs -r awk '
        FNR == 1 { testing = FILENAME ~ /(^|\/)tests?\.rs$/; marked = 0 }
        { all++ }
        marked && /^mod .*\{/ { testing = 1 }
        { marked = /^#\[cfg\(test\)\]/ }
        testing || /^[[:space:]]*$/ || /^[[:space:]]*\/\// { next }
        { code++ }
        END { print all + 0, code + 0 }
    ' | awk '{ all += $1; code += $2 } END { print all + 0, code + 0 }'
}

row() {
    local name=$1
    shift
    local all code
    read -r all code < <(find "$@" -name '*.rs' | sort | count)
    [ "$all" = 0 ] || printf '| %s | %s | %s |\n' "$name" "$all" "$code"
}

printf '| room | lines | of code |\n|---|---|---|\n'
for crate in crates/*/; do
    [ -d "$crate" ] && row "${crate%/}" "$crate"
done
for file in src/*.rs; do
    room=${file%.rs}
    if [ -d "$room" ]; then row "$room" "$file" "$room"; else row "$file" "$file"; fi
done
for folder in src/*/; do
    [ -e "${folder%/}.rs" ] || row "${folder%/}" "$folder"
done
row 'src, all' src
[ ! -d crates ] || row 'crates, all' crates
row tests tests
row benches benches
