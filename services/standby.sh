# A streaming standby of the service `postgres`, which must be up or started
# together with it.
# shellcheck shell=bash

standby_start() {
    local folder=$1 primary home primary_home port attempt
    primary=$(folder_of postgres)
    wait_until 5 test -d "$primary" || fail "standby follows postgres: start that too"
    wait_until 120 test -e "$primary/env" || fail "standby follows postgres, which did not start"
    postgres_install
    primary_home=$(cat "$primary/home")
    home=$(mktemp -d /tmp/tidelake-standby.XXXXXX)
    echo "$home" >"$folder/home"
    echo "$primary_home" >"$folder/follows"
    ! postgres_is_root || chown "$(postgres_user)" "$home"
    postgres_as mkdir -m 700 "$home/data" "$home/socket"
    # A slot keeps what the standby has not read yet, however long it is paused.
    echo "standby_$$" >"$folder/slot"
    (
        # shellcheck source=/dev/null
        source "$primary/env"
        export PGPASSWORD=$TIDELAKE_TEST_PG_PASSWORD
        postgres_as "$postgres_bin/pg_basebackup" -h 127.0.0.1 -p "$TIDELAKE_TEST_PG_PORT" -U tide \
            -D "$home/data" --checkpoint=fast --no-sync --write-recovery-conf --wal-method=stream \
            --create-slot --slot="$(cat "$folder/slot")" 9>&- >&2
    ) || fail "the primary could not be copied"
    postgres_as chmod 700 "$home/data"
    standby_settings "$home" | postgres_as tee -a "$home/data/postgresql.conf" >/dev/null

    for attempt in 1 2 3; do
        port=$(free_port)
        if postgres_as "$postgres_bin/pg_ctl" start -w -t 60 -s -D "$home/data" -l "$home/log" -o "-p $port" 9>&- >&2; then
            {
                export_line TIDELAKE_TEST_PG_STANDBY_HOST 127.0.0.1
                export_line TIDELAKE_TEST_PG_STANDBY_PORT "$port"
            } >"$folder/env.new"
            echo "127.0.0.1:$port, log in $home/log" >"$folder/summary"
            mv "$folder/env.new" "$folder/env"
            return 0
        fi
        grep -q 'could not bind' "$home/log" || break
        say "attempt $attempt to start standby failed: its port was taken meanwhile"
    done
    tail -n 30 "$home/log" >&2
    fail "standby did not start"
}

# What stands in the way of replay is cancelled soon, as tests of that want it.
standby_settings() {
    cat <<SETTINGS
unix_socket_directories = '$1/socket'
hot_standby = on
hot_standby_feedback = off
max_standby_streaming_delay = '500ms'
max_standby_archive_delay = '500ms'
wal_receiver_status_interval = '1s'
SETTINGS
}

standby_alive() {
    local home pid
    home=$(cat "$1/home") || return 1
    [ "$(cat "$1/follows")" = "$(cat "$(folder_of postgres)/home" 2>/dev/null)" ] || return 1
    pid=$(head -n 1 "$home/data/postmaster.pid" 2>/dev/null) || return 1
    process_runs "$pid" "$home/data"
}

standby_stop() {
    local home pid
    [ -e "$1/home" ] || return 0
    home=$(cat "$1/home")
    pid=$(head -n 1 "$home/data/postmaster.pid" 2>/dev/null) || true
    if process_runs "$pid" "$home/data"; then
        kill -QUIT "$pid"
        wait_until 20 standby_gone "$pid" "$home" || kill -KILL "$pid"
    fi
    standby_drop_slot "$1" || true
    mkdir -p "$state/logs"
    cp "$home/log" "$state/logs/standby.log" 2>/dev/null || true
    rm -rf "$home"
}

# A primary that lives on must not keep its log for a standby that is gone.
standby_drop_slot() (
    [ -e "$1/slot" ] && [ -e "$(folder_of postgres)/env" ] && postgres_find || return 0
    # shellcheck source=/dev/null
    source "$(folder_of postgres)/env"
    PGPASSWORD=$TIDELAKE_TEST_PG_PASSWORD "$postgres_bin/psql" -h 127.0.0.1 -p "$TIDELAKE_TEST_PG_PORT" -U tide \
        -d postgres -q -c "SELECT pg_drop_replication_slot('$(cat "$1/slot")')" >/dev/null 2>&1
)

standby_gone() {
    ! process_runs "$1" "$2/data"
}
