-- Every statement commits by itself here, so a step may have been interrupted
-- between two of them and is then run again from its start: each must be
-- harmless where its work is done already.
--
-- Names differ by case and by blanks at their ends: utf8mb4_bin is replaced by the
-- server's own collation that compares codes and does not pad.

CREATE TABLE IF NOT EXISTS meta (
    name VARCHAR(64) NOT NULL PRIMARY KEY,
    value LONGTEXT NOT NULL
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS syncs (
    env VARCHAR(64) NOT NULL,
    sync_id VARCHAR(64) NOT NULL,
    config LONGTEXT NOT NULL,
    created_at DATETIME(6) NOT NULL,
    PRIMARY KEY (env, sync_id)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- One row per table: the last fencing token, the lease, and the lake's head.
-- A key may have 3072 bytes, and a character counts as four.
CREATE TABLE IF NOT EXISTS table_state (
    env VARCHAR(64) NOT NULL,
    scope VARCHAR(64) NOT NULL,
    connector_type VARCHAR(32) NOT NULL,
    source_key VARCHAR(192) NOT NULL,
    schema_name VARCHAR(128) NOT NULL,
    table_name VARCHAR(255) NOT NULL,
    token BIGINT NOT NULL,
    run_id VARCHAR(26),
    host LONGTEXT,
    boot_id LONGTEXT,
    process_id BIGINT,
    process_started LONGTEXT,
    expires_at DATETIME(6),
    head_run_id VARCHAR(26),
    head_location LONGTEXT,
    PRIMARY KEY (env, scope, connector_type, source_key, schema_name, table_name),
    KEY table_state_run (run_id),
    KEY table_state_head (head_run_id)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS watermarks (
    id VARCHAR(64) NOT NULL PRIMARY KEY,
    env VARCHAR(64) NOT NULL,
    scope VARCHAR(64) NOT NULL,
    connector_type VARCHAR(32) NOT NULL,
    source_key VARCHAR(192) NOT NULL,
    schema_name VARCHAR(128) NOT NULL,
    table_name VARCHAR(255) NOT NULL,
    watermark_column LONGTEXT NOT NULL,
    watermark_kind LONGTEXT NOT NULL,
    last_exported_value LONGTEXT,
    max_seen LONGTEXT,
    first_bound LONGTEXT,
    direction VARCHAR(16) NOT NULL,
    version BIGINT NOT NULL,
    row_count BIGINT NOT NULL,
    last_sync_at DATETIME(6),
    last_checked_at DATETIME(6),
    last_run_id VARCHAR(26),
    starts_generation BOOLEAN NOT NULL,
    UNIQUE KEY watermarks_of_table
        (env, scope, connector_type, source_key, schema_name, table_name)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS watermark_history (
    watermark_id VARCHAR(64) NOT NULL,
    version BIGINT NOT NULL,
    "change" VARCHAR(64) NOT NULL,
    before_change LONGTEXT NOT NULL,
    after_change LONGTEXT NOT NULL,
    actor_kind LONGTEXT NOT NULL,
    actor_name LONGTEXT NOT NULL,
    reason LONGTEXT,
    changed_at DATETIME(6) NOT NULL,
    PRIMARY KEY (watermark_id, version),
    CONSTRAINT history_of_watermark FOREIGN KEY (watermark_id)
        REFERENCES watermarks (id) ON DELETE CASCADE
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS runs (
    run_id VARCHAR(26) NOT NULL PRIMARY KEY,
    env VARCHAR(64) NOT NULL,
    scope VARCHAR(64) NOT NULL,
    status VARCHAR(16) NOT NULL,
    started_at DATETIME(6) NOT NULL,
    finished_at DATETIME(6),
    error LONGTEXT,
    KEY runs_of_scope (env, scope, started_at),
    KEY runs_under_way (env, scope, status)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS table_runs (
    run_id VARCHAR(26) NOT NULL,
    env VARCHAR(64) NOT NULL,
    scope VARCHAR(64) NOT NULL,
    connector_type VARCHAR(32) NOT NULL,
    source_key VARCHAR(192) NOT NULL,
    schema_name VARCHAR(128) NOT NULL,
    table_name VARCHAR(255) NOT NULL,
    token BIGINT NOT NULL,
    status VARCHAR(16) NOT NULL,
    read_window LONGTEXT,
    uploads LONGTEXT NOT NULL,
    pending LONGTEXT,
    row_count BIGINT NOT NULL,
    byte_count BIGINT NOT NULL,
    counters LONGTEXT NOT NULL,
    notices LONGTEXT NOT NULL,
    started_at DATETIME(6) NOT NULL,
    finished_at DATETIME(6),
    error LONGTEXT,
    PRIMARY KEY (run_id, env, scope, connector_type, source_key, schema_name, table_name),
    KEY table_runs_of_table
        (env, scope, connector_type, source_key, schema_name, table_name),
    CONSTRAINT table_run_of_run FOREIGN KEY (run_id)
        REFERENCES runs (run_id) ON DELETE CASCADE
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
