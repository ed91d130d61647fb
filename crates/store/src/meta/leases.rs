//! Leases: objects that a living process needs, whatever becomes of the snapshots that hold them.

use super::{Durability, Meta, MetaError, id_at};
use crate::id::ObjectId;
use crate::owner::Owner;

/// Keeps an object, and all it refers to, from being collected as long as this value lives.
#[derive(Debug)]
pub struct Lease<'m> {
    meta: &'m Meta,
    number: i64,
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        // One that stays behind goes with its process.
        drop(self.meta.transaction(Durability::Volatile, |transaction| {
            transaction.execute("DELETE FROM leases WHERE number = ?1", [self.number])
        }));
    }
}

impl Meta {
    /// Takes a lease. It need not survive a power cut: neither would its owner.
    pub fn lease(&self, object: &ObjectId) -> Result<Lease<'_>, MetaError> {
        let Owner { pid, start } = Owner::current();
        let number = self.transaction(Durability::Volatile, |transaction| {
            let query = "INSERT INTO leases (object, pid, start) VALUES (?1, ?2, ?3)";
            transaction.execute(query, (object.as_bytes(), pid, start.cast_signed()))?;
            Ok(transaction.last_insert_rowid())
        })?;
        Ok(Lease { meta: self, number })
    }

    /// What living processes hold; leases of the dead are taken away.
    pub fn leased(&self) -> Result<Vec<ObjectId>, MetaError> {
        let all: Vec<(i64, ObjectId, Owner)> = self.read(|connection| {
            let mut statement = connection.prepare("SELECT * FROM leases")?;
            let rows = statement.query_map([], |row| {
                let owner =
                    Owner { pid: row.get("pid")?, start: row.get::<_, i64>("start")?.cast_unsigned() };
                Ok((row.get("number")?, id_at(row, "object")?, owner))
            })?;
            rows.collect()
        })?;
        let (alive, dead): (Vec<_>, Vec<_>) = all.into_iter().partition(|(_, _, owner)| owner.is_alive());
        if !dead.is_empty() {
            self.transaction(Durability::Volatile, |transaction| {
                for (number, ..) in &dead {
                    transaction.execute("DELETE FROM leases WHERE number = ?1", [number])?;
                }
                Ok(())
            })?;
        }
        Ok(alive.into_iter().map(|(_, object, _)| object).collect())
    }
}
