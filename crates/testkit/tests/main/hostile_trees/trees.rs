//! The trees. Each is made inside, by a script that knows nothing of the host; some need something in the source before.

use std::path::Path;

use sandtable_testkit::counts;
use sandtable_testkit::env::TestEnv;
use sandtable_testkit::require;

use super::Command;

/// Fewer were compared in time by what takes their square.
const LINES: usize = 1_000_000;

pub(super) struct Tree {
    pub(super) name: &'static str,
    /// What is in the source.
    pub(super) before: fn(&TestEnv, &Path),
    /// What the sandbox makes, in perl.
    pub(super) script: String,
    /// Rows of commands before those that every tree goes through.
    pub(super) more: &'static [&'static [Command]],
}

/// All of them, or those that `SANDTABLE_HOSTILE_ONLY` is a part of the name of.
pub(super) fn asked() -> Vec<Tree> {
    let only = require::variable("SANDTABLE_HOSTILE_ONLY").unwrap_or_default();
    all().into_iter().filter(|tree| tree.name.contains(&only)).collect()
}

/// Their size is so many percent of the full one.
fn all() -> Vec<Tree> {
    let percent = counts::of("hostile-percent") as usize;
    let size = |full: usize| full * percent / 100;
    let tree = |name, script: String| Tree { name, before: |_, _| {}, script, more: &[] };
    vec![
        // With fewer levels what takes the cube of them still fits.
        tree("deep, long names", deep(size(2000).max(300), 250)),
        tree("deep, short names", deep(size(1500).max(300), 1)),
        tree("ignore rules", ignore_rules(size(2000))),
        Tree { before: alternating, ..tree("lines that repeat", repeated(LINES)) },
        tree(
            "nothing but line feeds",
            format!("open F,'>lines'; print F \"\\n\" x {}; close F", size(8 << 20)),
        ),
        tree("one long line", format!("open F,'>line'; print F 'x' x {}; close F", size(8 << 20))),
        tree("begun tokens", format!("open F,'>q'; print F 'eyJ' x {}; close F", size(1_700_000))),
        tree(
            "blanks",
            format!("open F,'>q'; print F \"\\xe2\\xa0\\x80\" x {}, \"\\xe2\\xa0\\x81\"", size(1 << 20)),
        ),
        tree("long links", long_links(size(5000))),
        tree("links to every level", links_to_every_level(size(600).max(300), size(2000))),
        tree("links to every level of a directory that is very deep", links_to_every_level(2000, 3000)),
        tree("many directories", format!("for (1..{}) {{ mkdir \"r$_\"; open F,\">r$_/f\" }}", size(4000))),
        tree("sparse files", "for (1..100) { open F,\">s$_\"; truncate F, 4<<30; close F }".to_owned()),
        tree("many files", format!("for (1..{}) {{ open F,\">f$_\"; print F $_; close F }}", size(20_000))),
        tree("long names", format!("for (1..{}) {{ open F,'>'.sprintf('%0250d',$_); close F }}", size(5000))),
        tree("links", links(size(10_000))),
        tree("pipes", "use POSIX; mkfifo(\"p$_\",0600) for 1..100".to_owned()),
        tree("many references", references(size(5000))),
        tree("renames", renames(size(140))),
        Tree { more: &HISTORY, ..tree("a tree that names itself", bomb(8)) },
        Tree { more: &HISTORY, ..tree("a tree that names itself, and is a little too much", bomb(6)) },
        Tree { more: &TAKEN_HISTORY, ..tree("a tree that names itself, and is not too much", bomb(5)) },
        Tree { more: &HISTORY, ..tree("objects that swell", swelling(size(400))) },
        tree("attributes", attributes(size(20_000), size(5000))),
        tree("attributes that make each other", macros(size(20_000))),
        Tree { more: &DELIVERED_HISTORY, ..tree("a large index", large_index(size(500_000))) },
        Tree { more: &DELIVERED_HISTORY, ..tree("a chain of differences", differences(size(2700))) },
    ]
}

/// The commits made inside are asked for too, and refused.
const HISTORY: [&[Command]; 2] =
    [&[("merge --history --dry-run box", &[1])], &[("export --history --bundle DIR.bundle box", &[1])]];

/// They are taken.
const TAKEN_HISTORY: [&[Command]; 2] =
    [&[("merge --history --dry-run box", &[0])], &[("export --history --bundle DIR.bundle box", &[0])]];
/// And delivered, and undone.
const DELIVERED_HISTORY: [&[Command]; 3] = [
    &[("merge --history --dry-run box", &[0])],
    &[("export --history --bundle DIR.bundle box", &[0])],
    &[("merge --history box", &[0]), ("undo", &[0])],
];

/// Directories in directories, with a file in each.
fn deep(levels: usize, name: usize) -> String {
    format!(
        "for (1..{levels}) {{ open F,'>f'; print F 'x'; close F; mkdir 'd' x {name}; chdir 'd' x {name} or die }}"
    )
}

/// Rules that take other matchers for ever, and many of them.
fn ignore_rules(rules: usize) -> String {
    let many = format!("print F '*a' x 40, $_, \"\\n\" for 1..{rules};");
    let tree = "my $d = '.'; for (1..100) { $d .= '/'.('a' x 20); mkdir $d } open F,\">$d/f$_\" for 1..50;";
    format!("open F,'>.gitignore'; print F '**/' x 20, \"x\\n\"; {many} close F; {tree}")
}

