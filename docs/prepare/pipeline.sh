#!/usr/bin/env bash
# Renders one stage of an application, pushes it as an OCI artifact, signs it, and attests for which Order it was
# built. Prints the pinned reference, which is what `expedite prepare` takes.
#
# usage: pipeline.sh STAGE NAMESPACE/ORDER      in the application's repository
#
#   deploy/base, deploy/STAGE   kustomizations
#   REGISTRY                    host[:port] to push to
#   VERSION                     tag
#   COSIGN_KEY                  what signs: a file, env://NAME or a KMS; COSIGN_PASSWORD opens a file
#
# needs kubectl, oras, cosign 3 and GNU tar
set -euo pipefail
stage=$1 order=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
created=$(TZ=UTC git log -1 --date=format-local:%Y-%m-%dT%H:%M:%SZ --format=%cd)
commit=$(git rev-parse HEAD)
# A checkout's URL may carry a token, and what is signed is public.
source=$(git remote get-url origin | sed -E 's|^(https?://)[^/]*@|\1|')

# pack FOLDER NAME: the same bytes for the same files, so that the same commit is the same digest.
pack() {
    tar --sort=name --owner=0 --group=0 --numeric-owner --mtime=@0 --mode=u=rw,go=r,a+X -C "$1" -cf - . |
        gzip -9n >"$work/$2.tar.gz"
}

# push REPOSITORY NAME [FLAG…]: prints the digest.
push() {
    (cd "$work" && oras push --no-tty --format go-template='{{.digest}}' \
        --annotation "org.opencontainers.image.created=$created" \
        --annotation "org.opencontainers.image.revision=$commit" \
        --annotation "org.opencontainers.image.version=$VERSION" "${@:3}" \
        "$REGISTRY/$1:$VERSION" "$2.tar.gz:application/vnd.oci.image.layer.v1.tar+gzip")
}

# What two stages of one change have in common. An Order with upstream stages compares it.
pack deploy/base base
base=$(push "bases/${order#*/}" base)

# Argo CD reads manifests at the top of the artifact. With Helm: helm template NAME CHART -f values-$stage.yaml
mkdir "$work/rendered"
kubectl kustomize "deploy/$stage" >"$work/rendered/manifests.yaml"
pack "$work/rendered" rendered
digest=$(push "$order" rendered --annotation "org.opencontainers.image.base.digest=$base" \
    --annotation "org.opencontainers.image.description=$(git log -1 --format=%s)")

cat >"$work/provenance.json" <<EOF
{"buildDefinition": {
   "buildType": "https://example.com/kustomize/v1",
   "externalParameters": {"order": {"namespace": "${order%/*}", "name": "${order#*/}"}, "stage": "$stage"},
   "internalParameters": {"renderer": {"renderType": "Manifest",
     "version": "$(kubectl version --client | sed -n 's/^Kustomize Version: v//p')",
     "digest": "sha256:$(sha256sum "$(command -v kubectl)" | cut -d ' ' -f 1)"}},
   "resolvedDependencies": [
     {"uri": "oci://$REGISTRY/bases/${order#*/}", "digest": {"sha256": "${base#sha256:}"}},
     {"uri": "git+$source", "digest": {"gitCommit": "$commit"}}]},
 "runDetails": {
   "builder": {"id": "${BUILDER:-https://example.com/pipeline}"},
   "metadata": {"finishedOn": "$(date -u +%Y-%m-%dT%H:%M:%SZ)"}}}
EOF

# No transparency log: a key signs, and the names in a private registry stay private.
key=(--key "$COSIGN_KEY" --yes --tlog-upload=false --use-signing-config=false)
cosign sign "${key[@]}" "$REGISTRY/$order@$digest" >&2
cosign attest "${key[@]}" --type slsaprovenance1 --predicate "$work/provenance.json" "$REGISTRY/$order@$digest" >&2
echo "$REGISTRY/$order@$digest"
