//! A file whose changes are for its owner to judge: the same looks as elsewhere, without a word of its own.
use std::{io, path::PathBuf};

use super::{Seen, read, stamp};

/// A file, and what was last found in it.
pub struct Changing {
    path: PathBuf,
    seen: Option<Seen>,
}

impl Changing {
    /// Of which nothing is known yet: the first looks find a change.
    pub const fn new(path: PathBuf) -> Self {
        Self { path, seen: None }
    }

    /// What it says now, if that is new and the look before found the same; why it cannot be read, once.
    pub fn look(&mut self) -> Option<io::Result<String>> {
        if let Some(seen) = &self.seen
            && seen.stamp.is_some()
            && stamp(&self.path).ok() == seen.stamp
        {
            return None;
        }
        let seen = self.seen.get_or_insert_with(|| Seen {
            stamp: None,
            digest: blake3::hash(b"nothing that a file says"),
            waits: None,
            said: false,
        });
        let found = match read(&self.path) {
            Ok(found) => found,
            Err(error) => {
                (seen.stamp, seen.waits) = (None, None);
                let again = std::mem::replace(&mut seen.said, true);
                return (!again).then_some(Err(error));
            }
        };
        let digest = blake3::hash(found.text.as_bytes());
        let back = std::mem::take(&mut seen.said);
        let waits = Some((found.stamp, digest));
        if digest == seen.digest {
            (seen.stamp, seen.waits) = (found.old.then_some(found.stamp), None);
            return back.then_some(Ok(found.text)); // it could not be read in between
        }
        if seen.waits != waits {
            (seen.stamp, seen.waits) = (None, waits); // somebody may still be writing it
            return None;
        }
        *seen = Seen {
            stamp: found.old.then_some(found.stamp),
            digest,
            waits: None,
            said: false,
        };
        Some(Ok(found.text))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_change_is_told_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("n");
        fs::write(&path, "1").unwrap();
        let mut file = Changing::new(path.clone());
        let mut look = || file.look().map(|found| found.map_err(|e| e.kind()));
        assert_eq!(look(), None);
        assert_eq!(look(), Some(Ok("1".to_owned())));
        assert_eq!(look(), None);
        fs::write(&path, "2").unwrap();
        assert_eq!(look(), None);
        assert_eq!(look(), Some(Ok("2".to_owned())));
        fs::remove_file(&path).unwrap();
        assert_eq!(look(), Some(Err(io::ErrorKind::NotFound)));
        assert_eq!(look(), None);
        fs::write(&path, "2").unwrap();
        assert_eq!(look(), Some(Ok("2".to_owned())));
        assert_eq!(look(), None);
    }
}
