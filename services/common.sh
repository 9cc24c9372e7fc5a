# What every service's file may use; run sets `here` and `state`.
# shellcheck shell=bash

say() {
    echo "services: $*" >&2
}

fail() {
    say "$*"
    exit 1
}

# locked NAME COMMAND...: one process at a time for each name. The lock is file
# descriptor 9; a server must be started with 9>&- or it would hold it for life.
locked() {
    local name=$1
    shift
    (
        flock 9
        "$@"
    ) 9>"$state/locks/$name"
}

# absent FOLDER REASON: a service that cannot be had everywhere is left out. Its
# variables are then missing, and tests that need it say that they were not run.
# Fails, so that `absent … || return 1` leaves a function.
absent() {
    say "NOT AVAILABLE: ${1##*/}: $2"
    echo "$2" >"$1/absent"
    return 1
}

# process_runs PID WORD: whether that process lives and has WORD in its command
# line. Without the word, a number used anew after a reboot would deceive.
process_runs() {
    [ -n "$1" ] && [ -r "/proc/$1/cmdline" ] && tr '\0' ' ' 2>/dev/null <"/proc/$1/cmdline" | grep -qF -- "$2"
}

# Below the range from which the kernel takes ports for outgoing connections, so
# that none of those can take the port before the server does.
free_port() {
    python3 - <<'PYTHON'
import random, socket
while True:
    port = random.randrange(20000, 32000)
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            continue
    print(port)
    break
PYTHON
}

# wait_until SECONDS COMMAND...
wait_until() {
    local deadline=$((SECONDS + $1))
    shift
    until "$@"; do
        [ $SECONDS -lt $deadline ] || return 1
        sleep 0.05
    done
}

# need COMMAND PACKAGE: installs the Debian package when the command is missing.
need() {
    command -v "$1" >/dev/null || install_packages "$2"
}

install_packages() {
    local root=()
    if [ "$(id -u)" != 0 ]; then
        sudo -n true 2>/dev/null || fail "please install these packages: $*"
        root=(sudo -n)
    fi
    command -v apt-get >/dev/null || fail "please install the equivalent of these Debian packages: $*"
    say "installing $*"
    locked packages "${root[@]}" bash -c '
        export DEBIAN_FRONTEND=noninteractive
        apt-get update -qq || echo "services: the package lists could not be refreshed" >&2
        apt-get install -y -qq --no-install-recommends -o DPkg::Lock::Timeout=300 "$@" >&2
    ' bash "$@" || fail "could not install $*"
}

# venv NAME: prints the path of a Python environment with the packages of
# NAME.txt. It is shared by all instances and made anew when the list changes.
venv() {
    local list=$here/$1.txt folder
    need python3 python3
    python3 -c 'import ensurepip' 2>/dev/null || install_packages python3-venv
    folder=$state/venvs/$1-$({ python3 -c 'import sys; print(sys.version, sys.prefix)'; cat "$list"; } | sha256sum | cut -c1-12)
    locked "venv-$1" make_venv "$folder" "$list"
    echo "$folder"
}

make_venv() {
    [ ! -e "$1/ready" ] || return 0
    say "making the Python environment ${1##*/}"
    rm -rf "$1"
    python3 -m venv "$1"
    "$1/bin/python" -m pip install --quiet --disable-pip-version-check --no-input --no-deps -r "$2" >&2
    touch "$1/ready"
}

# export_line KEY VALUE: quoted so that any POSIX shell reads the value back.
export_line() {
    printf "export %s='%s'\n" "$1" "${2//\'/\'\\\'\'}"
}

# certificates FOLDER: makes ca.crt, server.crt and server.key there: an authority
# of its own, which tests trust, and a server certificate for the address as well
# as for the name.
certificates() {
    cat >"$1/config" <<'CONFIG'
[req]
distinguished_name = name
prompt = no
[name]
CN = tidelake tests
[authority]
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign, cRLSign
subjectKeyIdentifier = hash
[server]
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature
extendedKeyUsage = serverAuth
subjectAltName = IP:127.0.0.1, DNS:localhost
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
CONFIG
    (
        cd "$1"
        openssl req -x509 -config config -extensions authority -newkey ec -pkeyopt ec_paramgen_curve:P-256 \
            -nodes -days 3650 -subj '/CN=tidelake test authority' -keyout ca.key -out ca.crt
        openssl req -new -config config -newkey ec -pkeyopt ec_paramgen_curve:P-256 \
            -nodes -subj '/CN=tidelake test server' -keyout server.key -out server.csr
        openssl x509 -req -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 3650 \
            -extfile config -extensions server -out server.crt
    ) >"$1/log" 2>&1 || {
        cat "$1/log" >&2
        fail "could not make certificates"
    }
}
