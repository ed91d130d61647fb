//! `meta.db`: what happened, in order, and what is there now.
//!
//! Operations are a chain of hashes and are never taken out; snapshots, heads, packs and leases say what is
//! there now and change with the operation that changed them, in one transaction. The caller decides what an
//! operation means; this module only knows which snapshot a subject was at before and after.

mod chain;
mod heads;
mod kind;
mod leases;
mod operations;
mod packs;
mod schema;
mod snapshots;

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OptionalExtension as _, Transaction, TransactionBehavior};

pub use chain::ChainFault;
pub use heads::{Direction, Head, Move};
pub use kind::OperationKind;
pub use operations::{Filter, HeadChange, Operation, OperationDraft};
pub use packs::{Origin, PackRow};
pub(crate) use snapshots::Made;
pub use snapshots::Snapshot;

use crate::id::{HashKind, ObjectId};

/// How safe something is when a call returns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// On disk: it survives a power cut.
    #[default]
    Durable,
    /// Handed to the system: it survives a crash of ours, and a power cut once the store was synchronised.
    Batched,
    /// Nobody waits for any disk.
    Volatile,
}

/// Why `meta.db` could not be used.
#[derive(Debug, thiserror::Error)]
pub enum MetaError {
    #[error("cannot use `{}`", path.display())]
    Database { path: PathBuf, source: rusqlite::Error },
    #[error("cannot write `{}` to the disk", path.display())]
    Io { path: PathBuf, source: std::io::Error },
    #[error("`{}` is of a format this version does not know (`{found}`)", path.display())]
    Format { path: PathBuf, found: i64 },
    #[error("`{}` is damaged: {what}", path.display())]
    Damaged { path: PathBuf, what: String },
    #[error("no snapshot is called `{0}`")]
    Unknown(String),
    #[error("`{text}` may be any of {} snapshots", candidates.len())]
    Ambiguous { text: String, candidates: Vec<ObjectId> },
    #[error("nothing of `{subject}` can be {}", direction.done())]
    NoMove { subject: String, direction: Direction },
    #[error("`{0}` was changed by someone else meanwhile")]
    Moved(String),
}

impl MetaError {
    /// Whether what lies on the disk is damaged, and not merely out of reach for now.
    pub fn is_damage(&self) -> bool {
        match self {
            Self::Damaged { .. } => true,
            Self::Database { path, source } => match source.sqlite_error_code() {
                Some(ErrorCode::CannotOpen) => !path.is_file(),
                Some(
                    ErrorCode::DiskFull
                    | ErrorCode::SystemIoFailure
                    | ErrorCode::ReadOnly
                    | ErrorCode::PermissionDenied
                    | ErrorCode::DatabaseBusy
                    | ErrorCode::DatabaseLocked
                    | ErrorCode::FileLockingProtocolFailed
                    | ErrorCode::OutOfMemory,
                ) => false,
                _ => true,
            },
            _ => false,
        }
    }
}

/// What there is of one moment. Read one after the other, the parts would not fit while somebody writes.
#[derive(Debug)]
pub(crate) struct Rows {
    pub(crate) snapshots: Vec<Snapshot>,
    pub(crate) operations: Vec<Operation>,
    pub(crate) heads: Vec<(String, Head)>,
}

/// The database of a store.
#[derive(Debug)]
pub struct Meta {
    path: PathBuf,
    hash: HashKind,
    connection: Mutex<Connection>,
    /// Leases that end with this handle.
    taken: Mutex<Vec<i64>>,
}

/// How long one waits for another's transaction.
const PATIENCE: Duration = Duration::from_mins(1);
/// Pages after which what was written is moved into the database: about thirty snapshots.
const CHECKPOINT: u32 = 256;

/// How long one waits where it can be done another time.
const BRIEFLY: Duration = Duration::from_millis(200);

impl Meta {
    /// The database and its log, as they lie in a store.
    pub(crate) const FILES: [&str; 2] = ["meta.db", "meta.db-wal"];

