//! The smallest steps over a text: strings, numbers, words and what lies between them.
use super::{Read, Scan, run::plain};

impl Scan<'_> {
    /// Over a string, from quote to quote; tells whether it has escapes.
    #[inline]
    pub(super) fn string(&mut self) -> Read<bool> {
        let end = plain(self.text.as_bytes(), self.at + 1);
        if self.text.as_bytes().get(end) == Some(&b'"') {
            self.at = end + 1;
            return Ok(false);
        }
        self.at = end;
        self.rest_of_string().map(|()| true)
    }

    /// Over what follows the first run of a string that has escapes.
    #[inline(never)]
    fn rest_of_string(&mut self) -> Read {
        loop {
            match self.text.as_bytes().get(self.at) {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') => self.at += self.escape()?,
                Some(_) => return Err("control character in a string"),
                None => return Err("string without end"),
            }
            self.at = plain(self.text.as_bytes(), self.at);
        }
    }

    /// How long the escape here is.
    fn escape(&self) -> Read<usize> {
        match self.text.as_bytes()[self.at + 1..] {
            [b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't', ..] => Ok(2),
            [b'u', a, b, c, d, ..] if [a, b, c, d].iter().all(u8::is_ascii_hexdigit) => Ok(6),
            _ => Err("bad escape"),
        }
    }

    #[inline]
    pub(super) fn number(&mut self) -> Read {
        self.eat(|c| c == b'-');
        if !self.eat(|c| c == b'0') {
            self.digits()?;
        }
        if self.eat(|c| c == b'.') {
            self.digits()?;
        }
        if self.eat(|c| matches!(c, b'e' | b'E')) {
            self.eat(|c| matches!(c, b'+' | b'-'));
            self.digits()?;
        }
        Ok(())
    }

    #[inline]
    fn digits(&mut self) -> Read {
        let rest = &self.text.as_bytes()[self.at..];
        let digits = rest.iter().take_while(|c| c.is_ascii_digit()).count();
        self.at += digits;
        if digits == 0 {
            return Err("no digit");
        }
        Ok(())
    }

    #[inline]
    fn eat(&mut self, is: impl Fn(u8) -> bool) -> bool {
        let hit = self.text.as_bytes().get(self.at).is_some_and(|c| is(*c));
        self.at += usize::from(hit);
        hit
    }

    #[inline]
    pub(super) fn literal(&mut self, word: &str) -> Read {
        if !self.text.as_bytes()[self.at..].starts_with(word.as_bytes()) {
            return Err("no value");
        }
        self.at += word.len();
        Ok(())
    }

    #[inline]
    pub(super) fn want(&mut self, byte: u8) -> Read {
        if self.peek() != byte {
            return Err("unexpected byte");
        }
        self.at += 1;
        Ok(())
    }
    /// The next byte that is not white space, still to be read; 0 at the end, which no value starts with.
    #[inline]
    pub(super) fn peek(&mut self) -> u8 {
        match self.text.as_bytes().get(self.at) {
            Some(next) if *next > b' ' => *next,
            _ => self.past_space(),
        }
    }

    #[inline(never)]
    pub(super) fn past_space(&mut self) -> u8 {
        loop {
            match self.text.as_bytes().get(self.at) {
                Some(b' ' | b'\n' | b'\r' | b'\t') => self.at += 1,
                next => return next.copied().unwrap_or(0),
            }
        }
    }
}
