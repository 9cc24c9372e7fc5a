CREATE TABLE meta (
    name TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    value TEXT COLLATE "C" NOT NULL
);

CREATE TABLE syncs (
    env TEXT COLLATE "C" NOT NULL,
    sync_id TEXT COLLATE "C" NOT NULL,
    config JSON NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (env, sync_id)
);

-- One row per table: the last fencing token, the lease, and the lake's head.
CREATE TABLE table_state (
    env TEXT COLLATE "C" NOT NULL,
    scope TEXT COLLATE "C" NOT NULL,
    connector_type TEXT COLLATE "C" NOT NULL,
    source_key TEXT COLLATE "C" NOT NULL,
    schema_name TEXT COLLATE "C" NOT NULL,
    table_name TEXT COLLATE "C" NOT NULL,
    token BIGINT NOT NULL,
    run_id TEXT COLLATE "C",
    host TEXT COLLATE "C",
    boot_id TEXT COLLATE "C",
    process_id BIGINT,
    process_started TEXT COLLATE "C",
    expires_at TIMESTAMPTZ,
    head_run_id TEXT COLLATE "C",
    head_location TEXT COLLATE "C",
    PRIMARY KEY (env, scope, connector_type, source_key, schema_name, table_name)
);
CREATE INDEX table_state_run ON table_state (run_id) WHERE run_id IS NOT NULL;

CREATE TABLE watermarks (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    env TEXT COLLATE "C" NOT NULL,
    scope TEXT COLLATE "C" NOT NULL,
    connector_type TEXT COLLATE "C" NOT NULL,
    source_key TEXT COLLATE "C" NOT NULL,
    schema_name TEXT COLLATE "C" NOT NULL,
    table_name TEXT COLLATE "C" NOT NULL,
    watermark_column TEXT COLLATE "C" NOT NULL,
    watermark_kind TEXT COLLATE "C" NOT NULL,
    last_exported_value TEXT COLLATE "C",
    max_seen TEXT COLLATE "C",
    first_bound TEXT COLLATE "C",
    direction TEXT COLLATE "C" NOT NULL,
    version BIGINT NOT NULL,
    row_count BIGINT NOT NULL,
    last_sync_at TIMESTAMPTZ,
    last_checked_at TIMESTAMPTZ,
    last_run_id TEXT COLLATE "C",
    starts_generation BOOLEAN NOT NULL,
    UNIQUE (env, scope, connector_type, source_key, schema_name, table_name)
);

CREATE TABLE watermark_history (
    watermark_id TEXT COLLATE "C" NOT NULL REFERENCES watermarks (id) ON DELETE CASCADE,
    version BIGINT NOT NULL,
    change TEXT COLLATE "C" NOT NULL,
    before_change JSON NOT NULL,
    after_change JSON NOT NULL,
    actor_kind TEXT COLLATE "C" NOT NULL,
    actor_name TEXT COLLATE "C" NOT NULL,
    reason TEXT COLLATE "C",
    changed_at TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (watermark_id, version)
);

CREATE TABLE runs (
    run_id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    env TEXT COLLATE "C" NOT NULL,
    scope TEXT COLLATE "C" NOT NULL,
    status TEXT COLLATE "C" NOT NULL,
    started_at TIMESTAMPTZ NOT NULL,
    finished_at TIMESTAMPTZ,
    error TEXT COLLATE "C"
);
CREATE INDEX runs_of_scope ON runs (env, scope, started_at);
CREATE INDEX runs_under_way ON runs (env, scope) WHERE status = 'running';

CREATE TABLE table_runs (
    run_id TEXT COLLATE "C" NOT NULL REFERENCES runs (run_id) ON DELETE CASCADE,
    env TEXT COLLATE "C" NOT NULL,
    scope TEXT COLLATE "C" NOT NULL,
    connector_type TEXT COLLATE "C" NOT NULL,
    source_key TEXT COLLATE "C" NOT NULL,
    schema_name TEXT COLLATE "C" NOT NULL,
    table_name TEXT COLLATE "C" NOT NULL,
    token BIGINT NOT NULL,
    status TEXT COLLATE "C" NOT NULL,
    read_window JSON,
    uploads JSON NOT NULL,
    pending JSON,
    row_count BIGINT NOT NULL,
    byte_count BIGINT NOT NULL,
    counters JSON NOT NULL,
    notices JSON NOT NULL,
    started_at TIMESTAMPTZ NOT NULL,
    finished_at TIMESTAMPTZ,
    error TEXT COLLATE "C",
    PRIMARY KEY (run_id, env, scope, connector_type, source_key, schema_name, table_name)
);
CREATE INDEX table_runs_unfinished
    ON table_runs (env, scope, connector_type, source_key, schema_name, table_name)
    WHERE status IN ('reading', 'committing', 'committed');