/// Patterns that take other matchers for ever, many of them, and files that nearly fit.
fn attributes(patterns: usize, files: usize) -> String {
    format!(
        "open F,'>.gitattributes'; print F '*a' x 40, $_, \" text eol=crlf\\n\" for 1..{patterns}; close F; \
         for (1..{files}) {{ open F,'>'.('a' x 200).\"x$_\"; print F $_; close F }}"
    )
}

/// Each stands for all that came before it, and the last of them for whichever file.
fn macros(count: usize) -> String {
    format!(
        "open F,'>.gitattributes'; print F \"[attr]m0 text\\n\"; \
         for (1..{count}) {{ print F \"[attr]m$_\"; for my $n (1..30) {{ print F ' m', int(($_-1)/$n) }} print F \"\\n\" }} \
         print F '* m', {count}, \"\\n\"; close F; for (1..200) {{ open F,\">f$_\"; print F $_; close F }}"
    )
}

/// Names in the index that are in no tree and in no directory.
fn large_index(entries: usize) -> String {
    format!(
        "my $b=`git hash-object -w README`; chomp $b; open G,'|git update-index --index-info'; \
         print G \"100644 $b\\t\", 'd' x 100, \"/$_\\n\" for 1..{entries}; close G; \
         open F,'>new'; print F 'x'; close F; system 'git add new; git -c user.name=a -c user.email=a commit -qm new new'"
    )
}

/// Commits whose one file is a little different each time, packed as a difference to a difference, and so on. Together they
/// have nearly as much content as a history may have.
fn differences(commits: usize) -> String {
    format!(
        "my $h=`git rev-parse HEAD`; chomp $h; my $d=join('',map {{ $_*7919 .\"\\n\" }} 1..10000); \
         open G,'|git fast-import --quiet --force --depth=4095 --date-format=now'; \
         for (1..{commits}) {{ substr($d,0,10)=sprintf('%010d',$_); print G \"commit refs/heads/long\\ncommitter a <a> now\\ndata 1\\nx\\n\"; \
         print G \"from $h\\n\" if $_ == 1; print G 'M 100644 inline f', \"\\ndata \", length $d, \"\\n$d\\n\" }} \
         close G; system 'git reset -q --hard long'"
    )
}

/// Two lines in random order, and others after.
fn repeated(lines: usize) -> String {
    format!("srand 2; open F,'>random'; print F int(rand 2), \"\\n\" for 1..{lines}; close F")
}

fn alternating(env: &TestEnv, source: &Path) {
    let bit = |at: u32| if at.wrapping_mul(2_654_435_761) >> 31 == 0 { b'0' } else { b'1' };
    let text: Vec<u8> = (0..u32::try_from(LINES).unwrap()).flat_map(|at| [bit(at), b'\n']).collect();
    env.file(&source.join("random"), text);
    env.git(source, &["add", "-A"]);
    env.git(source, &["commit", "-q", "-m", "random"]);
}

/// Each leads to the next, the last to the first, and one out of the tree.
fn links(count: usize) -> String {
    format!(
        "symlink 'l'.($_ % {count} + 1), \"l$_\" for 1..{count}; symlink '../' x 100 .'etc/passwd', 'out'"
    )
}

/// The longest texts that a link can have, most of them ways up.
fn long_links(count: usize) -> String {
    format!("my $t=substr(('a/' x 1000).('../' x 690),0,4090); symlink $t,\"l$_\" for 1..{count}")
}

/// Files at the end of a deep directory, and a link to each of its levels.
fn links_to_every_level(levels: usize, files: usize) -> String {
    format!(
        "use Cwd; my $top=getcwd; for (1..{levels}) {{ mkdir 'd'; chdir 'd' }} for (1..{files}) {{ open F,\">f$_\" }} \
         chdir $top; my $t='d'; for (1..{levels}) {{ symlink $t,\"k$_\"; $t.='/d' }}"
    )
}

fn references(count: usize) -> String {
    format!(
        "my $h=`git rev-parse HEAD`; chomp $h; open G,'|git update-ref --stdin'; \
         print G \"create refs/heads/b$_ $h\\n\" for 1..{count}; close G; open F,'>new'; print F 'x'; close F"
    )
}

/// Files of many different short lines, removed here and added there with a change.
fn renames(files: usize) -> String {
    format!(
        "mkdir 'a'; for my $f (1..{files}) {{ open F,\">a/$f\"; print F $f*100000+$_, \"\\n\" for 1..50000; close F }} \
         system 'git add -A; git -c user.name=a -c user.email=a commit -qm a; mv a b; for f in b/*; do echo x >> $f; done'"
    )
}

/// Ten entries that are all the same tree, as often as there are levels.
fn bomb(levels: usize) -> String {
    format!(
        "my $b=`git hash-object -w README`; chomp $b; my ($k,$t)=('100644 blob',$b); \
         for (1..{levels}) {{ open G,\"|git mktree >/tmp/t\"; print G \"$k $t\\te$_\\n\" for 0..9; close G; \
         $t=`cat /tmp/t`; chomp $t; $k='040000 tree' }} \
         my $c=`git -c user.name=a -c user.email=a commit-tree -p HEAD -m bomb $t`; chomp $c; \
         system \"git update-ref HEAD $c\"; open F,'>new'; print F 'x'; close F"
    )
}

/// Zeros by the megabyte, which are nothing as long as they are packed.
fn swelling(mebibytes: usize) -> String {
    format!(
        "system 'head -c {mebibytes}M /dev/zero > zeros; git add -A; git -c user.name=a -c user.email=a commit -qm zeros; \
         rm zeros; git add -A; git -c user.name=a -c user.email=a commit -qm none'; open F,'>new'; print F 'x'; close F"
    )
}
