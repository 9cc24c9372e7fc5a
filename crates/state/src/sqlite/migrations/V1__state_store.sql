CREATE TABLE meta (
    name TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE syncs (
    env TEXT NOT NULL,
    sync_id TEXT NOT NULL,
    config TEXT NOT NULL,
    created_at TEXT NOT NULL,
    PRIMARY KEY (env, sync_id)
);

-- One row per table: the last fencing token, the lease, and the lake's head.
CREATE TABLE table_state (
    env TEXT NOT NULL,
    scope TEXT NOT NULL,
    connector_type TEXT NOT NULL,
    source_key TEXT NOT NULL,
    schema_name TEXT NOT NULL,
    table_name TEXT NOT NULL,
    token INTEGER NOT NULL,
    run_id TEXT,
    host TEXT,
    boot_id TEXT,
    process_id INTEGER,
    process_started TEXT,
    expires_at TEXT,
    head_run_id TEXT,
    head_location TEXT,
    PRIMARY KEY (env, scope, connector_type, source_key, schema_name, table_name)
);
CREATE INDEX table_state_run ON table_state (run_id) WHERE run_id IS NOT NULL;

CREATE TABLE watermarks (
    id TEXT NOT NULL PRIMARY KEY,
    env TEXT NOT NULL,
    scope TEXT NOT NULL,
    connector_type TEXT NOT NULL,
    source_key TEXT NOT NULL,
    schema_name TEXT NOT NULL,
    table_name TEXT NOT NULL,
    watermark_column TEXT NOT NULL,
    watermark_kind TEXT NOT NULL,
    last_exported_value TEXT,
    max_seen TEXT,
    first_bound TEXT,
    direction TEXT NOT NULL,
    version INTEGER NOT NULL,
    row_count INTEGER NOT NULL,
    last_sync_at TEXT,
    last_checked_at TEXT,
    last_run_id TEXT,
    starts_generation INTEGER NOT NULL,
    UNIQUE (env, scope, connector_type, source_key, schema_name, table_name)
);

CREATE TABLE watermark_history (
    watermark_id TEXT NOT NULL REFERENCES watermarks (id) ON DELETE CASCADE,
    version INTEGER NOT NULL,
    change TEXT NOT NULL,
    before_change TEXT NOT NULL,
    after_change TEXT NOT NULL,
    actor_kind TEXT NOT NULL,
    actor_name TEXT NOT NULL,
    reason TEXT,
    changed_at TEXT NOT NULL,
    PRIMARY KEY (watermark_id, version)
);

CREATE TABLE runs (
    run_id TEXT NOT NULL PRIMARY KEY,
    env TEXT NOT NULL,
    scope TEXT NOT NULL,
    status TEXT NOT NULL,
    started_at TEXT NOT NULL,
    finished_at TEXT,
    error TEXT
);
CREATE INDEX runs_of_scope ON runs (env, scope, started_at);
CREATE INDEX runs_under_way ON runs (env, scope) WHERE status = 'running';

CREATE TABLE table_runs (
    run_id TEXT NOT NULL REFERENCES runs (run_id) ON DELETE CASCADE,
    env TEXT NOT NULL,
    scope TEXT NOT NULL,
    connector_type TEXT NOT NULL,
    source_key TEXT NOT NULL,
    schema_name TEXT NOT NULL,
    table_name TEXT NOT NULL,
    token INTEGER NOT NULL,
    status TEXT NOT NULL,
    read_window TEXT,
    uploads TEXT NOT NULL,
    pending TEXT,
    row_count INTEGER NOT NULL,
    byte_count INTEGER NOT NULL,
    counters TEXT NOT NULL,
    notices TEXT NOT NULL,
    started_at TEXT NOT NULL,
    finished_at TEXT,
    error TEXT,
    PRIMARY KEY (run_id, env, scope, connector_type, source_key, schema_name, table_name)
);
CREATE INDEX table_runs_unfinished
    ON table_runs (env, scope, connector_type, source_key, schema_name, table_name)
    WHERE status IN ('reading', 'committing', 'committed');
