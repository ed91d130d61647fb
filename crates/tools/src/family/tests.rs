//! The data says something about every family, and a root file system is believed only where it speaks of itself.

use super::*;

#[test]
fn every_family_and_every_package_manager_is_described_once() {
    for name in LinuxFamily::ALL {
        assert_eq!(FAMILIES.family.iter().filter(|family| family.name == *name).count(), 1, "{name}");
        let family = family(*name);
        assert!(family.shell.starts_with('/') && family.certificates.starts_with('/'), "{name}");
        assert!(family.search.split(':').all(|place| place.starts_with('/')), "{name}");
    }
    for manager in PackageManager::ALL {
        assert_eq!(packages(*manager).manager, *manager);
    }
}

#[test]
fn names_of_packages_are_words_of_the_last_command() {
    for manager in PackageManager::ALL {
        let packages = packages(*manager);
        let commands = packages.install(&["one".to_owned(), "two".to_owned()]);
        let (last, before) = commands.split_last().expect("a command");
        assert!(last.ends_with(&["one".to_owned(), "two".to_owned()]), "{last:?}");
        assert!(before.iter().flatten().all(|word| word != "one" && word != PACKAGES), "{before:?}");
        assert!(commands.iter().all(|command| command.iter().any(|word| word.contains(&packages.program))));
    }
}

#[test]
fn a_family_is_read_from_what_a_system_says() {
    let family = |text: &str| Release::read(text).family;
    assert_eq!(family("ID=debian\n"), Some(LinuxFamily::Debian));
    assert_eq!(family("NAME=x\nID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n"), Some(LinuxFamily::Rhel));
    assert_eq!(family("ID=opensuse-leap\nID_LIKE='suse opensuse'"), Some(LinuxFamily::Suse));
    assert_eq!(family("ID=haiku\n"), None);
    assert_eq!(family("XID=debian\nID_LIKE=\n"), None);
}

#[test]
fn an_emulation_says_so_itself() {
    let read = Release::read("PRETTY_NAME=\"Debian with dnf\"\nID=rhel\nVARIANT_ID=emulated\n");
    let expected =
        Release { family: Some(LinuxFamily::Rhel), name: "Debian with dnf".to_owned(), emulated: true };
    assert_eq!(read, expected);
    assert!(!Release::read("ID=rhel\nVARIANT=emulated\n").emulated);
    assert_eq!(Release::read(""), Release::default());
}
