# PgBouncer from Debian's package before the service `postgres`: once in session
# mode and once in transaction mode.
# shellcheck shell=bash

pgbouncer_start() {
    local folder=$1 primary home mode
    primary=$(folder_of postgres)
    wait_until 5 test -d "$primary" || fail "pgbouncer stands before postgres: start that too"
    wait_until 120 test -e "$primary/env" || fail "pgbouncer stands before postgres, which did not start"
    pgbouncer_install
    home=$(mktemp -d /tmp/tidelake-pgbouncer.XXXXXX)
    echo "$home" >"$folder/home"
    cat "$primary/home" >"$folder/serves"
    ! postgres_is_root || chown "$(postgres_user)" "$home"
    : >"$folder/env.new"
    for mode in session transaction; do
        pgbouncer_start_one "$folder" "$home" "$primary" "$mode"
    done
    echo "127.0.0.1, logs in $home" >"$folder/summary"
    mv "$folder/env.new" "$folder/env"
}

pgbouncer_start_one() {
    local folder=$1 home=$2 primary=$3 mode=$4 port attempt
    for attempt in 1 2 3; do
        port=$(free_port)
        pgbouncer_settings "$home" "$primary" "$mode" "$port" | postgres_as tee "$home/$mode.ini" >/dev/null
        postgres_as "$(command -v pgbouncer || echo /usr/sbin/pgbouncer)" -q -d "$home/$mode.ini" 9>&- >&2 || true
        if wait_until 10 pgbouncer_answers "$port" && pgbouncer_one_alive "$home" "$mode"; then
            export_line "TIDELAKE_TEST_PGBOUNCER_${mode^^}_PORT" "$port" >>"$folder/env.new"
            return 0
        fi
        say "attempt $attempt to start pgbouncer failed"
    done
    tail -n 30 "$home/$mode.log" >&2
    fail "pgbouncer did not start"
}

pgbouncer_settings() {
    local home=$1 primary=$2 mode=$3 port=$4
    (
        # shellcheck source=/dev/null
        source "$primary/env"
        printf '"%s" "%s"\n' "$TIDELAKE_TEST_PG_USER" "$TIDELAKE_TEST_PG_PASSWORD" |
            postgres_as tee "$home/users.txt" >/dev/null
        cat <<SETTINGS
[databases]
* = host=127.0.0.1 port=$TIDELAKE_TEST_PG_PORT
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = $port
unix_socket_dir =
auth_type = scram-sha-256
auth_file = $home/users.txt
pool_mode = $mode
default_pool_size = 20
max_client_conn = 200
logfile = $home/$mode.log
pidfile = $home/$mode.pid
SETTINGS
    )
}

pgbouncer_install() {
    [ -x /usr/sbin/pgbouncer ] || command -v pgbouncer >/dev/null || {
        # The package would start one of its own.
        if postgres_is_root && [ ! -e /usr/sbin/policy-rc.d ]; then
            printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d
            chmod +x /usr/sbin/policy-rc.d
            install_packages pgbouncer
            rm -f /usr/sbin/policy-rc.d
        else
            install_packages pgbouncer
        fi
    }
}

pgbouncer_answers() {
    (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null
}

pgbouncer_one_alive() {
    local pid
    pid=$(cat "$1/$2.pid" 2>/dev/null) && process_runs "$pid" "$1/$2.ini"
}

pgbouncer_alive() {
    local home
    home=$(cat "$1/home") || return 1
    [ "$(cat "$1/serves")" = "$(cat "$(folder_of postgres)/home" 2>/dev/null)" ] || return 1
    pgbouncer_one_alive "$home" session && pgbouncer_one_alive "$home" transaction
}

pgbouncer_stop() {
    local home mode pid
    [ -e "$1/home" ] || return 0
    home=$(cat "$1/home")
    for mode in session transaction; do
        if pgbouncer_one_alive "$home" "$mode"; then
            pid=$(cat "$home/$mode.pid")
            kill -KILL "$pid"
        fi
    done
    mkdir -p "$state/logs"
    cat "$home"/*.log >"$state/logs/pgbouncer.log" 2>/dev/null || true
    rm -rf "$home"
}
