//! The directories that a walk is in the middle of.
//!
//! A directory is read once and finished when all below it are. Directories still to be read are only names in the
//! one above them, so that what is held is in proportion to the depth, and not to the number, of directories. They are kept
//! in a list with numbers instead of owning each other: a chain of ten thousand would be too deep to let go.

use super::found::Findings;
use crate::ignore::Rules;
use crate::path::RelPath;
use crate::source::attributes::Conversions;
use crate::statcache::Key;
use crate::state::{Directory, Entry, Own};

/// Where a directory is in the list, and which of those that were there it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ticket {
    slot: usize,
    serial: u64,
}

/// A directory that is being walked.
#[derive(Debug)]
struct Slot {
    serial: u64,
    above: Option<Ticket>,
    place: Place,
    own: Option<Own>,
    entries: Vec<Entry>,
    written: Option<Directory>,
    waiting: Vec<Sub>,
    /// How many directories in it are under way, and one while it is read itself.
    open: usize,
}

/// What must be known of a directory to read it.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) name: Box<[u8]>,
    pub(super) key: Key,
    pub(super) rules: Rules,
    pub(super) conversions: Conversions,
    /// Whether it lies in an ignored directory.
    pub(super) ignored: bool,
}

/// A directory still to be read.
#[derive(Debug)]
pub(super) struct Sub {
    pub(super) name: Box<[u8]>,
    pub(super) ignored: bool,
}

/// What was found in a directory.
#[derive(Debug)]
pub(super) struct Listed {
    pub(super) own: Own,
    pub(super) entries: Vec<Entry>,
    pub(super) subs: Vec<Sub>,
    /// What it was written as, where that is done already; then there are no entries.
    pub(super) written: Option<Directory>,
    pub(super) rules: Rules,
    pub(super) conversions: Conversions,
}

/// The next thing to do.
pub(super) struct Task {
    pub(super) ticket: Ticket,
    pub(super) above: Option<Ticket>,
    pub(super) place: Place,
}

/// A directory with all that is in it.
pub(super) struct Complete {
    pub(super) ticket: Ticket,
    pub(super) name: Box<[u8]>,
    pub(super) own: Own,
    pub(super) entries: Vec<Entry>,
    pub(super) written: Option<Directory>,
    pub(super) is_root: bool,
    pub(super) ignored: bool,
}

#[derive(Debug, Default)]
pub(super) struct Queue {
    slots: Vec<Option<Slot>>,
    free: Vec<usize>,
    /// Those with directories waiting, the newest last.
    ready: Vec<Ticket>,
    serial: u64,
    pub(super) busy: usize,
    pub(super) findings: Findings,
}

impl Queue {
    pub(super) fn start(&mut self, place: Place) -> Task {
        let ticket = self.insert(None, place.clone());
        self.busy += 1;
        Task { ticket, above: None, place }
    }

    /// The next directory to read, if there is one now.
    pub(super) fn next(&mut self) -> Option<Task> {
        let above = *self.ready.last()?;
        let slot = self.slot(above);
        let sub = slot.waiting.pop().expect("only those with directories waiting are ready");
        slot.open += 1;
        let place = Place {
            key: slot.place.key.below(&sub.name),
            name: sub.name,
            rules: slot.place.rules.clone(),
            conversions: slot.place.conversions.clone(),
            ignored: sub.ignored,
        };
        if slot.waiting.is_empty() {
            self.ready.pop();
        }
        self.busy += 1;
        let ticket = self.insert(Some(above), place.clone());
        Some(Task { ticket, above: Some(above), place })
    }

    /// Takes what was found. What is complete by that is handed out to be written.
    pub(super) fn listed(&mut self, ticket: Ticket, listed: Listed) -> Option<Complete> {
        let slot = self.slot(ticket);
        slot.own = Some(listed.own);
        slot.entries = listed.entries;
        slot.written = listed.written;
        slot.waiting = listed.subs;
        slot.place.rules = listed.rules;
        slot.place.conversions = listed.conversions;
        if !slot.waiting.is_empty() {
            self.ready.push(ticket);
        }
        self.close(ticket)
    }

    /// Takes a directory that was written, or none if there is nothing to say of it, into the one above.
    pub(super) fn written(&mut self, ticket: Ticket, entry: Option<Entry>) -> Option<Complete> {
        let slot = self.slots[ticket.slot].take().expect("a directory is written once");
        self.free.push(ticket.slot);
        let above = slot.above?;
        self.slot(above).entries.extend(entry);
        self.close(above)
    }

    /// The names that lead to a directory.
    pub(super) fn path(&self, ticket: Ticket) -> RelPath {
        let mut names: Vec<&[u8]> = Vec::new();
        let mut at = Some(ticket);
        while let Some(ticket) = at {
            let slot = self.slots[ticket.slot].as_ref().expect("those above wait for it");
            if slot.above.is_some() {
                names.push(&slot.place.name);
            }
            at = slot.above;
        }
        names.reverse();
        if names.is_empty() {
            return RelPath::root();
        }
        RelPath::new(names.join(&b'/')).expect("a directory lists single names")
    }

    fn close(&mut self, ticket: Ticket) -> Option<Complete> {
        let slot = self.slot(ticket);
        slot.open -= 1;
        if slot.open > 0 || !slot.waiting.is_empty() {
            return None;
        }
        Some(Complete {
            ticket,
            name: slot.place.name.clone(),
            own: slot.own.take().expect("a directory is complete after it was read"),
            entries: std::mem::take(&mut slot.entries),
            written: slot.written.take(),
            is_root: slot.above.is_none(),
            ignored: slot.place.ignored,
        })
    }

    fn insert(&mut self, above: Option<Ticket>, place: Place) -> Ticket {
        self.serial += 1;
        let serial = self.serial;
        let slot = Slot {
            serial,
            above,
            place,
            own: None,
            entries: Vec::new(),
            written: None,
            waiting: Vec::new(),
            open: 1,
        };
        let at = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        self.slots[at] = Some(slot);
        Ticket { slot: at, serial }
    }

    fn slot(&mut self, ticket: Ticket) -> &mut Slot {
        let slot = self.slots[ticket.slot].as_mut().expect("it is under way");
        debug_assert_eq!(slot.serial, ticket.serial);
        slot
    }
}
