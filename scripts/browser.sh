#!/usr/bin/env bash
# What the tests of the web page need beside Go: axe-core, pinned, into .local/axe,
# and a Chromium and a Firefox, which come from the system. Where one is not found and
# this is CI with the right to install packages, it is installed; elsewhere its tests
# skip and say so.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

version=4.11.0
sha512=ilYanEU8vxxBexpJd8cWM4ElSQq4QctCLKih0TSfjIfCQTeyH/6zVrmIJfLPrKTKJRbiG+cfnZbQIjAlJmF1jQ==
if [[ ! -e .local/axe/axe-$version ]]; then
  if command -v npm >/dev/null; then
    rm -rf .local/axe
    mkdir -p .local/axe
    archive=$(cd .local/axe && npm pack --silent "axe-core@$version" 2>/dev/null | tail -n 1)
    got=$(openssl dgst -sha512 -binary ".local/axe/$archive" | base64 | tr -d '\n')
    [[ $got = "$sha512" ]] || { echo "browser: axe-core $version is not the pinned one" >&2; exit 1; }
    tar -xzf ".local/axe/$archive" -C .local/axe --strip-components=1 package/axe.min.js
    touch ".local/axe/axe-$version"
  else
    echo "browser: npm is missing, so the page's accessibility scan is skipped (sudo apt-get install npm)" >&2
  fi
fi

# need NAME PACKAGE COMMAND... installs PACKAGE unless one of the commands is there.
need() {
  local what=$1 package=$2 name
  for name in "${@:3}"; do
    [[ -n $name ]] && command -v "$name" >/dev/null && return
  done
  if [[ -n ${CI:-} && $(id -u) = 0 ]] && command -v apt-get >/dev/null; then
    echo "browser: installing $package ..." >&2
    apt-get update -qq &&
      DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$package" fonts-dejavu-core >/dev/null && return
  fi
  echo "browser: no $what was found, so the page is not tested in it (sudo apt-get install $package)" >&2
}
need Chromium chromium "${CHROMIUM:-}" chromium chromium-browser google-chrome google-chrome-stable
need Firefox firefox-esr "${FIREFOX:-}" firefox firefox-esr
