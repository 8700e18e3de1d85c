#!/usr/bin/env bash
# Everything that must hold, in the order in which it fails fastest; the tests come last, so that the last
# lines are the test runner's own. Needs Rust; with Go, and apt on Debian, it installs the programs that
# tests run against by itself (tests/peers.sh).
#
# usage: tests/run.sh
#   CI=true   a missing program is a failure, and builds go to the cache folder, where the next clone
#             finds them (CARGO_TARGET_DIR wins)
set -euo pipefail
cd "$(dirname "$0")/.."
exec </dev/null

cache=${EXPEDITE_TESTS_CACHE:-$HOME/.cache/expedite-tests}
if [ "${CI:-}" = true ]; then
    export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$cache/target}
fi
# One profile and one set of features for all of it, the README's first command included: dependencies
# are built once.
profile=(--release --locked)
deny=0.20.2

step() {
    local start=$SECONDS
    printf '== %s\n' "$*" >&2
    "$@"
    printf '== %s: %s s\n' "$1 ${2:-}" "$((SECONDS - start))" >&2
}

# A check whose program is absent is left out by name; in CI it is a failure.
absent() {
    printf '== LEFT OUT: %s\n' "$1" >&2
    [ "${CI:-}" != true ] || exit 1
}

component() {
    cargo "$1" --version >/dev/null 2>&1 || { command -v rustup >/dev/null && rustup component add "$2" >&2; }
}

step tests/peers.sh

if component fmt rustfmt; then
    step cargo fmt --all --check
else
    absent "cargo fmt is not installed"
fi

if component clippy clippy; then
    step cargo clippy "${profile[@]}" --workspace --all-targets -- -D warnings
else
    absent "cargo clippy is not installed"
fi

RUSTDOCFLAGS="-D warnings" step cargo doc "${profile[@]}" --workspace --no-deps

# Advisories need a database that a machine without the network cannot fetch; everything else is here.
if [ "$("$cache/bin/cargo-deny" --version 2>/dev/null)" != "cargo-deny $deny" ]; then
    CARGO_TARGET_DIR=$cache/deny step cargo install cargo-deny --version "$deny" --locked --root "$cache" || true
    rm -rf "$cache/deny"
fi
if [ -x "$cache/bin/cargo-deny" ]; then
    step "$cache/bin/cargo-deny" --log-level error check licenses bans sources
else
    absent "cargo-deny $deny could not be installed"
fi

# Last, and by itself: the last lines are the runner's own.
printf '== cargo test --workspace %s\n' "${profile[*]}" >&2
exec cargo test --workspace "${profile[@]}" --no-fail-fast
