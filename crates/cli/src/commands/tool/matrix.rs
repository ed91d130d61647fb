//! The matrix that `tool test` answers with: a cell says what was really tried, and on what.

use sandtable_tools::build::Rootfs;
use sandtable_tools::plan::LinuxFamily;
use serde::Serialize;

use crate::ui::{escape, table};

/// All cells, tool by tool.
#[derive(Serialize)]
pub(super) struct Matrix {
    pub(super) schema: u32,
    pub(super) cells: Vec<Cell>,
}

/// One tool on one family.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Cell {
    /// Its name and version.
    pub(super) tool: String,
    pub(super) family: LinuxFamily,
    pub(super) state: State,
    /// Where it was tried, or why it was not, or what went wrong.
    pub(super) why: String,
    /// What can be done about it.
    pub(super) fix: Option<String>,
    /// The root file system it was tried on.
    pub(super) root: Option<Root>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum State {
    /// It works on a system of the family.
    Pass,
    /// It works where the family's package manager is and the rest is another family's.
    Emulated,
    Fail,
    /// Nothing was tried.
    Unavailable,
}

/// A root file system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Root {
    form: &'static str,
    path: String,
    /// What it is known by; this machine's system is not read through.
    digest: Option<String>,
    /// What it calls itself.
    system: String,
}

impl State {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Emulated => "emulated",
            Self::Fail => "fail",
            Self::Unavailable => "unavailable",
        }
    }
}

impl Root {
    pub(super) fn machine(system: String) -> Self {
        Self { form: "machine", path: "/".to_owned(), digest: None, system }
    }

    pub(super) fn brought(rootfs: &Rootfs) -> Self {
        let digest = Some(rootfs.digest.clone());
        Self {
            form: rootfs.form(),
            path: rootfs.path.to_string(),
            digest,
            system: rootfs.release.name.clone(),
        }
    }

    /// For people: the first digits are enough.
    fn shown(&self) -> String {
        let digits = |digest: &String| {
            let short = digest.char_indices().nth(digest.rfind('-').map_or(12, |at| at + 13));
            format!(" {}", short.map_or(digest.as_str(), |(end, _)| &digest[..end]))
        };
        let digest = self.digest.as_ref().map(digits).unwrap_or_default();
        format!("{}: {} {}{digest}", self.system, self.form, self.path)
    }
}

impl Matrix {
    /// Tools down, families across, then what the words alone do not say.
    pub(super) fn table(&self) -> String {
        let (mut tools, mut families) = (Vec::new(), Vec::new());
        for cell in &self.cells {
            if !tools.contains(&&cell.tool) {
                tools.push(&cell.tool);
            }
            if !families.contains(&cell.family) {
                families.push(cell.family);
            }
        }
        let head = std::iter::once(String::new()).chain(families.iter().map(ToString::to_string)).collect();
        let word = |tool: &str, family: &LinuxFamily| {
            let cell = self.cells.iter().find(|cell| cell.tool == tool && cell.family == *family);
            cell.map_or("", |cell| cell.state.word()).to_owned()
        };
        let row = |tool: &&String| {
            let words = families.iter().map(|family| word(tool, family));
            std::iter::once(escape::line(tool)).chain(words).collect()
        };
        let rows: Vec<Vec<String>> = std::iter::once(head).chain(tools.iter().map(row)).collect();
        format!("{}\n{}{}", table::lines(&rows), self.roots(&families), self.reasons())
    }

    /// What each family was tried on.
    fn roots(&self, families: &[LinuxFamily]) -> String {
        let root = |family: &LinuxFamily| {
            let root = self
                .cells
                .iter()
                .filter(|cell| cell.family == *family)
                .find_map(|cell| cell.root.as_ref())?;
            Some([family.to_string(), escape::line(&root.shown())])
        };
        table::aligned(&families.iter().filter_map(root).collect::<Vec<_>>())
    }

    /// Why a cell is not as one would like it to be.
    fn reasons(&self) -> String {
        let odd = self.cells.iter().filter(|cell| matches!(cell.state, State::Fail | State::Unavailable));
        let line = |cell: &Cell| {
            let fix = cell.fix.as_ref().map_or_else(String::new, |fix| format!("; {fix}"));
            let text = format!("{} on {}: {}: {}{fix}", cell.tool, cell.family, cell.state.word(), cell.why);
            escape::line(&text) + "\n"
        };
        odd.map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::SCHEMA;

    fn matrix() -> Matrix {
        let machine = Root::machine("Debian".to_owned());
        let digest = format!("tree-sha256-{}", "ab".repeat(32));
        let brought =
            Root { form: "directory", path: "/r".to_owned(), digest: Some(digest), ..machine.clone() };
        let cell = |tool: &str, family, state, root: Option<&Root>| Cell {
            tool: tool.to_owned(),
            family,
            state,
            why: "a reason".to_owned(),
            fix: (state == State::Fail).then(|| "mend it".to_owned()),
            root: root.cloned(),
        };
        let cells = vec![
            cell("one 1", LinuxFamily::Debian, State::Pass, Some(&machine)),
            cell("one 1", LinuxFamily::Rhel, State::Emulated, Some(&brought)),
            cell("second 2", LinuxFamily::Debian, State::Fail, Some(&machine)),
            cell("second 2", LinuxFamily::Rhel, State::Unavailable, None),
        ];
        Matrix { schema: SCHEMA, cells }
    }

    #[test]
    fn the_answer_has_the_shape_its_schema_promises() {
        sandtable_testkit::schema::check("tool-test.json", &matrix());
    }

    #[test]
    fn tools_go_down_and_families_across() {
        insta::assert_snapshot!(matrix().table(), @"
                  debian  rhel
        one 1     pass    emulated
        second 2  fail    unavailable

        debian  Debian: machine /
        rhel    Debian: directory /r tree-sha256-abababababab
        second 2 on debian: fail: a reason; mend it
        second 2 on rhel: unavailable: a reason
        ");
    }
}
