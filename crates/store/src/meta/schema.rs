//! The tables.

/// Held in the database itself; another one is refused.
pub(super) const VERSION: i64 = 1;

pub(super) const TABLES: &str = "
    BEGIN;
    CREATE TABLE settings (
        key TEXT PRIMARY KEY,
        value TEXT NOT NULL
    ) STRICT, WITHOUT ROWID;

    -- `target` is what an undo or redo moves over, `link` what stands below it on the stack of its kind.
    CREATE TABLE operations (
        number INTEGER PRIMARY KEY,
        subject TEXT NOT NULL,
        kind TEXT NOT NULL,
        at INTEGER NOT NULL,
        before BLOB,
        after BLOB,
        target INTEGER,
        link INTEGER,
        details TEXT NOT NULL,
        hash BLOB NOT NULL
    ) STRICT;
    CREATE INDEX operations_of_subject ON operations (subject, number);

    CREATE TABLE snapshots (
        id BLOB PRIMARY KEY,
        operation INTEGER NOT NULL,
        subject TEXT NOT NULL,
        at INTEGER NOT NULL,
        tree BLOB NOT NULL,
        extra BLOB NOT NULL,
        state BLOB NOT NULL,
        consistency TEXT NOT NULL,
        message TEXT NOT NULL,
        borrowed INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX snapshots_by_operation ON snapshots (operation);

    -- `undo` is the operation that an undo would take back, `redo` the undo that a redo would.
    CREATE TABLE heads (
        subject TEXT PRIMARY KEY,
        snapshot BLOB NOT NULL,
        operation INTEGER NOT NULL,
        undo INTEGER,
        redo INTEGER
    ) STRICT, WITHOUT ROWID;

    -- `unsynced` is empty, or the boot during which the pack was written without waiting for the disk.
    CREATE TABLE packs (
        name TEXT PRIMARY KEY,
        origin TEXT NOT NULL,
        objects INTEGER NOT NULL,
        bytes INTEGER NOT NULL,
        unsynced TEXT NOT NULL
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE leases (
        number INTEGER PRIMARY KEY,
        object BLOB NOT NULL,
        pid INTEGER NOT NULL,
        start INTEGER NOT NULL
    ) STRICT;

    PRAGMA user_version = 1;
    PRAGMA application_id = 0x53545331;
    COMMIT;
";
