#!/bin/sh
# Resolve the pinned dependencies anew.  usage: lock.sh UV
set -eu
cd "$(dirname "$0")/.."
uv=$1
lock() { # lock NAME ARGUMENTS...
    name=$1
    shift
    "$uv" pip compile --quiet --universal --generate-hashes --no-header --no-emit-index-url \
        --python-version 3.11 "$@" --output-file "requirements/$name.lock"
}
lock run setup.cfg
lock build requirements/build.in
lock dev setup.cfg --extra dev --constraint requirements/run.lock
lock demo requirements/demo.in --no-deps
lock audit requirements/audit.in --constraint requirements/dev.lock
lock bench requirements/bench.in --constraint requirements/dev.lock
