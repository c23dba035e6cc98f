//! Agent cards, both ways (v1.0 4.4, 8; v0.3 5.5): interfaces, capabilities, security. Canonical is the pure
//! v1.0 card; the superset has the members of both versions, since one URL serves readers of both.
use super::{Notes, View};
use crate::json::{
    As::{Each, One, Text},
    Form, Node, Obj, Result,
};

mod security;

pub use security::{Scheme, Security, secure};

static INTERFACE: Form = Form::of(&[
    ("url", Text),
    ("protocolBinding", Text),
    ("protocolVersion", Text),
    ("tenant", Text),
    ("transport", Text),
]);
static CAPABILITIES: Form = Form::of(&[
    ("streaming", Text),
    ("pushNotifications", Text),
    ("extendedAgentCard", Text),
    ("extensions", Text),
]);
static REQUIREMENT: Form = Form::of(&[("schemes", Text)]);
static SKILL: Form = Form::of(&[
    ("securityRequirements", Each(&REQUIREMENT)),
    ("security_requirements", Each(&REQUIREMENT)),
    ("inputModes", Text),
    ("outputModes", Text),
]);
static SCHEMES: Form = Form::of(&[]);
/// What must be looked into; the rest of a card passes as text.
pub static CARD: Form = Form::of(&[
    ("supportedInterfaces", Each(&INTERFACE)),
    ("additionalInterfaces", Each(&INTERFACE)),
    ("capabilities", One(&CAPABILITIES)),
    ("securitySchemes", One(&SCHEMES)),
    ("securityRequirements", Each(&REQUIREMENT)),
    ("skills", Each(&SKILL)),
    ("supported_interfaces", Each(&INTERFACE)),
    ("security_schemes", One(&SCHEMES)),
    ("security_requirements", Each(&REQUIREMENT)),
]);
/// Names in which a v1.0 card may come in `snake_case`.
static NAMES: Form = Form::of(&[
    ("supportedInterfaces", Text),
    ("securitySchemes", Text),
    ("securityRequirements", Text),
    ("defaultInputModes", Text),
    ("defaultOutputModes", Text),
    ("documentationUrl", Text),
    ("iconUrl", Text),
]);
/// Members that only a v0.3 card has.
const OLD: [&str; 6] = [
    "protocolVersion",
    "url",
    "preferredTransport",
    "additionalInterfaces",
    "supportsAuthenticatedExtendedCard",
    "security",
];

/// One way to reach the agent, as a card lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Where.
    pub url: String,
    /// `JSONRPC` or `HTTP+JSON`.
    pub binding: &'static str,
    /// `1.0` or `0.3`.
    pub version: &'static str,
}

/// A card of either version, or a superset, to canonical. What decides is `supportedInterfaces`: ADK's v1.0
/// card has a top-level `url` as well.
pub fn lift(card: &mut Obj<'_>, notes: &mut Notes<'_>) -> Result {
    card.camel(&NAMES)?;
    card.no_nulls("");
    if card.has("supportedInterfaces") {
        lift_new(card)?;
    } else {
        lift_old(card, notes)?;
    }
    for old in OLD {
        card.take(old);
    }
    card.within("securitySchemes", |s| security::lift_schemes(s, notes))
}

/// A v1.0 card is canonical but for the spelling of its names, and for what a superset says a second time.
fn lift_new(card: &mut Obj<'_>) -> Result {
    card.each("supportedInterfaces", |i| i.camel(&INTERFACE))?;
    card.within("capabilities", |c| {
        c.take("stateTransitionHistory");
        c.camel(&CAPABILITIES)
    })?;
    card.each("skills", |s| {
        s.take("security");
        s.camel(&SKILL)
    })
}

fn lift_old(card: &mut Obj<'_>, notes: &mut Notes<'_>) -> Result {
    lift_interfaces(card)?;
    lift_capabilities(card, notes)?;
    if let Some(Node::Text(list)) = card.take("security") {
        security::lift_requirements(card, list, notes);
    }
    card.each("skills", |s| {
        if let Some(Node::Text(list)) = s.take("security") {
            security::lift_requirements(s, list, notes);
        }
        Ok(())
    })
}

fn lift_interfaces(card: &mut Obj<'_>) -> Result {
    let version = card
        .string("protocolVersion")
        .map_or_else(|| "0.3".to_owned(), |v| minor(&v).to_owned());
    let mut all = vec![];
    let mut first = None;
    if let Some(url) = card.take("url") {
        let transport = card
            .take("preferredTransport")
            .unwrap_or(Node::word("JSONRPC"));
        let mut one = Obj::default();
        one.put("url", url);
        one.put("protocolBinding", transport);
        one.put("protocolVersion", Node::string(version.clone()));
        first = Some((
            one.string("url").map(std::borrow::Cow::into_owned),
            one.string("protocolBinding")
                .map(std::borrow::Cow::into_owned),
        ));
        all.push(one);
    }
    for mut other in card.take_list("additionalInterfaces")?.unwrap_or_default() {
        other.rename("transport", "protocolBinding")?;
        let same = (
            other.string("url").map(std::borrow::Cow::into_owned),
            other
                .string("protocolBinding")
                .map(std::borrow::Cow::into_owned),
        );
        if first.as_ref() == Some(&same) {
            continue; // v0.3 repeats the preferred one
        }
        other.put("protocolVersion", Node::string(version.clone()));
        all.push(other);
    }
    card.put_first("supportedInterfaces", Node::List(all));
    Ok(())
}

