//! Bytes on their way out. What could not be written is tried again from where it got to, so that a full disk that
//! has room again goes on in the middle of its line.
use std::io::{self, ErrorKind, Write};

pub(super) struct Outlet<W> {
    to: W,
    bytes: Vec<u8>,
    at: usize,
}

impl<W: Write> Outlet<W> {
    pub(super) fn new(to: W) -> Self {
        Self {
            to,
            bytes: vec![],
            at: 0,
        }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Writes all that is left.
    pub(super) fn write(&mut self) -> io::Result<()> {
        while self.at < self.bytes.len() {
            match self.to.write(&self.bytes[self.at..]) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(written) => self.at += written,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.bytes.clear();
        self.at = 0;
        Ok(())
    }

    /// Forgets what is left, where nobody needs all of it. A line that was begun is ended first.
    pub(super) fn forget(&mut self) {
        let begun = self.at > 0 && self.bytes.get(self.at - 1) != Some(&b'\n');
        let end = memchr::memchr(b'\n', &self.bytes[self.at..]).filter(|_| begun);
        self.bytes
            .truncate(end.map_or(self.at, |end| self.at + end + 1));
    }

    /// Where it goes. All has been written.
    pub(super) fn inner(&self) -> &W {
        &self.to
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes so many bytes, and no more for once.
    struct Tight(Vec<u8>, usize);

    impl Write for Tight {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let some = bytes.len().min(self.1);
            if some == 0 {
                self.1 = 7;
                return Err(ErrorKind::StorageFull.into());
            }
            self.1 -= some;
            self.0.extend_from_slice(&bytes[..some]);
            Ok(some)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_a_full_disk_did_not_take_follows_once_it_does() {
        let mut outlet = Outlet::new(Tight(vec![], 5));
        let mut all = vec![];
        let mut failures = 0;
        for n in 0..20 {
            let line = format!("line {n}\n");
            all.extend_from_slice(line.as_bytes());
            outlet.push(line.as_bytes());
            failures += usize::from(outlet.write().is_err());
        }
        while outlet.write().is_err() {}
        assert!(failures > 0);
        assert_eq!(outlet.inner().0, all);
    }

    #[test]
    fn what_is_forgotten_leaves_no_half_line() {
        let mut outlet = Outlet::new(Tight(vec![], 5));
        outlet.push(b"line 1\nline 2\n");
        assert!(outlet.write().is_err());
        outlet.forget();
        outlet.push(b"line 3\n");
        while outlet.write().is_err() {}
        assert_eq!(outlet.inner().0, b"line 1\nline 3\n");
    }
}
