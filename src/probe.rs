//! `a2a-gateway probe`: asks an A2A address, a gateway or a bare agent, in all eight combinations of version, binding and
//! delivery, and tells what of it works.
//!
//! What is expected is what the agent card offers. A combination that it does not offer is tried all the same: it may work,
//! and if it does not, it is not spoken there, which is nobody's mistake. Requests are written and answers read by the same
//! code that translates calls; what that code forgives (ids, content types, framing) is looked at here besides.
use std::{path::Path, process::ExitCode, time::Duration};

use http::{HeaderMap, HeaderName, HeaderValue};

use crate::{a2a::Binding, cli};

mod answer;
mod card;
mod events;
mod link;
mod refusal;
mod report;
mod way;

pub use report::{Interface, Report, Row, Verdict};

use card::Offer;
use link::Link;
use way::{Delivery, WAYS, Way};

/// The exit code when nobody could be asked.
pub const NOT_REACHED: u8 = 2;
/// One question takes at most this part of the time of all of them, so that one that hangs does not silence the rest.
const SHARE: u32 = 4;

/// Does it. Fails if the address cannot be reached or the arguments make no sense, and says why.
pub fn probe(asked: &cli::Probe) -> Result<Report, String> {
    let fields = fields(&asked.headers, asked.header_file.as_deref())?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| e.to_string())?;
    let report = runtime.block_on(async {
        let link = Link::new(&asked.url, fields, asked.ca_file.as_deref(), asked.timeout)?;
        Probe {
            link,
            message: &asked.message,
            rows: vec![],
        }
        .run(&asked.url)
        .await
    });
    runtime.shutdown_background(); // a name may still be looked up
    report
}

/// 0 if all that is offered works.
pub fn exit_code(report: &Report) -> ExitCode {
    if report.ok {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// The longest time for one question.
fn question(whole: Duration) -> Duration {
    whole / SHARE
}

/// What is sent along with every question, which is never printed.
fn fields(said: &[String], file: Option<&Path>) -> Result<HeaderMap, String> {
    let mut fields = HeaderMap::new();
    let from_file = match file {
        None => String::new(),
        Some(file) => std::fs::read_to_string(file)
            .map_err(|e| format!("--header-file {}: {e}", file.display()))?,
    };
    let lines = from_file.lines().map(str::trim);
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    for line in said.iter().map(String::as_str).chain(lines) {
        let wrong = || "a header is said as 'Name: value'".to_owned(); // it may be a secret: not repeated
        let (name, value) = line.split_once(':').ok_or_else(wrong)?;
        let name: HeaderName = name.trim().parse().map_err(|_| wrong())?;
        let mut value: HeaderValue = value.trim().parse().map_err(|_| wrong())?;
        value.set_sensitive(true);
        fields.append(name, value);
    }
    Ok(fields)
}

struct Probe<'a> {
    link: Link,
    message: &'a str,
    rows: Vec<Row>,
}

impl Probe<'_> {
    async fn run(mut self, url: &str) -> Result<Report, String> {
        let read = card::read(&self.link).await?;
        self.rows.extend(read.rows);
        let offer = read.offer;
        for way in WAYS {
            let spoken = self.calls(way, &offer).await;
            self.refusals(way, &offer, spoken).await;
        }
        let ok = self.rows.iter().all(|row| row.verdict != Verdict::Wrong);
        Ok(Report {
            url: url.to_owned(),
            ok,
            agent: offer.name,
            signed: offer.signed,
            interfaces: offer.interfaces,
            rows: self.rows,
        })
    }

    /// Send and stream. True if one of them works.
    async fn calls(&mut self, way: Way, offer: &Offer) -> bool {
        let base = offer.base(way).unwrap_or(self.link.base()).to_owned();
        let mut dialect = way.dialect();
        let mut spoken = false;
        for delivery in [Delivery::Send, Delivery::Stream] {
            let offered = offer.offers(way, delivery);
            let mut row = self.call(way, dialect, &base, delivery).await;
            let old_rest = way.binding == Binding::Rest && dialect == crate::a2a::Dialect::R03P;
            if old_rest && delivery == Delivery::Send && row.may_be_other_shape() {
                // JavaScript's SDK wrote v0.3 REST with `kind` once.
                let other = crate::a2a::Dialect::R03K;
                let second = self.call(way, other, &base, delivery).await;
                if second.wrong.is_none() {
                    (dialect, row) = (other, second);
                    row.came.push_str(", with `kind`");
                }
            }
            spoken |= row.wrong.is_none();
            self.rows.push(row.row(offered));
        }
        spoken
    }

    async fn call(
        &self,
        way: Way,
        dialect: crate::a2a::Dialect,
        base: &str,
        delivery: Delivery,
    ) -> report::Draft {
        let asked = way::send(way, dialect, base, delivery, self.message);
        let mut draft = report::Draft::new("call", way.name(), delivery.name());
        let asked = match asked {
            Ok(asked) => asked,
            Err(why) => return draft.wrong(report::Wrong::new(why, "a message that can be sent")),
        };
        draft.sent = asked.shown();
        match delivery {
            Delivery::Send => answer::judge(draft, &self.link, &asked).await,
            Delivery::Stream => events::judge(draft, &self.link, &asked).await,
        }
    }

    /// What is refused, and how that is told.
    async fn refusals(&mut self, way: Way, offer: &Offer, spoken: bool) {
        let base = offer.base(way).unwrap_or(self.link.base()).to_owned();
        let offered = offer.base(way).is_some();
        for case in refusal::CASES {
            let draft = report::Draft::new("error", way.name(), case.name());
            let row = if spoken || offered {
                let judged = refusal::judge(draft, &self.link, way, &base, case).await;
                judged.row(spoken || offered)
            } else {
                draft.not_asked()
            };
            self.rows.push(row);
        }
    }
}
