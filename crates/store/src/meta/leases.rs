//! Leases: objects that a living process needs, whatever becomes of the snapshots that hold them.

use std::sync::{MutexGuard, PoisonError};

use super::{Durability, Meta, MetaError, id_at};
use crate::id::ObjectId;
use crate::owner::Owner;

impl Drop for Meta {
    fn drop(&mut self) {
        let taken = std::mem::take(&mut *self.taken());
        if !taken.is_empty() {
            // One that stays behind goes with its process.
            drop(self.remove(&taken));
        }
    }
}

impl Meta {
    /// Keeps an object, and all it refers to, from being collected as long as this handle of the database lives. A lease need
    /// not survive a power cut: neither would its owner.
    pub(crate) fn lease(&self, object: &ObjectId) -> Result<(), MetaError> {
        let Owner { pid, start } = Owner::current();
        let number = self.transaction(Durability::Volatile, |transaction| {
            let query = "INSERT INTO leases (object, pid, start) VALUES (?1, ?2, ?3)";
            transaction.execute(query, (object.as_bytes(), pid, start.cast_signed()))?;
            Ok(transaction.last_insert_rowid())
        })?;
        self.taken().push(number);
        Ok(())
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
            self.remove(&dead.into_iter().map(|(number, ..)| number).collect::<Vec<i64>>())?;
        }
        Ok(alive.into_iter().map(|(_, object, _)| object).collect())
    }

    fn remove(&self, numbers: &[i64]) -> Result<(), MetaError> {
        self.transaction(Durability::Volatile, |transaction| {
            for number in numbers {
                transaction.execute("DELETE FROM leases WHERE number = ?1", [number])?;
            }
            Ok(())
        })
    }

    /// Numbers of the leases that this handle took.
    fn taken(&self) -> MutexGuard<'_, Vec<i64>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
