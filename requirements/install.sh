#!/bin/sh
# install.sh PYTHON ARGUMENTS: `pip install ARGUMENTS` into the environment of PYTHON, by uv where it can be had.
# uv takes a twentieth of pip's time. It does not read pip's configuration: index, certificate and proxy are passed on.
set -eu
python=$1
shift

config=$("$python" -m pip config list 2>/dev/null || true)
option() {
    for section in :env: install global; do
        value=$(printf '%s\n' "$config" | sed -En "s/^$section\.$1='(.*)'\$/\1/p" | sed 's/\\n/ /g; s/^ *//; s/ *$//')
        [ -z "$value" ] || { printf '%s' "$value"; return; }
    done
}
pass() {  # VARIABLE OPTION: a variable that is set already stays
    value=$(option "$2")
    [ -z "$value" ] || eval "export $1=\"\${$1:-\$value}\""
}

uv=$(command -v uv || true)
if [ -z "$uv" ]; then
    uv=$(dirname "$python")/uv
    [ -x "$uv" ] || "$python" -m pip install --quiet --disable-pip-version-check --no-compile --require-hashes \
        -r "$(dirname "$0")/uv.txt" || true
fi
pass UV_DEFAULT_INDEX index-url
pass UV_INDEX extra-index-url
pass UV_FIND_LINKS find-links
pass UV_NO_INDEX no-index
pass UV_INSECURE_HOST trusted-host
pass SSL_CERT_FILE cert
pass ALL_PROXY proxy
# As pip does, take the best version of all indexes; the locks' hashes say which file is meant.
export UV_INDEX_STRATEGY="${UV_INDEX_STRATEGY:-unsafe-best-match}"
if [ -x "$uv" ] && "$uv" pip install --quiet --python "$python" "$@"; then
    exit
fi
echo "uv cannot be used; pip takes over, which takes a minute longer" >&2
exec "$python" -m pip install --quiet --disable-pip-version-check --no-compile "$@"
