//! Packs that belong to the store. A pack without a row was left by someone who did not come to an end.

use rusqlite::Transaction;

use super::{Durability, Meta, MetaError, wrong};
use crate::id::ObjectId;

/// Where a pack comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Written for one snapshot.
    Snapshot,
    /// Made of several others.
    RollUp,
    /// Brought in from the user's repository.
    Source,
}

impl Origin {
    const ALL: [Self; 3] = [Self::Snapshot, Self::RollUp, Self::Source];

    const fn name(self) -> &'static str {
        match self {
            Self::Snapshot => "snapshot",
            Self::RollUp => "roll-up",
            Self::Source => "source",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackRow {
    /// Without an extension.
    pub name: String,
    pub origin: Origin,
    pub objects: u64,
    /// Of pack and index together.
    pub bytes: u64,
    /// The boot during which it was written without waiting for the disk.
    pub unsynced: Option<String>,
}

impl Meta {
    pub fn packs(&self) -> Result<Vec<PackRow>, MetaError> {
        self.read(|connection| {
            let mut statement = connection.prepare("SELECT * FROM packs ORDER BY name")?;
            let rows = statement.query_map([], |row| {
                let origin: String = row.get("origin")?;
                let unsynced: String = row.get("unsynced")?;
                Ok(PackRow {
                    name: row.get("name")?,
                    origin: Origin::ALL
                        .into_iter()
                        .find(|known| known.name() == origin)
                        .ok_or_else(|| wrong("origin"))?,
                    objects: row.get::<_, i64>("objects")?.cast_unsigned(),
                    bytes: row.get::<_, i64>("bytes")?.cast_unsigned(),
                    unsynced: Some(unsynced).filter(|boot| !boot.is_empty()),
                })
            })?;
            rows.collect()
        })
    }

    /// Exchanges packs, and takes away snapshots that are no more, all at once.
    pub(crate) fn exchange(
        &self,
        new: &[PackRow],
        old: &[String],
        gone: &[ObjectId],
    ) -> Result<(), MetaError> {
        self.transaction(Durability::Durable, |transaction| {
            for pack in new {
                add(transaction, pack)?;
            }
            for name in old {
                transaction.prepare("DELETE FROM packs WHERE name = ?1")?.execute([name])?;
            }
            for id in gone {
                let mut statement = transaction.prepare("DELETE FROM snapshots WHERE id = ?1")?;
                statement.execute([id.as_bytes()])?;
            }
            Ok(())
        })
    }

    /// Takes in a pack of the source for the snapshot that is being made. Nobody waits for the disk: what waits for
    /// the snapshot's own row, which comes later in the same log, has waited for this one too.
    pub(crate) fn adopt(&self, pack: &PackRow) -> Result<(), MetaError> {
        self.transaction(Durability::Batched, |transaction| add(transaction, pack))
    }

    /// Writes down that these packs are on disk.
    pub(crate) fn synced(&self, names: &[String]) -> Result<(), MetaError> {
        self.transaction(Durability::Durable, |transaction| {
            for name in names {
                transaction.prepare("UPDATE packs SET unsynced = '' WHERE name = ?1")?.execute([name])?;
            }
            Ok(())
        })
    }
}

pub(super) fn add(transaction: &Transaction<'_>, pack: &PackRow) -> rusqlite::Result<()> {
    let unsynced = pack.unsynced.as_deref().unwrap_or_default();
    transaction.prepare("INSERT OR REPLACE INTO packs VALUES (?1, ?2, ?3, ?4, ?5)")?.execute((
        &pack.name,
        pack.origin.name(),
        pack.objects.cast_signed(),
        pack.bytes.cast_signed(),
        unsynced,
    ))?;
    Ok(())
}
