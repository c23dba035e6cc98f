//! What came of it, for people and as JSON. What others said is shown in one short line without control characters.
use std::fmt;

use serde::Serialize;

/// Longer words of others are cut.
const SHOWN: usize = 160;
/// The columns of the matrix.
const COLUMNS: [&str; 4] = ["send", "stream", "unknown task", "unknown method"];

/// What is to be thought of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// As it should be.
    Ok,
    /// Not as it should be.
    Wrong,
    /// Not offered, and not there.
    NotSpoken,
}

impl Verdict {
    const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Wrong => "WRONG",
            Self::NotSpoken => "not spoken",
        }
    }
}

/// An interface that the card offers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Interface {
    /// Its address.
    pub url: String,
    /// Its binding, as the card says it.
    pub binding: String,
    /// Its version, as the card says it.
    pub version: String,
}

/// One question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Row {
    /// `card`, `call` or `error`.
    pub group: &'static str,
    /// Version and binding; empty for the card's place and signature.
    pub way: &'static str,
    /// What was tried.
    pub check: &'static str,
    /// Whether the card offers it.
    pub offered: bool,
    /// Method and path.
    pub sent: String,
    /// What came.
    pub came: String,
    /// What is to be thought of it.
    pub verdict: Verdict,
    /// What is wrong with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wrong: Option<String>,
    /// What would be right, with the section of the specification.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub right: Option<&'static str>,
}

/// All of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// What was probed.
    pub url: String,
    /// Whether all that is offered works.
    pub ok: bool,
    /// The name of the agent, as its card says.
    pub agent: Option<String>,
    /// Whether the card is signed; nobody verified that.
    pub signed: bool,
    /// What the card offers.
    pub interfaces: Vec<Interface>,
    /// The questions, in their order.
    pub rows: Vec<Row>,
}

/// Why something is wrong.
#[derive(Clone, Debug)]
pub(super) struct Wrong {
    what: String,
    right: &'static str,
    /// The status of a proper refusal.
    refused: Option<u16>,
}

impl Wrong {
    pub(super) fn new(what: impl Into<String>, right: &'static str) -> Self {
        Self {
            what: what.into(),
            right,
            refused: None,
        }
    }

    pub(super) fn refused(status: u16, what: impl Into<String>, right: &'static str) -> Self {
        Self {
            refused: Some(status),
            ..Self::new(what, right)
        }
    }
}

/// A row that is being written.
#[derive(Clone, Debug)]
pub(super) struct Draft {
    group: &'static str,
    way: &'static str,
    check: &'static str,
    pub(super) sent: String,
    pub(super) came: String,
    pub(super) wrong: Option<Wrong>,
}

impl Draft {
    pub(super) fn new(group: &'static str, way: &'static str, check: &'static str) -> Self {
        Self {
            group,
            way,
            check,
            sent: String::new(),
            came: String::new(),
            wrong: None,
        }
    }

    pub(super) fn wrong(mut self, wrong: Wrong) -> Self {
        self.wrong = Some(wrong);
        self
    }

    pub(super) fn judged(mut self, result: Result<(), Wrong>) -> Self {
        self.wrong = result.err();
        self
    }

    /// Whether it was refused as one refuses a body that one cannot read.
    pub(super) fn may_be_other_shape(&self) -> bool {
        let status = self.wrong.as_ref().and_then(|wrong| wrong.refused);
        status.is_some_and(|status| ![401, 403, 404, 405, 429, 501].contains(&status))
    }

    /// What is not offered and does not work is not spoken.
    pub(super) fn row(self, offered: bool) -> Row {
        let verdict = match self.wrong {
            None => Verdict::Ok,
            Some(_) if offered => Verdict::Wrong,
            Some(_) => Verdict::NotSpoken,
        };
        let mut came = self.came;
        if let (Verdict::NotSpoken, Some(wrong)) = (verdict, &self.wrong)
            && !wrong.what.is_empty()
            && wrong.what != came
        {
            came = format!("{came}, {}", wrong.what);
        }
        let told = self.wrong.filter(|_| verdict == Verdict::Wrong);
        let right = told.as_ref().map(|wrong| wrong.right);
        Row {
            group: self.group,
            way: self.way,
            check: self.check,
            offered,
            sent: self.sent,
            came: shown(&came),
            verdict,
            wrong: told.map(|wrong| shown(&wrong.what)),
            right,
        }
    }

    /// Nobody asks for errors in words that are not spoken.
    pub(super) fn not_asked(mut self) -> Row {
        "not asked".clone_into(&mut self.came);
        self.wrong(Wrong::new("", "")).row(false)
    }
}

/// One line of harmless characters.
pub(super) fn shown(text: &str) -> String {
    let harmless = |c: char| if c.is_control() { ' ' } else { c };
    let mut short: String = text.chars().take(SHOWN).map(harmless).collect();
    if text.chars().nth(SHOWN).is_some() {
        short.push('…');
    }
    short
}

/// One line of the matrix.
fn line(f: &mut fmt::Formatter<'_>, first: &str, rest: [&str; 4]) -> fmt::Result {
    let [send, stream, task, method] = rest;
    writeln!(f, "{first:<14}  {send:<12}{stream:<12}{task:<14}{method}")
}

impl Report {
    /// The same for programs.
    ///
    /// # Panics
    /// Never: it is made of texts and lists.
    pub fn json(&self) -> String {
        serde_json::to_string_pretty(self).expect("texts and lists are JSON")
    }

    fn matrix(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        line(f, "", COLUMNS)?;
        for way in super::WAYS {
            let verdict = |column| {
                let is = |row: &&Row| row.way == way.name() && row.check == column;
                let row = self.rows.iter().find(is);
                row.map_or("", |row| row.verdict.name())
            };
            line(f, way.name(), COLUMNS.map(verdict))?;
        }
        Ok(())
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let agent = self.agent.as_deref().unwrap_or("an agent without a card");
        let signed = if self.signed { "signed" } else { "not signed" };
        writeln!(f, "{}: {agent} (card {signed})\n", self.url)?;
        self.matrix(f)?;
        writeln!(f)?;
        for row in &self.rows {
            let name = format!("{} {}", row.way, row.check);
            let sent = match row.sent.as_str() {
                "" => String::new(),
                sent => format!("{sent} -> "),
            };
            let verdict = row.verdict.name();
            writeln!(f, "{verdict:<10}  {:<28}  {sent}{}", name.trim(), row.came)?;
            if let (Some(wrong), Some(right)) = (&row.wrong, row.right) {
                writeln!(f, "            wrong: {wrong}\n            right: {right}")?;
            }
        }
        let wrong = self.rows.iter().filter(|r| r.verdict == Verdict::Wrong);
        match wrong.count() {
            0 => write!(f, "\nall that is offered works"),
            1 => write!(f, "\n1 of {} is wrong", self.rows.len()),
            n => write!(f, "\n{n} of {} are wrong", self.rows.len()),
        }
    }
}