    /// Opens the database, which must be there.
    pub fn open(path: &Path, hash: HashKind) -> Result<Self, MetaError> {
        let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_WRITE | rusqlite::OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let meta = Self::with(path, hash, Connection::open_with_flags(path, flags))?;
        let version = meta.connection().query_row("PRAGMA user_version", [], |row| row.get(0));
        match version.map_err(|source| meta.error(source))? {
            schema::VERSION => Ok(meta),
            // Every version writes its own: none is that of a file which is empty or was cut short.
            0 => Err(MetaError::Damaged { path: path.to_owned(), what: "it is empty".to_owned() }),
            found => Err(MetaError::Format { path: path.to_owned(), found }),
        }
    }

    /// Makes a new database in a directory that nobody else knows yet.
    pub fn create(path: &Path, hash: HashKind) -> Result<Self, MetaError> {
        Self::lay_out(path)?;
        Self::open(path, hash)
    }

    /// Makes the files of a new database ([`Meta::FILES`]), which the caller has to write out. Until then nobody knows it, so
    /// nothing is waited for. The log stays beside it: to begin one costs the first transaction two more waits.
    pub(crate) fn lay_out(path: &Path) -> Result<(), MetaError> {
        let made = Connection::open(path).and_then(|connection| {
            connection.pragma_update(None, "synchronous", "OFF")?;
            connection.pragma_update(None, "journal_mode", "WAL")?;
            connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
            connection.execute_batch(schema::TABLES)?;
            connection.close().map_err(|(_, source)| source)
        });
        made.map_err(|source| MetaError::Database { path: path.to_owned(), source })
    }

    fn with(path: &Path, hash: HashKind, opened: rusqlite::Result<Connection>) -> Result<Self, MetaError> {
        let prepare = |connection: &Connection| {
            connection.busy_timeout(PATIENCE)?;
            connection.pragma_update(None, "journal_mode", "WAL")?;
            connection.pragma_update(None, "synchronous", "FULL")?;
            // Each call of the program is short: what it wrote is moved over when there is enough of it, and whoever
            // opens the database reads all that was not.
            connection.pragma_update(None, "wal_autocheckpoint", CHECKPOINT)?;
            connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
            Ok(())
        };
        let connection = opened.and_then(|connection| prepare(&connection).map(|()| connection));
        let named = |source| MetaError::Database { path: path.to_owned(), source };
        let (connection, taken) = (Mutex::new(connection.map_err(named)?), Mutex::default());
        Ok(Self { path: path.to_owned(), hash, connection, taken })
    }

    /// A setting of the store.
    pub fn setting(&self, key: &str) -> Result<Option<String>, MetaError> {
        let query = "SELECT value FROM settings WHERE key = ?1";
        let value = self.connection().query_row(query, [key], |row| row.get(0)).optional();
        value.map_err(|source| self.error(source))
    }

    /// Changes a setting of the store; `None` takes it away.
    pub fn set_setting(&self, key: &str, value: Option<&str>) -> Result<(), MetaError> {
        self.transaction(Durability::Durable, |transaction| set_setting(transaction, key, value))
    }

    /// Makes final what is seen now. A process that is killed while it commits may leave a transaction that is on disk and not
    /// yet visible to those who have the database open; it would come to light when the last of them has closed it, unless
    /// somebody writes before.
    pub(crate) fn settle(&self) -> Result<(), MetaError> {
        self.set_setting("settled", Some(&nanoseconds(SystemTime::now()).to_string()))
    }

    /// Snapshots, operations and heads as of one moment.
    pub(crate) fn rows(&self) -> Result<Rows, MetaError> {
        self.read(|connection| {
            Ok(Rows {
                snapshots: snapshots::select(connection, self.hash, snapshots::ALL, [])?,
                operations: operations::select(connection, &Filter::default())?,
                heads: heads::heads(connection)?,
            })
        })
    }

    /// What the database says about itself; empty if all is well.
    pub fn check(&self) -> Result<Vec<String>, MetaError> {
        let connection = self.connection();
        let rows = connection.prepare("PRAGMA integrity_check(20)").and_then(|mut statement| {
            let rows = statement.query_map([], |row| row.get::<_, String>(0))?;
            rows.collect::<rusqlite::Result<Vec<String>>>()
        });
        let rows = rows.map_err(|source| self.error(source))?;
        Ok(rows.into_iter().filter(|row| row != "ok").collect())
    }

