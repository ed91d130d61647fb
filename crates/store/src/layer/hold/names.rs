//! What of a git directory says where its user is, name by name. Each name costs a start some microseconds, so what
//! changes no commit is not here.

/// What is done about a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    /// Shown as it is now; absent for good where it is absent now.
    Hold,
    /// Shown as it is now, if it is there.
    IfThere,
    /// Absent: it belongs to a git that is at work outside.
    Absent,
}

/// Names in a git directory or, for a linked worktree, in its common one. References are another matter (`references`).
pub(super) const COMMON: &[(&[u8], Rule)] = &[
    // Another way of keeping references. A repository does not get it unnoticed.
    (b"reftable", Rule::IfThere),
    // Where history ends: it grows and shrinks with a fetch.
    (b"shallow", Rule::IfThere),
    // Upstreams, and what the format of the repository is.
    (b"config", Rule::Hold),
];

/// Names in the git directory of one worktree.
pub(super) const OWN: &[(&[u8], Rule)] = &[
    // What is checked out, and what is staged.
    (b"HEAD", Rule::Hold),
    (b"index", Rule::Hold),
    // Settings of this worktree alone, a sparse checkout among them.
    (b"config.worktree", Rule::IfThere),
    // Locks of whoever moves these: inside, nobody could take them.
    (b"index.lock", Rule::Absent),
    (b"HEAD.lock", Rule::Absent),
    // Each of these makes the next commit another one: with more parents, another message, another author.
    (b"MERGE_HEAD", Rule::Hold),
    (b"MERGE_MSG", Rule::Hold),
    (b"CHERRY_PICK_HEAD", Rule::Hold),
    (b"REVERT_HEAD", Rule::Hold),
    // Operations of several steps: inside, `--continue` and `--abort` would go on with the user's.
    (b"rebase-merge", Rule::Hold),
    (b"rebase-apply", Rule::Hold),
    (b"sequencer", Rule::IfThere),
    (b"MERGE_MODE", Rule::IfThere),
    (b"ORIG_HEAD", Rule::IfThere),
];

/// Files that are copied up to a size. Git replaces them, but editors and a few libraries write them in place, and a link would
/// show that. Larger ones are linked: a copy must not cost more than the rest of a start.
pub(super) const COPIED: &[(&[u8], u64)] = &[
    (b"HEAD", 4 << 10),
    (b"config", 64 << 10),
    (b"config.worktree", 64 << 10),
    (b"packed-refs", 64 << 10),
    (b"index", 128 << 10),
];

/// What an index that is split refers to, by the beginning of its name.
pub(super) const SHARED_INDEX: &[u8] = b"sharedindex.";
/// Where the git directories of submodules are.
pub(super) const MODULES: &[u8] = b"modules";
