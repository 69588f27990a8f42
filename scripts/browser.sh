#!/usr/bin/env bash
# What the tests of the web page need beside Go: axe-core and TypeScript, pinned, into .local/,
# and Chromium, Firefox and WebKitGTK, which come from the system. Where one is not
# found and this is CI with the right to install packages, it is installed; elsewhere its tests
# skip and say so.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# pinned FOLDER PACKAGE VERSION SHA512 FILE... unpacks files of a package of npm.
pinned() {
  local folder=.local/$1 package=$2 version=$3 sha512=$4 archive got
  [[ -e $folder/$package-$version ]] && return
  if ! command -v npm >/dev/null; then
    echo "browser: npm is missing, so tests that need $package skip (sudo apt-get install npm)" >&2
    return
  fi
  rm -rf "$folder"
  mkdir -p "$folder"
  archive=$(cd "$folder" && npm pack --silent "$package@$version" 2>/dev/null | tail -n 1)
  got=$(openssl dgst -sha512 -binary "$folder/$archive" | base64 | tr -d '\n')
  [[ $got = "$sha512" ]] || { echo "browser: $package $version is not the pinned one" >&2; exit 1; }
  tar -xzf "$folder/$archive" -C "$folder" --strip-components=1 "${@:5}"
  rm "$folder/$archive"
  touch "$folder/$package-$version"
}
pinned axe axe-core 4.11.0 \
  ilYanEU8vxxBexpJd8cWM4ElSQq4QctCLKih0TSfjIfCQTeyH/6zVrmIJfLPrKTKJRbiG+cfnZbQIjAlJmF1jQ== package/axe.min.js
pinned typescript typescript 5.9.3 \
  jl1vZzPDinLr9eUt3J/t7V6FgNEw9QjvBPdysz9KfQDD41fQrC2Y4vKQdiaUpFT4bXlb1RHhLpp8wtm6M5TgSw== package/lib

# need NAME PACKAGES COMMAND... installs packages unless one of the commands is there.
need() {
  local what=$1 name packages
  read -ra packages <<<"$2"
  for name in "${@:3}"; do
    [[ -n $name ]] && command -v "$name" >/dev/null && return
  done
  if [[ -n ${CI:-} && $(id -u) = 0 ]] && command -v apt-get >/dev/null; then
    echo "browser: installing $2 ..." >&2
    apt-get update -qq &&
      DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${packages[@]}" \
        fonts-dejavu-core >/dev/null && return
  fi
  echo "browser: no $what was found, so the page is not tested in it (sudo apt-get install $2)" >&2
}
need Chromium chromium "${CHROMIUM:-}" chromium chromium-browser google-chrome google-chrome-stable
need Firefox firefox-esr "${FIREFOX:-}" firefox firefox-esr
need WebKitGTK "libwebkit2gtk-4.1-0 xvfb" "${WEBKIT:-}" /usr/lib/*/webkit2gtk-4.*/MiniBrowser
