//! What becomes of a file that is not as it should be.
use tempfile::TempDir;

use super::*;
use crate::state::{
    Store,
    counters::memory::Local,
    memory::{Memory, Settings},
    owner,
    slot::Times,
};

fn store() -> Store {
    let memory = Memory::new(Settings {
        times: Times {
            lease: None,
            settle: Duration::from_secs(5),
            max_hold: Duration::from_hours(1),
        },
        slots: 10,
        tasks: 10,
        bindings: 10,
        binding_ttl: Duration::from_hours(1),
        messages: 10,
        message_ttl: Duration::from_hours(1),
        owners: owner::Settings::default(),
    });
    Store::Memory(Arc::new(memory))
}

fn start(path: &Path, store: &Store) -> io::Result<Arc<Persist>> {
    let counts = Arc::new(Local::new(100, 10));
    let file = store.persist(path, Some(counts), || 1_000_000_000)?;
    Ok(file.unwrap())
}

fn key(name: &str) -> Key {
    Key::of(&[name])
}

#[tokio::test]
async fn owners_survive_a_restart() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("state.redb");
    for n in 0..3 {
        let store = store();
        let file = start(&path, &store).unwrap();
        let what = ["zero", "one", "two", "new"].map(key).to_vec();
        let owners = store.owners(what.into(), key("ann")).await.unwrap();
        let known = |at: usize| (at < n).then(|| key("ann"));
        assert_eq!(*owners, [known(0), known(1), known(2), None]);
        store.claim_surely(key(["zero", "one", "two"][n]), key("ann"));
        drop(file);
        store.close(Duration::ZERO).await;
    }
}

#[tokio::test]
async fn what_is_written_anew_is_all_that_is_left() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("state.redb");
    let owners = |store: &Store| -> All {
        let Store::Memory(memory) = store else {
            unreachable!("it is in memory")
        };
        vec![(OWNERS, memory.owners.clone())]
    };
    let before = store();
    let file = start(&path, &before).unwrap();
    before.claim_surely(key("gone"), key("ann"));
    before.claim_surely(key("there"), key("ann"));
    file.close();

    let after = store();
    let all = owners(&after);
    let file = open(&path, &vec![], 0).unwrap();
    after.claim_surely(key("there"), key("bob"));
    all[0].1.saves();
    all[0].1.change_all();
    write(&file, &all, &[all[0].1.changed(1_000_000_000)]).unwrap();
    drop(file);

    let last = store();
    let _file = start(&path, &last).unwrap();
    let of = vec![key("gone"), key("there")];
    let owners = last.owners(of.into(), key("ann")).await.unwrap();
    assert_eq!(*owners, [None, Some(key("bob"))]);
}

#[test]
fn a_file_that_is_damaged_is_moved_aside() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("state.redb");
    for (n, times) in [(1, 1), (2, 1000)] {
        fs::write(&path, "a text that somebody wrote here".repeat(times)).unwrap();
        start(&path, &store()).unwrap().close();
        let aside = path.with_extension(format!("redb.unreadable-{n}"));
        assert!(fs::read(aside).unwrap().starts_with(b"a text"));
    }
    // It begins well, and does not go on so.
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    start(&path, &store()).unwrap().close();
    assert!(path.with_extension("redb.unreadable-3").exists());
}

#[test]
fn a_file_that_cannot_be_opened_now_is_not_touched() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("state.redb");
    // A folder can neither be read nor written as a file, by anybody.
    fs::create_dir(&path).unwrap();
    let refused = start(&path, &store()).err().unwrap().to_string();
    assert!(refused.contains("state.redb cannot be opened"), "{refused}");
    assert!(refused.contains("see that"), "{refused}");
    fs::remove_dir(&path).unwrap();
    // Another has it.
    let other = start(&path, &store()).unwrap();
    let refused = start(&path, &store()).err().unwrap().to_string();
    assert!(refused.contains("this gateway alone"), "{refused}");
    other.close();
    let all = fs::read_dir(folder.path()).unwrap();
    assert_eq!(all.count(), 1, "nothing was moved");
}

#[cfg(unix)]
#[test]
fn a_file_that_may_not_be_read_is_not_moved_aside() {
    use std::os::unix::fs::PermissionsExt as _;

    let folder = TempDir::new().unwrap();
    let path = folder.path().join("state.redb");
    start(&path, &store()).unwrap().close();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
    if fs::File::open(&path).is_ok() {
        return; // root may read anything
    }
    let refused = start(&path, &store()).err().unwrap().to_string();
    assert!(refused.contains("ermission"), "{refused}");
    assert!(path.exists());
}

#[cfg(unix)]
#[test]
fn a_new_file_is_read_by_nobody_else_and_an_old_one_keeps_its_rights() {
    use std::os::unix::fs::PermissionsExt as _;

    let folder = TempDir::new().unwrap();
    let path = folder.path().join("state.redb");
    let rights = || fs::metadata(&path).unwrap().permissions().mode() & 0o777;
    start(&path, &store()).unwrap().close();
    assert_eq!(rights(), 0o600);
    fs::remove_file(&path).unwrap();
    secret(&path, "name", [1; 32]).unwrap();
    assert_eq!(rights(), 0o600);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    start(&path, &store()).unwrap().close();
    assert_eq!(rights(), 0o640, "somebody chose that");
}