    /// Moves what was written last into the database proper and gives back the room it took beside it. Where others read
    /// at the moment it is left for another time.
    pub(crate) fn shrink(&self) -> Result<(), MetaError> {
        let connection = self.connection();
        let moved = connection
            .busy_timeout(BRIEFLY)
            .and_then(|()| connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())));
        connection.busy_timeout(PATIENCE).and(moved).map_err(|source| self.error(source))
    }

    fn connection(&self) -> MutexGuard<'_, Connection> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something that is done as a whole or not at all.
    fn transaction<T>(
        &self,
        durability: Durability,
        work: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, MetaError> {
        let level = match durability {
            Durability::Durable => "FULL",
            // Less than this would let a power cut damage the database itself.
            Durability::Batched | Durability::Volatile => "NORMAL",
        };
        let mut connection = self.connection();
        let done = connection.pragma_update(None, "synchronous", level).and_then(|()| {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let value = work(&transaction)?;
            transaction.commit()?;
            Ok(value)
        });
        done.map_err(|source| self.error(source))
    }

    /// Waits for the disk: what was appended without waiting is then as safe as what was appended durably.
    pub fn sync(&self) -> Result<(), MetaError> {
        let mut log = self.path.clone().into_os_string();
        log.push("-wal");
        // The log is no file that SQLite locks: to close another handle of one of those would give up its locks.
        let synced = fs_err::File::open(PathBuf::from(log)).and_then(|log| log.sync_all());
        let folder = self.path.parent().unwrap_or(Path::new("."));
        let synced = synced.and_then(|()| fs_err::File::open(folder)?.sync_all());
        synced.map_err(|source| MetaError::Io { path: self.path.clone(), source })
    }

    /// Reads several things as of one moment.
    fn read<T>(&self, work: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, MetaError> {
        let connection = self.connection();
        let read = connection.unchecked_transaction().and_then(|transaction| work(&transaction));
        read.map_err(|source| self.error(source))
    }

    fn error(&self, source: rusqlite::Error) -> MetaError {
        match source {
            rusqlite::Error::FromSqlConversionFailure(..)
            | rusqlite::Error::InvalidColumnType(..)
            | rusqlite::Error::IntegralValueOutOfRange(..) => {
                MetaError::Damaged { path: self.path.clone(), what: source.to_string() }
            }
            source => MetaError::Database { path: self.path.clone(), source },
        }
    }
}

fn set_setting(transaction: &Transaction<'_>, key: &str, value: Option<&str>) -> rusqlite::Result<()> {
    match value {
        Some(value) => transaction
            .prepare("INSERT OR REPLACE INTO settings (key, value) VALUES (?1, ?2)")?
            .execute([key, value])?,
        None => transaction.prepare("DELETE FROM settings WHERE key = ?1")?.execute([key])?,
    };
    Ok(())
}

/// Nanoseconds since 1970, as far as a number goes.
fn nanoseconds(at: SystemTime) -> i64 {
    match at.duration_since(UNIX_EPOCH) {
        Ok(after) => i64::try_from(after.as_nanos()).unwrap_or(i64::MAX),
        Err(before) => i64::try_from(before.duration().as_nanos()).map_or(i64::MIN, |before| -before),
    }
}

fn moment(nanoseconds: i64) -> SystemTime {
    let distance = Duration::from_nanos(nanoseconds.unsigned_abs());
    if nanoseconds < 0 { UNIX_EPOCH - distance } else { UNIX_EPOCH + distance }
}

/// An id in a row.
fn id_at(row: &rusqlite::Row<'_>, column: &str) -> rusqlite::Result<ObjectId> {
    optional_id_at(row, column)?.ok_or_else(|| wrong(column))
}

fn optional_id_at(row: &rusqlite::Row<'_>, column: &str) -> rusqlite::Result<Option<ObjectId>> {
    let bytes: Option<Vec<u8>> = row.get(column)?;
    bytes.map(|bytes| ObjectId::from_bytes(&bytes).map_err(|_| wrong(column))).transpose()
}

/// What is in a column is nothing that was ever written there.
fn wrong(column: &str) -> rusqlite::Error {
    let what = format!("the value in `{column}` is not one that is written there");
    rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Blob, what.into())
}
