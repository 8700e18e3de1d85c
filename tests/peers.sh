#!/usr/bin/env bash
# Installs the real programs that tests run against, into a cache folder: cosign 3 and 2, oras, crane, actionlint, our
# own registry, kube-apiserver, kubectl and Argo CD with Go; docker-registry, etcd, redis, sshd, nginx and a few more
# through apt. Versions are pinned,
# a second run finds everything there.
#
# usage: tests/peers.sh
#   EXPEDITE_TESTS_CACHE   where to (default: ~/.cache/expedite-tests)
#   CI=true                anything that cannot be installed is a failure; otherwise it is said, and the
#                          tests that need it are left out
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
cache=${EXPEDITE_TESTS_CACHE:-$HOME/.cache/expedite-tests}
bin=$cache/bin
mkdir -p "$bin"

# Two clones on one machine share the folder: one installs, the other waits and finds it done.
if command -v flock >/dev/null; then
    exec 9>"$cache/lock"
    flock 9
fi

say() { printf '%s\n' "peers: $*" >&2; }

lacking() {
    say "$1"
    [ "${CI:-}" != true ] || exit 1
    say "the tests that need it are left out"
}

# --- Debian packages: by the file each one brings, so that other systems may bring it their own way ---

wanted=(
    docker-registry:docker-registry
    openssh-server:sshd
    openssh-client:ssh-keygen
    nginx-light:nginx
    fcgiwrap:fcgiwrap
    strace:strace
    etcd-server:etcd
    redis-server:redis-server
    jq:jq
    git:git
    faketime:faketime
)
absent=()
export PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
for pair in "${wanted[@]}"; do
    command -v "${pair#*:}" >/dev/null || absent+=("${pair%%:*}")
done
# PyYAML reads fixtures back with a second pair of eyes; Debian's own python3 brings it.
python3 -c 'import yaml' 2>/dev/null || /usr/bin/python3 -c 'import yaml' 2>/dev/null || absent+=(python3-yaml)

if [ ${#absent[@]} -gt 0 ]; then
    as_root=()
    [ "$(id -u)" = 0 ] || as_root=(sudo -n)
    say "installing ${absent[*]}"
    export DEBIAN_FRONTEND=noninteractive
    # Debian starts a daemon as soon as it is installed; tests start their own on ports of their own.
    policy=/usr/sbin/policy-rc.d
    guard=
    if command -v apt-get >/dev/null && [ "$(id -u)" = 0 ] && [ ! -e "$policy" ]; then
        printf '#!/bin/sh\nexit 101\n' >"$policy"
        chmod 755 "$policy"
        guard=$policy
    fi
    if ! { command -v apt-get >/dev/null \
        && "${as_root[@]}" apt-get -q update </dev/null >&2 \
        && "${as_root[@]}" apt-get -qy --no-install-recommends install "${absent[@]}" </dev/null >&2; }; then
        [ -z "$guard" ] || rm -f "$guard"
        lacking "could not install ${absent[*]} with apt-get"
    fi
    [ -z "$guard" ] || rm -f "$guard"
fi

# --- Go programs ---

if ! command -v go >/dev/null; then
    for file in cosign3 cosign2 oras crane actionlint refreg kube-apiserver kubectl argocd; do
        [ -x "$bin/$file" ] || lacking "Go is missing, and with it $file (https://go.dev/dl/)"
    done
    exit 0
fi

export CGO_ENABLED=0

# go_program NAME MODULE PACKAGE VERSION: installed as NAME unless NAME already is that version.
go_program() {
    local name=$1 module=$2 package=$3 version=$4 start=$SECONDS
    if [ -x "$bin/$name" ] && go version -m "$bin/$name" | grep -qF "	mod	$module	$version	"; then
        return
    fi
    say "building $name $version"
    rm -rf "$cache/new"
    if GOBIN=$cache/new go install -trimpath -ldflags '-s -w' "$module/$package@$version" </dev/null >&2; then
        mv "$cache/new/$(basename "$package")" "$bin/$name"
        say "built $name in $((SECONDS - start)) s"
    else
        lacking "$name $version does not build"
    fi
    rm -rf "$cache/new"
}

go_program oras oras.land/oras cmd/oras v1.3.6
go_program crane github.com/google/go-containerregistry cmd/crane v0.22.1
go_program actionlint github.com/rhysd/actionlint cmd/actionlint v1.7.12
go_program cosign3 github.com/sigstore/cosign/v3 cmd/cosign v3.1.3
go_program cosign2 github.com/sigstore/cosign/v2 cmd/cosign v2.6.5

# go_module NAME PACKAGE: from the module in peers/NAME, built again when its files change.
go_module() {
    local name=$1 package=$2 start=$SECONDS sources
    sources=$(cat "$here/peers/$name"/* | sha256sum)
    if [ -x "$bin/$name" ] && [ "$(cat "$bin/.$name" 2>/dev/null)" = "$sources" ]; then
        return
    fi
    say "building $name"
    if (cd "$here/peers/$name" \
        && go build -trimpath -ldflags '-s -w' -o "$bin/$name.new" "$package" </dev/null >&2); then
        mv "$bin/$name.new" "$bin/$name"
        printf '%s\n' "$sources" >"$bin/.$name"
        say "built $name in $((SECONDS - start)) s"
    else
        lacking "$name does not build"
    fi
}

go_module refreg .
# Argo CD cannot be installed by name either; what its go.mod replaces is replaced in ours.
go_module argocd github.com/argoproj/argo-cd/v3/cmd

# The API server and kubectl: a module of its own, since k8s.io/kubernetes cannot be installed by name (its
# go.mod replaces its own parts). Clients parse their version, which Kubernetes' own build sets by the linker.
k8s=$(sed -n 's|.*k8s.io/kubernetes \(v[0-9.]*\).*|\1|p' "$here/peers/k8s/go.mod" | head -1)

# k8s_program NAME ARGUMENTS…: those that make it print its version.
k8s_program() {
    local name=$1 start=$SECONDS minor=${k8s#v1.} version=k8s.io/component-base/version
    shift
    if [ -x "$bin/$name" ] && "$bin/$name" "$@" | grep -qF " $k8s"; then
        return
    fi
    say "building $name $k8s (minutes)"
    if (cd "$here/peers/k8s" && go build -trimpath \
        -ldflags "-s -w -X $version.gitVersion=$k8s -X $version.gitMajor=1 -X $version.gitMinor=${minor%%.*}" \
        -o "$bin/$name.new" "k8s.io/kubernetes/cmd/$name" </dev/null >&2); then
        mv "$bin/$name.new" "$bin/$name"
        say "built $name in $((SECONDS - start)) s"
    else
        lacking "$name $k8s does not build"
    fi
}

k8s_program kube-apiserver --version
k8s_program kubectl version --client
