//! Forms of a repository: of its index, its names, its references, and of the files that it converts.

use sandtable_merge::{Approvals, Mode, Outcome, Reason};

use crate::states::changed;
use crate::world::{World, host};

#[test]
fn every_form_of_index_is_kept_valid() {
    for settings in [
        ["index.version", "2"],
        ["index.version", "4"],
        ["core.splitIndex", "true"],
        ["core.untrackedCache", "true"],
        ["feature.manyFiles", "true"],
    ] {
        let world = World::new();
        world.git(&["config", settings[0], settings[1]]);
        world.write("a.txt", "a\n");
        world.commit("with it");
        world.git(&["update-index", "--refresh"]);
        world.status();
        let base = changed(&world);
        world.write("later.txt", "untracked\n");
        world.succeeds(&world.request(base, Mode::Merge));
        assert_eq!(world.status(), "?? later.txt\n", "{settings:?}");
        assert_eq!(world.git(&["ls-files", "new.txt"]), "new.txt\n");
        // The cached trees are those of the entries, and times are those of the files: nothing need be read again.
        assert_eq!(world.git(&["write-tree"]), world.git(&["rev-parse", "HEAD^{tree}"]), "{settings:?}");
    }
}

#[test]
fn an_index_made_here_is_the_one_that_git_would_have_made() {
    for format in ["sha1", "sha256"] {
        let world = World::with_init(&[&format!("--object-format={format}")]);
        world.write("gone/a", "a\n");
        world.write("gone/b/c", "c\n");
        world.write("file", "becomes a directory\n");
        world.commit("more");
        let base = world.enter();
        fs_err::remove_dir_all(world.inside().join("gone")).unwrap();
        fs_err::remove_file(world.inside().join("file")).unwrap();
        for (path, text) in
            [("file/in", "x\n"), ("src/deep/er/util.c", "int other;\n"), ("z", ""), ("a.b", "x\n")]
        {
            world.inside_write(path, text);
        }
        world.write("staged.txt", "mine\n");
        world.git(&["add", "staged.txt"]);
        world.succeeds(&world.request(base, Mode::Merge));
        let entries = world.git(&["ls-files", "--stage"]);
        world.git(&["update-index", "--force-write-index", "--refresh"]);
        assert_eq!(world.git(&["ls-files", "--stage"]), entries);
        world.git(&["rm", "-q", "--cached", "staged.txt"]);
        assert_eq!(world.git(&["write-tree"]), world.git(&["rev-parse", "HEAD^{tree}"]), "{format}");
        assert_eq!(world.status(), "?? staged.txt\n");

        let world = World::with_init(&[&format!("--object-format={format}")]);
        let base = changed(&world);
        world.succeeds(&world.request(base, Mode::Merge));
        assert_eq!(world.git(&["diff-files"]), "", "every file looks as the index says, unread");
    }
}

#[test]
fn sha256_and_reftable_repositories() {
    let world = World::with_init(&["--object-format=sha256"]);
    let base = changed(&world);
    world.succeeds(&world.request(base, Mode::Merge));
    assert_eq!((world.status(), base.to_string().len()), (String::new(), 64));

    let world = World::with_init(&["--ref-format=reftable"]);
    let base = changed(&world);
    world.succeeds(&world.request(base, Mode::Merge));
    assert_eq!(world.status(), "");
    world.inside_write("newer.txt", "newer\n");
    world.succeeds(&world.request(base, Mode::Branch("b".to_owned())));

    let sha1 = World::new();
    let base = changed(&sha1);
    let request = sha1.request(base, Mode::Merge);
    let other = World::with_init(&["--object-format=sha256"]);
    let mut request = request;
    request.target = host(&other.repo());
    let outcome = sha1.merge(&request);
    assert!(
        matches!(&outcome.outcome, Outcome::Refused { refusal } if refusal.reason == Reason::ObjectFormat)
    );
}

#[test]
fn line_ends_are_compared_as_git_keeps_them_and_written_as_the_user_has_them() {
    let world = World::new();
    world.git(&["config", "core.autocrlf", "true"]);
    fs_err::remove_file(world.repo().join("docs/guide.txt")).unwrap();
    world.git(&["checkout", "-q", "--", "docs/guide.txt"]);
    assert!(world.read("docs/guide.txt").contains("\r\n"));
    let base = world.enter();
    world.inside_write("docs/guide.txt", "ONE\r\ntwo\r\nthree\r\nfour\r\nfive\r\nsix\r\nseven\r\n");
    world.inside_write("new.txt", "a\nb\n");
    world.write("docs/guide.txt", "one\r\ntwo\r\nthree\r\nfour\r\nfive\r\nsix\r\nSEVEN\r\n");
    world.git(&["commit", "-q", "-a", "-m", "meanwhile"]);
    world.succeeds(&world.request(base, Mode::Merge));
    assert_eq!(world.read("docs/guide.txt"), "ONE\r\ntwo\r\nthree\r\nfour\r\nfive\r\nsix\r\nSEVEN\r\n");
    assert!(!world.git(&["show", "HEAD:docs/guide.txt"]).contains('\r'));
    assert_eq!((world.status(), world.read("new.txt")), (String::new(), "a\r\nb\r\n".into()));
}

#[test]
fn attributes_that_need_no_program_are_obeyed() {
    let world = World::new();
    world.write(".gitattributes", "*.u16 text working-tree-encoding=UTF-16LE\n*.id ident\n*.crlf eol=crlf\n");
    let utf16: Vec<u8> = "one\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    world.write("a.u16", &utf16);
    world.write("b.id", "$Id$\nb\n");
    world.write("c.crlf", "c\r\n");
    world.commit("attributes");
    for path in ["b.id", "c.crlf"] {
        fs_err::remove_file(world.repo().join(path)).unwrap();
    }
    world.git(&["checkout", "-q", "--", "."]);
    let base = world.enter();
    let more: Vec<u8> = "one\ntwo\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    world.inside_write("a.u16", &more);
    world.inside_write("b.id", world.read("b.id") + "more\n");
    world.inside_write("c.crlf", "c\r\nd\r\n");
    let mut request = world.request(base, Mode::Merge);
    request.approvals = Approvals::All;
    world.succeeds(&request);
    assert_eq!(world.status(), "");
    assert_eq!(world.git(&["show", "HEAD:a.u16"]), "one\ntwo\n");
    assert_eq!(world.git(&["show", "HEAD:b.id"]), "$Id$\nb\nmore\n");
    assert_eq!(
        (world.git(&["show", "HEAD:c.crlf"]), world.read("c.crlf")),
        ("c\nd\n".into(), "c\r\nd\r\n".into())
    );
    assert_eq!(fs_err::read(world.repo().join("a.u16")).unwrap(), more);
}

#[test]
fn a_file_that_goes_through_a_program_is_applied_but_not_committed() {
    let world = World::new();
    world.write(".gitattributes", "*.big filter=lfs\n");
    world.write("a.big", "pointer\n");
    world.commit("pointer");
    world.git(&["config", "filter.lfs.clean", "echo pointer"]);
    world.write("a.big", "the large content\n");
    let base = world.enter();
    world.inside_write("a.big", "another large content\n");
    world.refused(&world.request(base, Mode::Merge), Reason::Filtered);
    world.succeeds(&world.request(base, Mode::Apply));
    assert_eq!(world.read("a.big"), "another large content\n");
}
