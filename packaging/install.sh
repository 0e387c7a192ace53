#!/bin/sh
# Installs deftool from a release: downloads the archive of this platform, verifies its checksum and copies the programs:
# `deftool`, and `deftool-analyze`, which analyses scripts for it. Usage: install.sh [--to FOLDER] [--version VERSION]
#
# DEFTOOL_DOWNLOAD_URL is the folder of the releases, for mirrors; each release is a folder `vVERSION` in it.
set -eu

version=0.1.0
to=${XDG_BIN_HOME:-$HOME/.local/bin}
releases=${DEFTOOL_DOWNLOAD_URL:-https://example.invalid/deftool/releases/download}

fail() {
  echo "install.sh: $1" >&2
  exit 1
}

while [ $# -gt 0 ]; do
  case $1 in
    --to) to=${2:?--to needs a folder}; shift 2 ;;
    --version) version=${2:?--version needs a version}; shift 2 ;;
    *) fail "unknown argument $1; usage: install.sh [--to FOLDER] [--version VERSION]" ;;
  esac
done

source_build="build deftool from source instead: cargo install --path . in a checkout"
case $(uname -s) in
  Linux)
    # The program needs the C library of GNU.
    getconf GNU_LIBC_VERSION >/dev/null 2>&1 || fail "no release for this C library; $source_build"
    system=unknown-linux-gnu
    ;;
  Darwin) system=apple-darwin ;;
  *) fail "no release for $(uname -s); $source_build" ;;
esac
case $(uname -m) in
  x86_64 | amd64) target=x86_64-$system ;;
  aarch64 | arm64) target=aarch64-$system ;;
  *) fail "no release for $(uname -m); $source_build" ;;
esac

download() {
  if command -v curl >/dev/null 2>&1; then
    curl --fail --silent --show-error --location "$1" --output "$2"
  elif command -v wget >/dev/null 2>&1; then
    wget --quiet "$1" --output-document="$2"
  else
    fail "curl or wget is needed"
  fi || fail "cannot download $1"
}

checksum() {
  if command -v sha256sum >/dev/null 2>&1; then
    line=$(sha256sum < "$1")
  elif command -v shasum >/dev/null 2>&1; then
    line=$(shasum --algorithm 256 < "$1")
  else
    fail "sha256sum or shasum is needed"
  fi
  echo "${line%% *}"
}

# Compares the archive `$1` with the only line of `$2`, which must name it: `CHECKSUM  NAME` or `CHECKSUM *NAME`.
verify() {
  expected=$(checksum "$1")
  case $(cat "$2") in
    "$expected  $1" | "$expected *$1") ;;
    *" $1" | *"*$1") fail "the checksum of the download is wrong; nothing was installed" ;;
    *) fail "the checksum file does not name $1; nothing was installed" ;;
  esac
}

case $to in
  /*) ;;
  *) to=$PWD/$to ;;
esac
name=deftool-$version-$target
temporary=$(mktemp -d)
new=
trap 'rm -rf "$temporary" ${new:+"$new"}' EXIT
cd "$temporary"
download "$releases/v$version/$name.tar.gz" "$name.tar.gz"
download "$releases/v$version/$name.tar.gz.sha256" "$name.tar.gz.sha256"
verify "$name.tar.gz" "$name.tar.gz.sha256"
for program in deftool deftool-analyze; do
  # To stdout: a link in the archive has no content, and no other member is extracted.
  tar -xzOf "$name.tar.gz" "$name/$program" > "$program" || fail "the archive has no $program; nothing was installed"
  [ -s "$program" ] || fail "$program in the archive is not a file; nothing was installed"
  [ ! -d "$to/$program" ] || fail "$to/$program is a folder; nothing was installed"
done
mkdir -p "$to"
# New files, and renames: no link is followed, and a program that is running is replaced.
for program in deftool-analyze deftool; do
  new=$(mktemp "$to/.deftool.XXXXXX")
  cat "$program" > "$new"
  chmod 755 "$new"
  mv -f "$new" "$to/$program"
done
echo "installed $("$to/deftool" -V) to $to/deftool"
case :$PATH: in
  *:"$to":*) ;;
  *) echo "add $to to PATH to run it as deftool" ;;
esac
