use sandtable_protocol::report::Control;
use sandtable_sandbox::model::limits::Limits;
use sandtable_sandbox::model::mount::MountTable;
use sandtable_sandbox::model::resolved::{EngineName, Mode, Warning};
use sandtable_sandbox::model::spec::{Base, Network, WorkspaceMode};
use sandtable_sandbox::session::record::SkippedEntry;

use super::*;

/// The outcome of a command that changed nothing.
pub(crate) fn outcome() -> Outcome {
    Outcome {
        schema: 1,
        sandbox: "0f".to_owned(),
        name: "keen-otter-4f2k".parse().expect("a name"),
        engine: EngineName::Native,
        engine_reason: "the only one here".to_owned(),
        command: vec!["true".to_owned()],
        exit: Exit { code: 0, signal: None, origin: ExitOrigin::Command },
        base: Base::Source,
        mode: Mode { value: WorkspaceMode::Overlay, reason: "auto".to_owned() },
        changes: Some(changes(vec![])),
        snapshot: None,
        drift: vec![],
        enforcement: [(Control::Seccomp, Observed::Enforced)].into(),
        mounts: MountTable::new(vec![]).expect("nothing contradicts itself"),
        network: Network::None,
        limits: Limits::default(),
        tools: Vec::new(),
        timings_ms: Timings { resolve: 1, start: 5, run: 30, capture: 5 },
        warnings: vec![],
    }
}

fn changes(entries: Vec<ChangeEntry>) -> Changes {
    Changes { added: 0, modified: 0, removed: 0, entries, git: GitState::Untouched, skipped: vec![] }
}

fn entry(kind: ChangeKind, path: &str) -> ChangeEntry {
    let (path, entry) = match path.strip_suffix('/') {
        Some(directory) => (directory, EntryType::Directory),
        None => (path, EntryType::File),
    };
    ChangeEntry { kind, path: path.to_owned(), path_hex: None, entry, below: 0, mount: None }
}

fn rendered(outcome: &Outcome) -> String {
    render(outcome, SummaryLength::Full, Colour::Never)
}

/// The outcome of a command that changed something of every kind.
pub(crate) fn busy() -> Outcome {
    use ChangeKind::{Added, Modified, Removed};
    let mut list = changes(vec![
        entry(Modified, "README"),
        entry(Added, "d/f"),
        entry(Added, "empty/"),
        ChangeEntry { below: 3, ..entry(Removed, "src/") },
        entry(ChangeKind::ModeChanged, "run.sh"),
        ChangeEntry { entry: EntryType::Symlink, ..entry(ChangeKind::TypeChanged, "link") },
        ChangeEntry { mount: Some("/data".to_owned()), ..entry(Removed, "src/x") },
    ]);
    list.git = GitState::Changed;
    list.skipped.push(SkippedEntry { path: "dev".to_owned(), why: "a device".to_owned() });
    let drift = vec![
        DriftEntry { kind: DriftKind::Modified, path: "other.txt".to_owned() },
        DriftEntry { kind: DriftKind::Contents, path: "lib".to_owned() },
    ];
    let enforcement = [
        (Control::NetworkNamespace, Observed::Absent { why: "the host's network was asked for".to_owned() }),
        (Control::Seccomp, Observed::Enforced),
    ];
    let warnings = vec![Warning::new("nested", "this runs inside another sandbox")];
    let enforcement = enforcement.into();
    Outcome { changes: Some(list), drift, enforcement, warnings, ..outcome() }
}

