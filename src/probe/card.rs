//! The agent card: where it is, what each version wants in it, what it offers, and whether it is signed. The signature is
//! not verified: whom to trust is not known here.
use serde_json::Value;

use super::{
    link::{self, Link, Trouble, Whole},
    report::{self, Draft, Interface, Row, Wrong},
    way::{Delivery, Way},
};
use crate::a2a::{Binding, Version};

const PLACE: &str = "/.well-known/agent-card.json";
const OLD_PLACE: &str = "/.well-known/agent.json";
const AT_PLACE: &str =
    "200, application/json and a card at /.well-known/agent-card.json (v1.0 8.2, v0.3 5.3)";
const MEMBERS_10: &str = "a card with name, description, version, supportedInterfaces, capabilities, defaultInputModes, defaultOutputModes and skills (v1.0 4.4.1)";
const MEMBERS_03: &str = "a card with name, description, version, url, protocolVersion, capabilities, defaultInputModes, defaultOutputModes and skills (v0.3 5.5)";
const INTERFACES: &str =
    "one interface or more, each with url, protocolBinding and protocolVersion (v1.0 4.4.6)";
const TRANSPORTS: &str = "in additionalInterfaces url and transport each (v0.3 5.5.5)";
const SIGNED: &str = "in signatures protected and signature each (v1.0 8.4, v0.3 5.5.6)";

/// What the card offers.
#[derive(Default)]
pub(super) struct Offer {
    pub(super) name: Option<String>,
    pub(super) signed: bool,
    pub(super) interfaces: Vec<Interface>,
    ways: Vec<(Way, String)>,
    streams: bool,
}

/// What was read.
pub(super) struct Read {
    pub(super) rows: Vec<Row>,
    pub(super) offer: Offer,
}

impl Offer {
    /// The path of the interface, if it is offered.
    pub(super) fn base(&self, way: Way) -> Option<&str> {
        let found = self.ways.iter().find(|(offered, _)| *offered == way);
        found.map(|(_, base)| base.as_str())
    }

    pub(super) fn offers(&self, way: Way, delivery: Delivery) -> bool {
        self.base(way).is_some() && (delivery == Delivery::Send || self.streams)
    }

    fn add(&mut self, link: &Link, url: &str, binding: &str, version: &str) {
        let interface = Interface {
            url: report::shown(url),
            binding: report::shown(binding),
            version: report::shown(version),
        };
        if !self.interfaces.contains(&interface) {
            self.interfaces.push(interface);
        }
        let binding = match binding {
            "JSONRPC" => Binding::Rpc,
            "HTTP+JSON" => Binding::Rest,
            _ => return,
        };
        let version = match version.split('.').next() {
            Some("1") => Version::V10,
            Some("0") => Version::V03,
            Some(_) | None => return,
        };
        let way = Way::new(version, binding);
        if self.base(way).is_none() {
            // A card may name the address that others use; what is probed is the one that was said.
            let base = link.path_here(url);
            let base = base.unwrap_or_else(|| link.base().to_owned());
            self.ways.push((way, base));
        }
    }
}

/// Reads it, for each version. Fails if nobody is there.
pub(super) async fn read(link: &Link) -> Result<Read, String> {
    let (row, plain) = place(link).await?;
    let mut rows = vec![row.row(true)];
    let mut offer = Offer::default();
    let (new, path) = for_version(link, plain.as_ref(), Version::V10).await;
    rows.push(judged(new.as_ref(), Version::V10, &path));
    let (old, path) = for_version(link, plain.as_ref(), Version::V03).await;
    rows.push(judged(old.as_ref(), Version::V03, &path));
    for card in [&new, &old].into_iter().flatten() {
        gather(&mut offer, link, card);
    }
    rows.push(signature(new.as_ref().or(old.as_ref()), &mut offer));
    Ok(Read { rows, offer })
}

