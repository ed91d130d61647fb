//! Held files, one after the other: why each is held, what it is, and what shall become of it.

use std::collections::BTreeMap;

use sandtable_app::work::Work;
use sandtable_merge::review::Finding;
use sandtable_merge::{Approvals, MergeRequest, RelPath};
use sandtable_sandbox::board::diff::{Diff, DiffOptions, render};

use super::ask::{Answer, letter};
use crate::app::App;
use crate::error::CliError;
use crate::ui::style::{Colour, Role};
use crate::ui::{escape, merge as view};

/// Asks about each path; what is approved or left out goes into the request.
pub(super) fn approve(
    app: &App,
    work: &Work,
    held: &[Finding],
    request: &mut MergeRequest,
) -> Result<Answer, CliError> {
    let mut paths: BTreeMap<&RelPath, Vec<&Finding>> = BTreeMap::new();
    for finding in held {
        paths.entry(finding.rel_path()).or_default().push(finding);
    }
    let changes = work.changes(&DiffOptions::default())?;
    let count = paths.len();
    for (number, (path, findings)) in paths.into_iter().enumerate() {
        show(app, work, (path, &findings), &changes)?;
        let place = if count == 1 { String::new() } else { format!(" ({} of {count})", number + 1) };
        let question = format!("{}{place}:", path.display_escaped());
        // What comes with the commits made inside cannot be left out alone.
        let mut choices = vec![('a', "pprove"), ('l', "eave out"), ('q', "uit")];
        choices.retain(|(letter, _)| *letter != 'l' || !request.brings_commits());
        match letter(app, &question, &choices) {
            'a' => allow(request, path, &findings),
            'l' => request.exclude.push(path.clone()),
            _ => return Ok(Answer::Quit),
        }
    }
    Ok(Answer::GoOn)
}

/// Lets pass what was shown, and nothing that takes its place meanwhile.
fn allow(request: &mut MergeRequest, path: &RelPath, findings: &[&Finding]) {
    match &mut request.approvals {
        none @ Approvals::None => *none = Approvals::Paths([path.clone()].into()),
        Approvals::Paths(paths) => drop(paths.insert(path.clone())),
        Approvals::All => {}
    }
    let ids = request.binding.contents.entry(path.clone()).or_default();
    ids.extend(findings.iter().map(|finding| finding.id.clone()));
}

fn show(
    app: &App,
    work: &Work,
    (path, findings): (&RelPath, &[&Finding]),
    changes: &Diff,
) -> Result<(), CliError> {
    app.ui.write("\n");
    for finding in findings {
        let label = app.ui.colour.paint(Role::Warning, "held");
        let (name, reason) = (path.display_escaped(), view::reason(finding));
        app.ui.write(&format!("{label} {name}: {reason} ({})\n", escape::line(finding.group)));
    }
    let mut texts: Vec<&str> = findings.iter().filter_map(|finding| finding.text()).collect();
    texts.dedup();
    for text in texts {
        let lines = text.lines().map(|line| format!("  {}\n", escape::line(line)));
        app.ui.write(&lines.collect::<String>());
    }
    let mine = changes.changes.iter().filter(|change| change.path == *path).cloned().collect();
    let one = Diff { changes: mine, truncated: false };
    let colour = match app.ui.colour {
        Colour::Ansi => render::Colour::Ansi,
        Colour::Never => render::Colour::Plain,
    };
    let mut text = Vec::new();
    let options =
        render::RenderOptions { colour, output_bytes: 256 << 10, ..render::RenderOptions::default() };
    render::unified(&mut text, work.store.objects(), &one, &options).map_err(CliError::Render)?;
    app.ui.write(&String::from_utf8_lossy(&text));
    Ok(())
}
