//! `sandtable verify`: is a state what it says, and does a command still do on it what it did?

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use sandtable_app::config;
use sandtable_app::config::key::Key;
use sandtable_app::config::layer::Layer;
use sandtable_protocol::invocation::Terminal;
use sandtable_protocol::log::Stream;
use sandtable_sandbox::board::{Found, ObjectId, fsck, left_out_of_all};
use sandtable_sandbox::model::setting::{Origin, Setting};
use sandtable_sandbox::session::proof::{self, Field, Proof, ProofError, Trial, Weight};
use sandtable_sandbox::session::{self, Request, Streams};
use serde::Serialize;

use super::target::state;
use super::{SCHEMA, left_out};
use crate::app::App;
use crate::args::{Creates, SettingArgs};
use crate::error::CliError;
use crate::exit::Own;
use crate::ui::escape;

const EXAMPLES: &str = "\
Examples:
  sandtable verify 5b0a7a                               read everything the snapshot names, and hash it again
  sandtable verify 5b0a7a -- make test > proof.json     run it on exactly that state, and prove what it did
  sandtable verify --against proof.json                 run it again, and name every field that differs";

/// What `verify` takes.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct VerifyArgs {
    /// A snapshot, or a sandbox for its newest state; that of the proof if not given
    #[arg(value_name = "SNAPSHOT|SANDBOX", required_unless_present = "against")]
    snapshot: Option<String>,
    /// A proof that was made before: run its command again and compare
    #[arg(long, value_name = "PROOF")]
    against: Option<PathBuf>,
    /// Answer as JSON; a proof always is
    #[arg(long)]
    json: bool,
    /// The command and its arguments; no shell interprets them
    #[arg(last = true, value_name = "CMD")]
    command: Vec<OsString>,
    #[command(flatten)]
    settings: SettingArgs<Creates>,
}

/// What `--json` answers without a command.
#[derive(Serialize)]
struct Sound {
    schema: u32,
    id: ObjectId,
    tree: ObjectId,
    objects: usize,
    faults: Vec<String>,
    /// What the state does not hold.
    left_out: Vec<left_out::Left>,
}

/// What `--against --json` answers.
#[derive(Serialize)]
struct Compared<'a> {
    schema: u32,
    /// The digest of the proof that was given.
    against: &'a str,
    holds: bool,
    differences: &'a [Field],
    /// What the state does not hold.
    left_out: Vec<left_out::Left>,
    proof: &'a Proof,
}

pub(crate) fn run(app: &App, args: VerifyArgs) -> Result<ExitCode, CliError> {
    let asked = args.snapshot.as_deref().map(|word| state(app, word)).transpose()?;
    let Some(path) = &args.against else {
        let found = asked.expect("the arguments ask for one of the two");
        if args.command.is_empty() {
            return rehash(app, &found, args.json);
        }
        let proof = prove(app, args.settings, &found, Job { command: &args.command, against: None })?;
        app.ui.answer(&format!("{}\n", proof.canonical()))?;
        return Ok(if proof.exit.code == 0 { ExitCode::SUCCESS } else { Own::Failed.into() });
    };
    let unreadable = |source| CliError::ProofFile { path: path.clone(), source };
    let text = fs_err::read(path).map_err(unreadable)?;
    let proof::Checked { proof: old, found } = proof::check(&app.board()?, &text)?;
    if let Some(asked) = asked.filter(|asked| asked.snapshot.id != old.snap_sha) {
        let other = ProofError::OtherSnapshot { proven: old.snap_sha, asked: asked.snapshot.id };
        return Err(session::SessionError::from(other).into());
    }
    let again: Vec<OsString> = old.command.iter().map(Into::into).collect();
    let command = if args.command.is_empty() { &again } else { &args.command };
    let new = prove(app, args.settings, &found, Job { command, against: Some(&old.sha256) })?;
    let differences = proof::compare(&old, &new);
    let holds = differences.iter().all(|field| field.weight == Weight::Noted);
    if args.json {
        let against = &old.sha256;
        let left_out = left_out::listed(&left_out_of_all(&found)?);
        let differences = &differences;
        app.ui.json(&Compared { schema: SCHEMA, against, holds, differences, left_out, proof: &new })?;
    } else {
        app.ui.answer(&rendered(&differences))?;
    }
    Ok(if holds { ExitCode::SUCCESS } else { Own::Failed.into() })
}

/// Reads everything that a snapshot names.
#[expect(clippy::fn_params_excessive_bools, reason = "it is the flag itself")]
fn rehash(app: &App, found: &Found, json: bool) -> Result<ExitCode, CliError> {
    let id = found.snapshot.id;
    let report = fsck::snapshot(&found.store, &id).map_err(sandtable_sandbox::board::BoardError::from)?;
    let faults: Vec<String> = report.faults.iter().map(ToString::to_string).collect();
    let code = if faults.is_empty() { ExitCode::SUCCESS } else { Own::Failed.into() };
    let missing = left_out_of_all(found)?;
    if json {
        let (tree, left_out) = (found.snapshot.tree, left_out::listed(&missing));
        app.ui.json(&Sound { schema: SCHEMA, id, tree, objects: report.objects, faults, left_out })?;
        return Ok(code);
    }
    left_out::warn(app, &missing);
    for fault in &faults {
        app.ui.answer(&format!("{}\n", escape::line(fault)))?;
    }
    if faults.is_empty() {
        app.ui.answer(&format!("{id} is as it was written: {} objects\n", report.objects))?;
    }
    Ok(code)
}