/// Where it is.
async fn place(link: &Link) -> Result<(Draft, Option<(String, Value)>), String> {
    let mut draft = Draft::new("card", "", "card");
    let at = format!("{}{PLACE}", link.base());
    draft.sent = format!("GET {at}");
    let first = match link.get(&at, None).await {
        Ok(whole) => whole,
        Err(Trouble::Nobody(why)) => return Err(why),
        Err(Trouble::Way(why)) => {
            draft.came.clone_from(&why);
            return Ok((draft.wrong(Wrong::new(why, AT_PLACE)), None));
        }
    };
    draft.came = link::shown(&first.head);
    let wrong = match card_in(&first) {
        Ok(card) => return Ok((draft, Some((at, card)))),
        Err(wrong) => wrong,
    };
    let mut others = vec![format!("{}{OLD_PLACE}", link.base())];
    if !link.base().is_empty() {
        others.insert(0, PLACE.to_owned());
    }
    for other in others {
        let Ok(whole) = link.get(&other, None).await else {
            continue;
        };
        let Ok(card) = card_in(&whole) else { continue };
        if other == PLACE {
            // Well-known paths begin at the root (RFC 8615).
            draft.sent = format!("GET {PLACE}");
            draft.came = link::shown(&whole.head);
            return Ok((draft, Some((other, card))));
        }
        let what = format!("it is at {other} only");
        return Ok((draft.wrong(Wrong::new(what, AT_PLACE)), Some((other, card))));
    }
    Ok((draft.wrong(wrong), None))
}

fn card_in(whole: &Whole) -> Result<Value, Wrong> {
    if whole.head.status != 200 {
        let what = format!("the status is {}", whole.head.status.as_u16());
        return Err(Wrong::new(what, AT_PLACE));
    }
    let kind = link::media_type(&whole.head);
    if kind != "application/json" && kind != "application/a2a+json" {
        return Err(Wrong::new(format!("the content type is {kind}"), AT_PLACE));
    }
    match serde_json::from_slice(&whole.body) {
        Ok(card @ Value::Object(_)) => Ok(card),
        Ok(_) => Err(Wrong::new("it is no JSON object", AT_PLACE)),
        Err(e) => Err(Wrong::new(format!("it is not JSON: {e}"), AT_PLACE)),
    }
}

/// The card as a client of this version gets it; the plain one where that is none.
async fn for_version(
    link: &Link,
    plain: Option<&(String, Value)>,
    version: Version,
) -> (Option<Value>, String) {
    let Some((path, plain)) = plain else {
        return (None, String::new());
    };
    let own = link.get(path, Some(version)).await.ok();
    let own = own.and_then(|whole| card_in(&whole).ok());
    (Some(own.unwrap_or_else(|| plain.clone())), path.clone())
}

fn judged(card: Option<&Value>, version: Version, path: &str) -> Row {
    let (way, right) = match version {
        Version::V10 => ("v1.0", MEMBERS_10),
        Version::V03 => ("v0.3", MEMBERS_03),
    };
    let mut draft = Draft::new("card", way, "card");
    let Some(card) = card else {
        return draft.not_asked();
    };
    draft.sent = format!("GET {path}, A2A-Version {}", version.name());
    let has = |key: &str| card.get(key).is_some_and(|value| !value.is_null());
    let offered = match version {
        // Whoever offers nothing at all is told so once, by the newer rules.
        Version::V10 => has("supportedInterfaces") || !has("url"),
        Version::V03 => has("url") || has("preferredTransport") || has("additionalInterfaces"),
    };
    if !offered {
        "no card of this version".clone_into(&mut draft.came);
        return draft.wrong(Wrong::new("", right)).row(false);
    }
    let name = card["name"].as_str().unwrap_or("no name");
    draft.came = format!("{name:?}");
    let result = members(card, version, right).and_then(|()| match version {
        Version::V10 => interfaces(card),
        Version::V03 => transports(card),
    });
    draft.judged(result).row(true)
}

