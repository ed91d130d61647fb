//! Findings of a review, of every kind, for tests of what holds them.

use sandtable_merge::review::{Contents, Finding, Links, Parts, Review, Surroundings, review};
use sandtable_merge::tree::{Change, Entry, Mode};
use sandtable_merge::{Approvals, Error, ObjectId, RelPath};

struct Nothing;

impl Contents for Nothing {
    fn read(&self, _: &Entry, _: usize) -> Result<(Vec<u8>, u64), Error> {
        Ok((Vec::new(), 0))
    }

    fn levels(&self, _: &RelPath) -> Result<Vec<Parts>, Error> {
        Ok(Vec::new())
    }

    fn is_file(&self, _: &RelPath) -> Result<bool, Error> {
        Ok(false)
    }
}

fn id() -> ObjectId {
    "4b825dc642cb6eb9a060e54bf8d69288fbee4904".parse().expect("an id")
}

fn change(path: &[u8]) -> Change {
    let new = Some(Entry { mode: Mode::Executable, id: id() });
    Change { path: RelPath::new(path).expect("a path"), old: None, new }
}

fn reviewed(approvals: &Approvals) -> Review {
    let mut around = Surroundings::default();
    around.links = Links::new(None);
    around.links.add([(RelPath::new(".vscode").expect("a path"), b"tools".to_vec())]);
    let changes = [change(b"Makefile"), change(b"a\xff"), change(b"tools/x"), plain(b"x.ps1")];
    review(&changes, &Nothing, &around, approvals).expect("no I/O")
}

/// Some of every kind.
pub fn findings() -> Vec<Finding> {
    some(reviewed(&Approvals::None).held)
}

fn plain(path: &[u8]) -> Change {
    let new = Some(Entry { mode: Mode::File, id: id() });
    Change { new, ..change(path) }
}

fn some(findings: Vec<Finding>) -> Vec<Finding> {
    assert!(!findings.is_empty(), "there is something to look at");
    findings
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use sandtable_merge::Effect;
    use sandtable_merge::conflict::{Conflict, ConflictKind, Stages};
    use sandtable_merge::outcome::{
        Delivered, LeftOut, LeftOutWhy, MergeOutcome, Named, Note, Outcome, PathText, Reason, Recovered,
        Refusal, SCHEMA,
    };
    use sandtable_sandbox::model::path::HostPath;

    use super::*;
    use crate::schema::check;

    fn outcomes() -> Vec<Outcome> {
        let path = PathText::from(&RelPath::new("a").expect("a path"));
        let conflict = Conflict {
            path: path.clone(),
            kind: ConflictKind::RenameRename,
            others: vec![path.clone()],
            stages: Stages::default(),
            text: "both".to_owned(),
        };
        let refusal = Refusal {
            reason: Reason::Dirty,
            text: "local changes are in the way".to_owned(),
            paths: vec![Named { path, why: "it was changed in the worktree".to_owned() }],
            next: Vec::new(),
        };
        let branch = || "main".to_owned();
        let file = HostPath::new("/p").ok();
        vec![
            Outcome::UpToDate,
            Outcome::FastForward { branch: branch(), commit: Some(id()) },
            Outcome::Merged { branch: branch(), commit: None },
            Outcome::Applied,
            Outcome::Exported { branch: Some(branch()), file: None, commit: Some(id()) },
            Outcome::Exported { branch: None, file, commit: None },
            Outcome::Conflicts { conflicts: vec![conflict] },
            Outcome::Held { held: findings() },
            Outcome::Refused { refusal },
            Outcome::RolledBack { reason: "`HEAD` moved".to_owned() },
            Outcome::Unfinished { reason: "the disk failed".to_owned() },
        ]
    }

    #[test]
    fn every_outcome_of_a_merge_has_the_shape_its_schema_promises() {
        let host = |path: &str| HostPath::new(path).expect("absolute");
        for outcome in outcomes() {
            let path = PathText::from(&RelPath::new("b").expect("a path"));
            let answer = MergeOutcome {
                schema: SCHEMA,
                success: outcome.is_success(),
                conflict: false,
                message: String::new(),
                mode: "merge",
                effect: Effect::Plan,
                target: host("/repo"),
                base: id(),
                snapshot: id(),
                outcome,
                changes: vec![Delivered::from(&change(b"x")), Delivered::from(&change(b"\xff"))],
                left_out: vec![
                    LeftOut { path: path.clone(), why: LeftOutWhy::Ignored },
                    LeftOut { path: path.clone(), why: LeftOutWhy::Unrecorded },
                    LeftOut { path: path.clone(), why: LeftOutWhy::EmptyDirectory },
                    LeftOut { path: path.clone(), why: LeftOutWhy::Permissions },
                    LeftOut { path, why: LeftOutWhy::Attributes },
                ],
                approved: some(
                    reviewed(&Approvals::Paths(BTreeSet::from([RelPath::new("Makefile").expect("a path")])))
                        .approved,
                ),
                flagged: some(reviewed(&Approvals::None).flagged),
                plan: Some("0123456789ab".to_owned()),
                recovered: Some(Recovered::Undone),
                interrupted: Some(2),
                notes: vec![Note { code: "hooks-not-run", text: "not run".to_owned() }],
                kept_at: host("/store"),
                undo: Some("0123456789abcdef".to_owned()),
                next: vec!["try again".to_owned()],
            };
            check("merge.json", &answer);
        }
    }
}
