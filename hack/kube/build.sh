#!/usr/bin/env bash
# Builds kube (all Kubernetes programs in one file), etcd and kwok from the Go module proxy.
# Usage: build.sh KUBERNETES_VERSION OUT_DIR [kube|etcd|kwok...]     e.g. build.sh 1.36.3 /tmp/out; all of them if none is named
set -euo pipefail

version=$1
out=$(realpath -m "$2")
names=("${@:3}")
[ ${#names[@]} -gt 0 ] || names=(etcd kwok kube)
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
etcd_version=v3.6.16
kwok_version=v0.8.0
need_minor=26

command -v go >/dev/null || { echo "Go 1.$need_minor or newer is needed; no go on PATH"; exit 1; }
have=$(cd / && go env GOVERSION)
minor=$(sed -E 's/^go1\.([0-9]+).*/\1/' <<<"$have")
if ! [[ $minor =~ ^[0-9]+$ ]] || (( minor < need_minor )); then
  echo "Go 1.$need_minor or newer is needed; this is $have"
  exit 1
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out"
export CGO_ENABLED=0 GOFLAGS=-buildvcs=false GOWORK=off
step() { echo "$(date +%T) $*"; }

build_kube() {
  step "kube: fetching Kubernetes v$version"
  mkdir -p "$work/kube"
  cd "$work/kube"
  cp "$here/main.go" .
  go mod download "k8s.io/kubernetes@v$version"
  local published
  published=$(go env GOMODCACHE)/cache/download/k8s.io/kubernetes/@v/v$version.mod
  # The published go.mod points its staging modules at relative paths; their releases carry the same minor and patch number under v0.
  {
    echo "module kube"
    echo "go 1.$need_minor.0"
    echo "require k8s.io/kubernetes v$version"
    grep -oE '^[[:space:]]*(replace )?k8s\.io/[a-z-]+ => \./staging' "$published" | grep -oE 'k8s\.io/[a-z-]+' | sort -u |
      while read -r module; do echo "replace $module => $module v0.${version#1.}"; done
  } >go.mod
  # Test-only imports of dependencies need not resolve.
  go mod tidy -e >tidy.log 2>&1 || { cat tidy.log; return 1; }
  step "kube: compiling (the long one)"
  local info=k8s.io/component-base/version minor_version
  minor_version=$(cut -d. -f2 <<<"$version")
  go build -trimpath \
    -ldflags "-s -w -X $info.gitVersion=v$version -X $info.gitMajor=1 -X $info.gitMinor=$minor_version" -o "$out/kube" .
}

build_tool() { # name package module@version
  step "$1: fetching $3"
  mkdir -p "$work/$1"
  cd "$work/$1"
  printf 'module %s\ngo 1.%s.0\n' "build-$1" "$need_minor" >go.mod
  go get -tool "$2@${3#*@}" >get.log 2>&1 || { cat get.log; return 1; }
  step "$1: compiling"
  go build -trimpath -ldflags '-s -w' -o "$out/$1" "$2"
}

for name in "${names[@]}"; do
  case $name in
    etcd) build_tool etcd go.etcd.io/etcd/server/v3 "go.etcd.io/etcd/server/v3@$etcd_version" ;;
    kwok) build_tool kwok sigs.k8s.io/kwok/cmd/kwok "sigs.k8s.io/kwok@$kwok_version" ;;
    kube)
      build_kube
      for link in kube-apiserver kube-controller-manager kube-scheduler kubectl; do ln -sf kube "$out/$link"; done
      ;;
    *) echo "nothing is known of $name"; exit 2 ;;
  esac
done
step "done: $(ls "$out" | tr '\n' ' ')"