/// What is to be proven.
#[derive(Clone, Copy)]
struct Job<'a> {
    command: &'a [OsString],
    against: Option<&'a str>,
}

fn prove(app: &App, settings: SettingArgs<Creates>, found: &Found, job: Job<'_>) -> Result<Proof, CliError> {
    let source = Setting::new(found.store.source().to_owned(), Origin::Default);
    let place = Layer { directory: Some(source), ..Layer::default() };
    let layer = settings.layer()?;
    check_options(&layer)?;
    let loaded = config::load(app.environment(), layer.or(place))?;
    let resolved = app.caller.resolve_recorded(&loaded, found.store.source())?;
    let observer = super::observer(app.ui, &loaded.output);
    let streams = Streams::Caller(Terminal::Never);
    let request =
        Request { command: job.command, resolve_ms: app.elapsed_ms(), streams, observer: &observer };
    // Standard output is for the proof.
    let show = |_: Stream, bytes: &[u8]| app.ui.pass_on(bytes);
    let trial = Trial { request, against: job.against, show: &show };
    let proof = proof::verify(&app.sandboxes()?, resolved, found, &trial)?;
    left_out::warn(app, &left_out_of_all(found)?);
    Ok(proof)
}

/// What says how a sandbox that stays is made.
fn check_options(layer: &Layer) -> Result<(), CliError> {
    let kept = [Key::Name, Key::Rm, Key::Base, Key::Directory];
    match kept.into_iter().find(|key| !layer.values(*key).is_empty()) {
        Some(key) => Err(CliError::NotForProof { option: key.flag() }),
        None => Ok(()),
    }
}

fn rendered(differences: &[Field]) -> String {
    let shown = |value: &Option<String>| value.as_deref().map_or_else(|| "nothing".to_owned(), escape::line);
    let line = |field: &Field| {
        let (name, was, is) = (escape::line(&field.field), shown(&field.was), shown(&field.is));
        let noted = if field.weight == Weight::Noted { " (noted)" } else { "" };
        format!("{name}: was {was}, is {is}{noted}\n")
    };
    let lines: String = differences.iter().map(line).collect();
    if differences.iter().all(|field| field.weight == Weight::Noted) {
        return format!("{lines}the proof holds\n");
    }
    format!("{lines}the proof does not hold\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(name: &str, weight: Weight) -> Field {
        let (was, is) = (Some("\"a\u{1b}[2J\"".to_owned()), None);
        Field { field: name.to_owned(), was, is, weight }
    }

    fn left() -> Vec<left_out::Left> {
        vec![left_out::Left { path: "pipe".to_owned(), why: "fifo" }]
    }

    #[test]
    fn differences_are_named_and_move_no_cursor() {
        insta::assert_snapshot!(rendered(&[field("machine.kernel", Weight::Noted)]), @r#"
        machine.kernel: was "a\u{1b}[2J", is nothing (noted)
        the proof holds
        "#);
        assert!(rendered(&[field("exit.code", Weight::Decides)]).ends_with("the proof does not hold\n"));
    }

    #[test]
    fn the_answer_has_the_shape_its_schema_promises() {
        let id: ObjectId = "4b825dc642cb6eb9a060e54bf8d69288fbee4904".parse().expect("an id");
        let sound = Sound {
            schema: SCHEMA,
            id,
            tree: id,
            objects: 2,
            faults: vec!["x".to_owned()],
            left_out: left(),
        };
        sandtable_testkit::schema::check("verify.json", &sound);
        let digest = "0a".repeat(32);
        let proof = serde_json::json!({
            "schema": 1, "snap_sha": id, "tree": id, "state": digest, "before": null,
            "diff": { "added": [{ "path": "a", "after": id }], "removed": [], "changed": [], "truncated": false },
            "command": ["make"],
            "policy": {
                "digest": digest, "engine": "native", "image": null, "directory": "/r", "network": "none",
                "secrets": "warn", "hide": [], "limits": { "cpus": "2" }, "mounts": { "/r": "the state" },
                "environment": { "A": "b", "KEY": null },
            },
            "enforcement": { "seccomp": { "state": "enforced" } },
            "machine": { "system": "linux", "kernel": "6", "architecture": "x86_64", "sandtable": "0" },
            "exit": { "code": 0, "signal": null, "origin": "command" },
            "stdout_sha256": digest, "stderr_sha256": digest, "after": { "tree": id, "state": digest }, "at_ms": 1,
            "follows": { "number": 1, "hash": digest }, "sha256": digest,
        });
        let proof: Proof = serde_json::from_value(proof).expect("a proof");
        sandtable_testkit::schema::check("proof.json", &proof);
        let differences = [field("exit.code", Weight::Decides)];
        let compared = Compared {
            schema: SCHEMA,
            against: &digest,
            holds: false,
            differences: &differences,
            left_out: left(),
            proof: &proof,
        };
        sandtable_testkit::schema::check("verify-against.json", &compared);
    }
}