/// Major.Minor of a version.
fn minor(version: &str) -> &str {
    match version.match_indices('.').nth(1) {
        Some((at, _)) => &version[..at],
        None => version,
    }
}

fn lift_capabilities(card: &mut Obj<'_>, notes: &mut Notes<'_>) -> Result {
    let extended = card.take("supportsAuthenticatedExtendedCard");
    if extended.is_some() && !card.has("capabilities") {
        card.put("capabilities", Node::Obj(Obj::default()));
    }
    card.within("capabilities", |c| {
        if c.take("stateTransitionHistory").is_some() {
            notes.lose(
                "capabilities",
                "stateTransitionHistory",
                "v1.0 does not have it",
            );
        }
        if let Some(extended) = extended {
            c.put("extendedAgentCard", extended);
        }
        Ok(())
    })
}

/// Puts the gateway's own interfaces in place of the agent's, so that nobody can walk around the gateway, and
/// says what it offers of the rest. A signature does not survive that (v1.0 8.4).
pub fn rewrite(card: &mut Obj<'_>, interfaces: &[Interface], push: bool) -> Result {
    let list = interfaces
        .iter()
        .map(|i| {
            let mut one = Obj::default();
            one.put("url", Node::string(i.url.clone()));
            one.put("protocolBinding", Node::word(i.binding));
            one.put("protocolVersion", Node::word(i.version));
            one
        })
        .collect();
    card.put("supportedInterfaces", Node::List(list));
    card.take("signatures");
    if !push {
        card.within("capabilities", |c| {
            if c.has("pushNotifications") {
                c.put("pushNotifications", Node::flag(false));
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// A canonical card as a reader of this kind wants it.
pub fn lower(card: &mut Obj<'_>, view: View, notes: &mut Notes<'_>) -> Result {
    match view {
        View::V10 => Ok(()),
        View::Superset => {
            add_old(card);
            let gone = schemes(card, true, notes)?;
            requirements(card, true, &gone)
        }
        View::V03 | View::V03Proto => {
            add_old(card);
            card.take("supportedInterfaces");
            if card.take("signatures").is_some() {
                notes.lose("card", "signatures", "they sign the v1.0 card");
            }
            card.within("capabilities", |c| {
                c.take("extendedAgentCard");
                Ok(())
            })?;
            let gone = schemes(card, view == View::V03Proto, notes)?;
            requirements(card, false, &gone)
        }
    }
}

/// Gives the names of the schemes that v0.3 cannot say. They go from a merged card too, where its v0.3 readers
/// would fail on them.
fn schemes(card: &mut Obj<'_>, merged: bool, notes: &mut Notes<'_>) -> Result<Vec<String>> {
    let mut gone = vec![];
    card.within("securitySchemes", |s| {
        gone = security::lower_schemes(s, merged, notes)?;
        Ok(())
    })?;
    Ok(gone)
}

/// Requirements on the card and on its skills.
fn requirements(card: &mut Obj<'_>, keep: bool, gone: &[String]) -> Result {
    security::lower_requirements(card, keep, gone);
    card.each("skills", |s| {
        security::lower_requirements(s, keep, gone);
        Ok(())
    })
}

/// The members of v0.3. The preferred interface is the first that speaks it, and is repeated in the list, as
/// the SDKs do.
fn add_old(card: &mut Obj<'_>) {
    let mut old = vec![];
    for i in card.list("supportedInterfaces").unwrap_or_default() {
        let is_old = i
            .string("protocolVersion")
            .is_some_and(|v| v.starts_with("0."));
        old.push((
            is_old,
            i.string("url")
                .map(std::borrow::Cow::into_owned)
                .unwrap_or_default(),
            i.string("protocolBinding")
                .map_or_else(|| "JSONRPC".into(), std::borrow::Cow::into_owned),
        ));
    }
    if old.iter().any(|o| o.0) {
        old.retain(|o| o.0);
    }
    let extended = card
        .inside("capabilities")
        .and_then(|c| c.raw("extendedAgentCard"))
        .unwrap_or("false");
    card.put("protocolVersion", Node::word("0.3.0"));
    if let Some((_, url, binding)) = old.first() {
        card.put("url", Node::string(url.clone()));
        card.put("preferredTransport", Node::string(binding.clone()));
    }
    let list = old.into_iter().map(|(_, url, binding)| {
        let mut one = Obj::default();
        one.put("url", Node::string(url));
        one.put("transport", Node::string(binding));
        one
    });
    card.put("additionalInterfaces", Node::List(list.collect()));
    card.put("supportsAuthenticatedExtendedCard", Node::Text(extended));
}

#[cfg(test)]
mod tests;