/// What a card of this version cannot be without.
fn members(card: &Value, version: Version, right: &'static str) -> Result<(), Wrong> {
    let texts: &[&str] = match version {
        Version::V10 => &["name", "description", "version"],
        Version::V03 => &["name", "description", "version", "url", "protocolVersion"],
    };
    let missing = |key: &str| Err(Wrong::new(format!("it has no {key}"), right));
    for key in texts {
        if card[*key].as_str().is_none_or(str::is_empty) {
            return missing(key);
        }
    }
    if !card["capabilities"].is_object() {
        return missing("capabilities");
    }
    for key in ["defaultInputModes", "defaultOutputModes", "skills"] {
        if !card[key].is_array() {
            return missing(key);
        }
    }
    for skill in card["skills"].as_array().into_iter().flatten() {
        let texts = ["id", "name", "description"];
        let texts = texts.into_iter().find(|key| !skill[*key].is_string());
        let tags = (!skill["tags"].is_array()).then_some("tags");
        if let Some(key) = texts.or(tags) {
            let right = "skills with id, name, description and tags (v1.0 4.4.5, v0.3 5.5.4)";
            return Err(Wrong::new(format!("a skill has no {key}"), right));
        }
    }
    Ok(())
}

fn interfaces(card: &Value) -> Result<(), Wrong> {
    let all = card["supportedInterfaces"].as_array();
    let all = all.filter(|all| !all.is_empty());
    let all = all.ok_or_else(|| Wrong::new("it has no supportedInterfaces", INTERFACES))?;
    for interface in all {
        for key in ["protocolBinding", "protocolVersion"] {
            if interface[key].as_str().is_none_or(str::is_empty) {
                return Err(Wrong::new(format!("an interface has no {key}"), INTERFACES));
            }
        }
        address(&interface["url"], INTERFACES)?;
    }
    Ok(())
}

fn transports(card: &Value) -> Result<(), Wrong> {
    address(&card["url"], MEMBERS_03)?;
    for other in card["additionalInterfaces"]
        .as_array()
        .into_iter()
        .flatten()
    {
        if other["transport"].as_str().is_none_or(str::is_empty) {
            return Err(Wrong::new("an interface has no transport", TRANSPORTS));
        }
        address(&other["url"], TRANSPORTS)?;
    }
    Ok(())
}

/// An absolute URL, or whatever a binding of its own has for an address.
fn address(url: &Value, right: &'static str) -> Result<(), Wrong> {
    match url.as_str() {
        Some(url) if url.contains("://") => Ok(()),
        Some(url) if url.contains(':') && !url.starts_with('/') => Ok(()), // gRPC's host and port
        Some(url) => Err(Wrong::new(format!("{url:?} is no absolute URL"), right)),
        None => Err(Wrong::new("an interface has no url", right)),
    }
}

/// What one card offers, by the members of either version.
fn gather(offer: &mut Offer, link: &Link, card: &Value) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    if offer.name.is_none() {
        offer.name = card["name"].as_str().map(report::shown);
    }
    offer.streams |= card["capabilities"]["streaming"] == true;
    let list = |key: &str| card[key].as_array().cloned().unwrap_or_default();
    for interface in list("supportedInterfaces") {
        offer.add(
            link,
            &text(&interface["url"]),
            &text(&interface["protocolBinding"]),
            &text(&interface["protocolVersion"]),
        );
    }
    let Some(url) = card["url"].as_str() else {
        return;
    };
    let version = card["protocolVersion"].as_str().unwrap_or("0.3");
    let preferred = card["preferredTransport"].as_str().unwrap_or("JSONRPC");
    offer.add(link, url, preferred, version);
    for other in list("additionalInterfaces") {
        let (url, transport) = (text(&other["url"]), text(&other["transport"]));
        offer.add(link, &url, &transport, version);
    }
}

fn signature(card: Option<&Value>, offer: &mut Offer) -> Row {
    let mut draft = Draft::new("card", "", "signature");
    let Some(card) = card else {
        return draft.not_asked();
    };
    "the card".clone_into(&mut draft.sent);
    let all = card["signatures"].as_array();
    let all = all.map(Vec::as_slice).unwrap_or_default();
    offer.signed = !all.is_empty();
    draft.came = match all.len() {
        0 => "not signed".to_owned(),
        n => format!("{n} signatures, not verified"),
    };
    let is_whole = |s: &Value| s["protected"].is_string() && s["signature"].is_string();
    let result = if all.iter().all(is_whole) {
        Ok(())
    } else {
        Err(Wrong::new("a signature lacks a member", SIGNED))
    };
    draft.judged(result).row(true)
}
