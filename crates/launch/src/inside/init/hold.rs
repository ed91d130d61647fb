//! Who wants everything held still, and what is put off until it goes on. Each wish is tied to a connection: the
//! last one that goes ends the freeze, however it goes.

use std::os::fd::OwnedFd;

use sandtable_protocol::wire::{Ask, Tell};

use super::Init;
use super::freeze::Freeze;
use crate::transport::Frame;

/// Whether a client wants everything held still.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hold {
    No,
    /// It waits to be told.
    Asked,
    /// It was told.
    Still,
    /// It was told, and something moved afterwards.
    Broken,
}

impl Init {
    pub(super) fn hold(&mut self, index: usize, group: Vec<OwnedFd>) {
        self.clients[index].hold = Hold::Asked;
        self.freeze.get_or_insert_with(|| Freeze::new(group));
    }

    pub(super) fn let_go(&mut self, index: usize) {
        let unbroken = self.clients[index].hold == Hold::Still;
        self.clients[index].hold = Hold::No;
        self.tell(index, &Tell::Thawed { unbroken }, &[]);
        self.thaw_if_nobody_holds();
    }

    /// Keeps a command or a signal until everything goes on. Nothing that would end the connection is kept.
    pub(super) fn put_off(&mut self, index: usize, frame: Frame<Ask>) {
        self.clients[index].later.push(frame);
    }

    /// Goes on freezing, and tells those who wait for it.
    pub(super) fn settle_freeze(&mut self) {
        let Some(freeze) = &mut self.freeze else { return };
        let Some(still) = freeze.go_on() else { return };
        for index in 0..self.clients.len() {
            if self.clients[index].hold == Hold::Asked {
                self.clients[index].hold = Hold::Still;
                self.tell(index, &Tell::Frozen { by: still.by, complete: still.complete }, &[]);
            }
        }
    }

    /// Something ended. The kernel lets stopped jobs go on that are left without their shell.
    pub(super) fn recheck_freeze(&mut self) {
        if self.freeze.as_mut().is_some_and(Freeze::has_moved) {
            self.mark_broken();
        }
    }

    /// Lets everything go on whoever holds it.
    pub(super) fn break_freeze(&mut self) {
        self.mark_broken();
        self.thaw();
    }

    pub(super) fn thaw_if_nobody_holds(&mut self) {
        if self.clients.iter().all(|client| client.hold == Hold::No) {
            self.thaw();
        }
    }

    /// Whoever was told that nothing moves will hear that something did.
    fn mark_broken(&mut self) {
        for client in self.clients.iter_mut().filter(|client| client.hold == Hold::Still) {
            client.hold = Hold::Broken;
        }
    }

    /// Lets everything go on, and then does what was asked for in the meantime.
    fn thaw(&mut self) {
        let Some(freeze) = self.freeze.take() else { return };
        freeze.thaw();
        // None of these answers removes a client: see `put_off`.
        for index in 0..self.clients.len() {
            for frame in std::mem::take(&mut self.clients[index].later) {
                self.answer(index, frame);
            }
        }
    }
}
