-- The layout that llama-swap uses, so that either program opens the other's file.
CREATE TABLE IF NOT EXISTS activity (
    id                INTEGER PRIMARY KEY AUTOINCREMENT,
    ts_created        INTEGER NOT NULL,
    model_id          TEXT    NOT NULL,
    req_path          TEXT    NOT NULL DEFAULT '',
    resp_content_type TEXT    NOT NULL DEFAULT '',
    resp_status_code  INTEGER NOT NULL DEFAULT 0,
    cache_tokens      INTEGER NOT NULL DEFAULT 0,
    draft_tokens      INTEGER NOT NULL DEFAULT 0,
    draft_acc_tokens  INTEGER NOT NULL DEFAULT 0,
    input_tokens      INTEGER NOT NULL DEFAULT 0,
    output_tokens     INTEGER NOT NULL DEFAULT 0,
    prompt_per_second REAL    NOT NULL DEFAULT 0,
    tokens_per_second REAL    NOT NULL DEFAULT 0,
    duration_ms       INTEGER NOT NULL DEFAULT 0,
    error_msg         TEXT    NOT NULL DEFAULT '',
    metadata_json     TEXT    NOT NULL DEFAULT ''
);

CREATE INDEX IF NOT EXISTS activity_by_time ON activity (ts_created DESC, id DESC);

CREATE INDEX IF NOT EXISTS activity_by_model ON activity (model_id, ts_created DESC, id DESC);

-- llama-swap's own bookkeeping: without these rows it would try to create the table again.
CREATE TABLE IF NOT EXISTS goose_db_version (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    version_id INTEGER NOT NULL,
    is_applied INTEGER NOT NULL,
    tstamp     TIMESTAMP DEFAULT (datetime('now'))
);

INSERT INTO goose_db_version (version_id, is_applied)
SELECT version, 1 FROM (SELECT 0 AS version UNION ALL SELECT 1)
WHERE NOT EXISTS (SELECT 1 FROM goose_db_version)
ORDER BY version;
