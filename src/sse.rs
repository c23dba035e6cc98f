//! Server-sent events out of bytes: no I/O, no clock, no task (WHATWG HTML 9.2).
//!
//! Bytes go in as they come, whole events come out. Lines may end in LF, CR or CRLF, in any mixture and torn
//! anywhere; a lone CR at the end of what has arrived ends its line at once, and an LF after it is swallowed.

/// What one event says. Fields that we have no use for (`retry`, unknown ones) are left out.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Event<'r> {
    /// Its data, lines joined with LF; `None` for comments and for events without any.
    pub data: Option<&'r [u8]>,
    /// Lines to pass on as they are: comments and `id`, each with an LF at its end.
    pub head: &'r [u8],
    /// It is labelled `error`.
    pub error: bool,
    /// It is labelled otherwise, such as `done`: not for us.
    pub other: bool,
}

/// An event grew past the reader's limit.
#[derive(Debug, PartialEq, Eq)]
pub struct TooLong;

/// Takes bytes, gives events.
#[derive(Debug)]
pub struct Reader {
    limit: usize,
    /// What has arrived, and not all of it used yet.
    bytes: Vec<u8>,
    /// Where the next line begins.
    at: usize,
    /// How far has been searched for its end.
    searched: usize,
    /// The last line ended in CR, and an LF right after it belongs to that.
    after_cr: bool,
    /// A byte order mark may still come.
    fresh: bool,
    pending: Pending,
    /// What the last event lent out; emptied when the next is asked for.
    given: Pending,
}

#[derive(Debug, Default)]
struct Pending {
    data: Vec<u8>,
    has_data: bool,
    head: Vec<u8>,
    label: Label,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Label {
    #[default]
    Message,
    Error,
    Other,
}

impl Pending {
    fn len(&self) -> usize {
        self.data.len() + self.head.len()
    }

    fn clear(&mut self) {
        // What a rare large event took is given back, so that an idle stream holds little.
        for buffer in [&mut self.data, &mut self.head] {
            buffer.clear();
            if buffer.capacity() > KEPT {
                buffer.shrink_to(KEPT);
            }
        }
        self.has_data = false;
        self.label = Label::Message;
    }

    fn event(&self) -> Event<'_> {
        Event {
            data: self.has_data.then_some(&self.data[..]),
            head: &self.head,
            error: self.label == Label::Error,
            other: self.label == Label::Other,
        }
    }

    /// One line that is not empty.
    fn add(&mut self, line: &[u8]) {
        if let Some(value) = field(line, b"data") {
            if self.has_data {
                self.data.push(b'\n');
            }
            self.has_data = true;
            self.data.extend_from_slice(value);
        } else if line[0] == b':' || field(line, b"id").is_some() {
            self.head.extend_from_slice(line);
            self.head.push(b'\n');
        } else if let Some(label) = field(line, b"event") {
            self.label = match label {
                b"" | b"message" => Label::Message,
                b"error" => Label::Error,
                _ => Label::Other,
            };
        }
    }
}

/// Buffers keep up to this many bytes between events.
const KEPT: usize = 2048;

impl Reader {
    /// `limit` bounds one event, in bytes.
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            bytes: Vec::new(),
            at: 0,
            searched: 0,
            after_cr: false,
            fresh: true,
            pending: Pending::default(),
            given: Pending::default(),
        }
    }

    /// Takes bytes as they came.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.at == self.bytes.len() {
            self.forget();
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// The next whole event; `None` means more bytes, please. Comments come at once, as events without data.
    pub fn event(&mut self) -> Result<Option<Event<'_>>, TooLong> {
        self.given.clear();
        if self.fresh && !self.past_mark() {
            return Ok(None);
        }
        while let Some((from, to)) = self.line() {
            if to > from {
                self.pending.add(&self.bytes[from..to]);
                if self.pending.len() > self.limit {
                    return Err(TooLong);
                }
                continue;
            }
            if self.pending.has_data || !self.pending.head.is_empty() {
                std::mem::swap(&mut self.given, &mut self.pending);
                return Ok(Some(self.given.event()));
            }
            self.pending.clear();
        }
        let rest = self.bytes.len() - self.at;
        if self.pending.len() + rest > self.limit {
            return Err(TooLong);
        }
        if rest == 0 {
            self.forget();
        } else if self.at > 0 {
            self.bytes.drain(..self.at);
            self.searched -= self.at;
            self.at = 0;
        }
        // A comment is for keeping alive, so it does not wait for the event after it.
        if !self.pending.has_data && !self.pending.head.is_empty() && self.at == self.bytes.len() {
            let label = self.pending.label;
            std::mem::swap(&mut self.given, &mut self.pending);
            self.pending.label = label;
            self.given.label = Label::Message;
            return Ok(Some(self.given.event()));
        }
        Ok(None)
    }

    /// At the end of the input: an event whose blank line is missing. The standard drops it; we take it if its
    /// data is one whole JSON object (streams 2), which the caller finds out. Half a line that is no comment
    /// stands for half an event, since it may have become one.
    pub fn rest(&mut self) -> Option<Event<'_>> {
        let line = self.at..self.bytes.len();
        if !line.is_empty() {
            let half = self.bytes[self.at] != b':';
            self.pending.add(&self.bytes[line]);
            self.pending.has_data |= half;
            self.at = self.bytes.len();
        }
        let half = self.pending.has_data || self.pending.label != Label::Message;
        half.then(|| Event {
            data: Some(&self.pending.data),
            ..self.pending.event()
        })
    }

    /// How many bytes are held.
    pub fn held(&self) -> usize {
        self.bytes.len() + self.pending.len() + self.given.len()
    }

    fn forget(&mut self) {
        self.bytes.clear();
        if self.bytes.capacity() > KEPT {
            self.bytes = Vec::new();
        }
        self.at = 0;
        self.searched = 0;
    }

    /// Over a byte order mark at the very start. False while it cannot be told yet.
    fn past_mark(&mut self) -> bool {
        const MARK: &[u8] = b"\xef\xbb\xbf";
        let start = &self.bytes[..self.bytes.len().min(MARK.len())];
        if start == MARK {
            self.at = MARK.len();
            self.searched = MARK.len();
        } else if start.is_empty() || (start.len() < MARK.len() && MARK.starts_with(start)) {
            return false;
        }
        self.fresh = false;
        true
    }

    fn line(&mut self) -> Option<(usize, usize)> {
        if self.after_cr && self.at < self.bytes.len() {
            self.after_cr = false;
            if self.bytes[self.at] == b'\n' {
                self.at += 1;
            }
        }
        self.searched = self.searched.max(self.at);
        let Some(found) = memchr::memchr2(b'\n', b'\r', &self.bytes[self.searched..]) else {
            self.searched = self.bytes.len();
            return None;
        };
        let (from, to) = (self.at, self.searched + found);
        self.after_cr = self.bytes[to] == b'\r';
        self.at = to + 1;
        self.searched = self.at;
        Some((from, to))
    }
}

/// The value of a field, less one space before it.
fn field<'l>(line: &'l [u8], name: &[u8]) -> Option<&'l [u8]> {
    match line.strip_prefix(name)? {
        [] => Some(&[]),
        [b':', b' ', value @ ..] | [b':', value @ ..] => Some(value),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
