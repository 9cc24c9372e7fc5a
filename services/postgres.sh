# PostgreSQL from Debian's package, with TLS and password login only.
# shellcheck shell=bash

# Every character in it has a meaning in a URL, a key-value string or a shell.
postgres_password='p@ss/w:o?r#d% 42'

postgres_start() {
    local folder=$1 home port attempt
    need openssl openssl
    need python3 python3
    postgres_install
    # The server's user must be able to enter the folder, and a socket's path may
    # have 107 bytes only: neither is sure inside a checkout.
    home=$(mktemp -d /tmp/tidelake-postgres.XXXXXX)
    echo "$home" >"$folder/home"
    ! postgres_is_root || chown "$(postgres_user)" "$home"

    postgres_data "$home"
    postgres_certificates "$folder" "$home"
    postgres_settings "$home" | postgres_as tee -a "$home/data/postgresql.conf" >/dev/null
    # Tests meet a server that accepts TLS and one that does not insist on it.
    postgres_as tee "$home/data/pg_hba.conf" >/dev/null <<'RULES'
local all         all              scram-sha-256
host  all         all 127.0.0.1/32 scram-sha-256
host  replication all 127.0.0.1/32 scram-sha-256
RULES

    for attempt in 1 2 3; do
        port=$(free_port)
        if postgres_as "$postgres_bin/pg_ctl" start -w -t 60 -s -D "$home/data" -l "$home/log" -o "-p $port" 9>&- >&2; then
            postgres_describe "$folder" "$port"
            return 0
        fi
        grep -q 'could not bind' "$home/log" || break
        say "attempt $attempt to start postgres failed: its port was taken meanwhile"
    done
    tail -n 30 "$home/log" >&2
    fail "postgres did not start"
}

postgres_alive() {
    local home pid
    home=$(cat "$1/home") || return 1
    pid=$(head -n 1 "$home/data/postmaster.pid" 2>/dev/null) || return 1
    process_runs "$pid" "$home/data"
}

postgres_stop() {
    local home pid
    [ -e "$1/home" ] || return 0
    home=$(cat "$1/home")
    if postgres_alive "$1"; then
        pid=$(head -n 1 "$home/data/postmaster.pid")
        # The data is thrown away, so nothing is lost by not shutting down tidily.
        kill -QUIT "$pid"
        wait_until 20 postgres_gone "$1" || kill -KILL "$pid"
    fi
    mkdir -p "$state/logs"
    cp "$home/log" "$state/logs/postgres.log" 2>/dev/null || true
    rm -rf "$home"
}

postgres_gone() {
    ! postgres_alive "$1"
}

postgres_describe() {
    {
        export_line TIDELAKE_TEST_PG_HOST 127.0.0.1
        export_line TIDELAKE_TEST_PG_PORT "$2"
        export_line TIDELAKE_TEST_PG_USER tide
        export_line TIDELAKE_TEST_PG_PASSWORD "$postgres_password"
        export_line TIDELAKE_TEST_PG_DATABASE postgres
        export_line TIDELAKE_TEST_PG_CA "$1/ca.crt"
    } >"$1/env.new"
    echo "127.0.0.1:$2, log in $(cat "$1/home")/log" >"$1/summary"
    mv "$1/env.new" "$1/env"
}

postgres_is_root() {
    [ "$(id -u)" = 0 ]
}

# The server refuses to run as root.
postgres_user() {
    if id postgres >/dev/null 2>&1; then
        echo postgres
    else
        id tidelake-test >/dev/null 2>&1 || useradd --system --shell /usr/sbin/nologin tidelake-test
        echo tidelake-test
    fi
}

postgres_as() (
    # The working folder may be one that the server's user cannot enter.
    cd /
    if postgres_is_root; then
        exec runuser -u "$(postgres_user)" -- "$@"
    fi
    exec "$@"
)

# Sets `postgres_bin`: Debian keeps initdb and pg_ctl off the PATH.
postgres_install() {
    postgres_find && return
    # The package would start a server of its own on the usual port.
    if postgres_is_root && [ ! -e /etc/postgresql-common ]; then
        mkdir -p /etc/postgresql-common/createcluster.d
        echo 'create_main_cluster = false' >/etc/postgresql-common/createcluster.d/tidelake.conf
    fi
    install_packages postgresql
    postgres_find || fail "initdb is missing although postgresql was installed"
}

postgres_find() {
    local found
    found=$(printf '%s\n' /usr/lib/postgresql/*/bin/initdb | sort -V | tail -n 1)
    [ -x "$found" ] || found=$(command -v initdb) || return 1
    postgres_bin=$(dirname "$(readlink -f "$found")")
}

# initdb takes seconds, unpacking what it once made a tenth of one.
postgres_data() {
    local version template
    version=$("$postgres_bin/postgres" --version | tr -c 'A-Za-z0-9.\n' '-')
    template=$state/templates/$version-$(sha256sum "$here/postgres.sh" | cut -c1-12).tar
    postgres_as mkdir -m 700 "$1/data" "$1/socket" "$1/tls"
    locked template-postgres postgres_template "$1" "$template"
    postgres_as tar -C "$1/data" -xf - <"$template"
}

postgres_template() {
    [ ! -e "$2" ] || return 0
    mkdir -p "$state/templates"
    postgres_as tee "$1/password" >/dev/null <<<"$postgres_password"
    postgres_as mkdir -m 700 "$1/template"
    postgres_as "$postgres_bin/initdb" -D "$1/template" --no-sync --username=tide --pwfile="$1/password" \
        --auth=scram-sha-256 --encoding=UTF8 --locale=C.UTF-8 >/dev/null
    tar -C "$1/template" -cf "$2.new" .
    rm -rf "$1/template" "$1/password"
    mv "$2.new" "$2"
}

postgres_settings() {
    cat <<SETTINGS
listen_addresses = '127.0.0.1'
unix_socket_directories = '$1/socket'
max_connections = 200
max_prepared_transactions = 20
wal_level = replica
max_wal_size = 2GB
# Safe to lose, so never waited for.
fsync = off
synchronous_commit = off
full_page_writes = off
ssl = on
ssl_ca_file = '$1/tls/ca.crt'
ssl_cert_file = '$1/tls/server.crt'
ssl_key_file = '$1/tls/server.key'
password_encryption = scram-sha-256
timezone = 'UTC'
log_timezone = 'UTC'
lc_messages = 'C'
SETTINGS
}

postgres_certificates() {
    local folder=$1 home=$2 work
    work=$(mktemp -d)
    certificates "$work"
    cp "$work/ca.crt" "$folder/ca.crt"
    chmod 644 "$folder/ca.crt"
    tar -C "$work" -cf - ca.crt server.crt server.key | postgres_as tar -C "$home/tls" -xf - --no-same-owner --no-same-permissions
    postgres_as chmod 600 "$home/tls/server.key"
    rm -rf "$work"
}