#[test]
fn a_summary_names_every_change() {
    insta::assert_snapshot!(rendered(&busy()), @"
    sandtable: keen-otter-4f2k · exit 0 · 7 changes · 41 ms
      M README
      A d/f
      A empty/
      D src/ (3 files)
      M run.sh (mode)
      T link (now a symlink)
      D /data/src/x
      git: the sandbox's own .git changed
      skipped dev: a device
    sandtable: the source moved while the command ran (drift):
      M other.txt
      M lib (entries came or went)
    sandtable: for a long run beside your own work, `--base store` keeps such changes out of the sandbox
    sandtable: warning: this runs inside another sandbox [nested]
    sandtable: not enforced: network-namespace: the host's network was asked for
    sandtable: look inside: sandtable exec keen-otter-4f2k -- …   drop it: sandtable rm keen-otter-4f2k
    ");
}

#[test]
fn what_never_sees_the_source_is_not_advised_to_leave_it() {
    let advises = |base, value| {
        let mode = Mode { value, reason: "asked for".to_owned() };
        rendered(&Outcome { base, mode, ..busy() }).contains("--base store")
    };
    assert!(advises(Base::Source, WorkspaceMode::Overlay));
    assert!(!advises(Base::Store, WorkspaceMode::Overlay));
    assert!(!advises(Base::Source, WorkspaceMode::Copy));
}

#[test]
fn hostile_names_cannot_steer_the_terminal() {
    let mut list = changes(vec![
        entry(ChangeKind::Added, "\u{1b}]0;owned\u{7}"),
        entry(ChangeKind::Added, "a\nsandtable: all is well"),
        entry(ChangeKind::Removed, "bin\u{202e}cod.exe/"),
        entry(ChangeKind::Modified, " \"quoted\\\" "),
    ]);
    list.skipped.push(SkippedEntry { path: "\r".to_owned(), why: "\u{9b}2J".to_owned() });
    let warnings = vec![Warning::new("odd", "file `\u{1b}[8m` is odd\n")];
    let drift = vec![DriftEntry { kind: DriftKind::Added, path: "\u{8}\u{8}".to_owned() }];
    let enforcement = [(Control::Landlock, Observed::Absent { why: "\u{1b}c".to_owned() })].into();
    let text = rendered(&Outcome { changes: Some(list), warnings, drift, enforcement, ..outcome() });
    assert!(text.chars().all(|c| c == '\n' || !c.is_control()));
    insta::assert_snapshot!(text, @r#"
    sandtable: keen-otter-4f2k · exit 0 · 4 changes · 41 ms
      A "\u{1b}]0;owned\u{7}"
      A "a\nsandtable: all is well"
      D "bin\u{202e}cod.exe/"
      M " \"quoted\\\" "
      skipped "\r": \u{9b}2J
    sandtable: the source moved while the command ran (drift):
      A "\u{8}\u{8}"
    sandtable: for a long run beside your own work, `--base store` keeps such changes out of the sandbox
    sandtable: warning: file `\u{1b}[8m` is odd\n [odd]
    sandtable: not enforced: landlock: \u{1b}c
    sandtable: look inside: sandtable exec keen-otter-4f2k -- …   drop it: sandtable rm keen-otter-4f2k
    "#);
}

#[test]
fn long_lists_are_cut_and_say_so() {
    let many = (0..53).map(|i| entry(ChangeKind::Added, &format!("f{i}"))).collect();
    let text = rendered(&Outcome { changes: Some(changes(many)), ..outcome() });
    let lines: Vec<&str> = text.lines().collect();
    insta::assert_snapshot!(lines[0], @"sandtable: keen-otter-4f2k · exit 0 · 53 changes · 41 ms");
    assert_eq!(lines.iter().filter(|line| line.starts_with("  A ")).count(), 50);
    insta::assert_snapshot!(lines[51], @"  … and 3 more: sandtable inspect keen-otter-4f2k --json");
}

#[test]
fn a_sandbox_that_kept_nothing_only_warns() {
    let discarded = Outcome { changes: None, ..outcome() };
    assert_eq!(rendered(&discarded), "");
    let enforcement = [
        (Control::NetworkNamespace, Observed::Absent { why: "the host's network was asked for".to_owned() }),
        (Control::PrivateIds, Observed::Partial { why: "no idmapped mounts here".to_owned() }),
        (Control::Seccomp, Observed::Enforced),
    ];
    let warnings = vec![Warning::new("nested", "this runs inside another sandbox")];
    insta::assert_snapshot!(rendered(&Outcome { enforcement: enforcement.into(), warnings, ..discarded }), @"
    sandtable: warning: this runs inside another sandbox [nested]
    sandtable: only partly enforced: private-ids: no idmapped mounts here
    sandtable: not enforced: network-namespace: the host's network was asked for
    ");
}

#[test]
fn ends_are_told_apart() {
    let end = |code, signal, origin| exit(Exit { code, signal, origin });
    assert_eq!(end(7, None, ExitOrigin::Command), "exit 7");
    assert_eq!(end(143, Some(15), ExitOrigin::Command), "exit 143 (signal 15)");
    assert_eq!(end(127, None, ExitOrigin::Sandbox), "exit 127 (the command was not found)");
    assert_eq!(end(127, None, ExitOrigin::Command), "exit 127");
}

#[test]
fn time_is_said_in_the_unit_that_fits() {
    assert_eq!(duration(41), "41 ms");
    assert_eq!(duration(1234), "1.2 s");
    assert_eq!(duration(3 * 60_000 + 4999), "3 min 4 s");
}

#[test]
fn colour_is_only_where_it_is_wanted() {
    let list = changes(vec![entry(ChangeKind::Added, "f")]);
    let text = render(&Outcome { changes: Some(list), ..outcome() }, SummaryLength::Full, Colour::Ansi);
    assert!(text.contains("\u{1b}[32mA\u{1b}[0m f"), "{text}");
}

#[test]
fn a_short_summary_has_what_was_lost_and_no_lists() {
    let text = render(&busy(), SummaryLength::Short, Colour::Never);
    insta::assert_snapshot!(text, @"
    sandtable: keen-otter-4f2k · exit 0 · 7 changes · 41 ms
      git: the sandbox's own .git changed
      skipped dev: a device
    sandtable: the source moved while the command ran (drift):
      M other.txt
      M lib (entries came or went)
    sandtable: warning: this runs inside another sandbox [nested]
    sandtable: not enforced: network-namespace: the host's network was asked for
    ");
}
