//! Security schemes and requirements of a card: OpenAPI style in v0.3, one member a kind in v1.0.
use serde_json::Value;

use std::borrow::Cow;

use super::Notes;
use crate::json::{Form, Limits, Node, Obj, Result};

/// v0.3 `type` and the v1.0 member for each kind.
const KINDS: [(&str, &str); 5] = [
    ("apiKey", "apiKeySecurityScheme"),
    ("http", "httpAuthSecurityScheme"),
    ("oauth2", "oauth2SecurityScheme"),
    ("openIdConnect", "openIdConnectSecurityScheme"),
    ("mutualTLS", "mtlsSecurityScheme"),
];
/// v1.0 holds one flow, taken in this order (decision 36).
const FLOWS: [&str; 4] = [
    "authorizationCode",
    "clientCredentials",
    "implicit",
    "password",
];
const NEW_FLOW: &str = "deviceCode";

/// A way to be let in, as a card says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// A key in this field.
    Key(String),
    /// A token in `Authorization`; whether it is known to be a JWT.
    Bearer {
        /// It is.
        jwt: bool,
    },
    /// A certificate, shown by TLS.
    Certificate,
}

/// What the gateway asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Security {
    /// The ways, each enough by itself.
    pub schemes: Vec<Scheme>,
    /// Whether what the agent itself asks for is enough as well.
    pub beside: bool,
    /// Whether nothing at all is enough as well.
    pub none: bool,
}

impl Scheme {
    /// Its name in a card, which no agent is likely to have.
    fn name(&self) -> String {
        match self {
            Self::Key(field) => format!("gateway-{field}"),
            Self::Bearer { .. } => "gateway-bearer".to_owned(),
            Self::Certificate => "gateway-mtls".to_owned(),
        }
    }

    fn object(&self) -> Obj<'static> {
        let mut inner = Obj::default();
        let mut scheme = Obj::default();
        match self {
            Self::Key(field) => {
                inner.put("location", Node::word("header"));
                inner.put("name", Node::string(field.clone()));
                scheme.put("apiKeySecurityScheme", Node::Obj(inner));
            }
            Self::Bearer { jwt } => {
                inner.put("scheme", Node::word("bearer"));
                if *jwt {
                    inner.put("bearerFormat", Node::word("JWT"));
                }
                scheme.put("httpAuthSecurityScheme", Node::Obj(inner));
            }
            Self::Certificate => scheme.put("mtlsSecurityScheme", Node::Obj(inner)),
        }
        scheme
    }
}

/// Says in a canonical card what the gateway asks for, in place of what the agent does: nobody sees the agent but
/// through the gateway.
pub fn secure(card: &mut Obj<'_>, security: &Security) -> Result {
    let mut needed = vec![];
    if security.beside {
        needed = requirements(card);
    } else {
        card.take("securitySchemes");
        card.take("securityRequirements");
        card.each("skills", |s| {
            s.take("securityRequirements");
            Ok(())
        })?;
    }
    if security.schemes.is_empty() {
        return Ok(()); // whoever calls is let in
    }
    let open = security.beside && needed.is_empty(); // the agent asks for nothing
    if !card.has("securitySchemes") {
        card.put("securitySchemes", Node::Obj(Obj::default()));
    }
    for scheme in &security.schemes {
        let name = scheme.name();
        card.within("securitySchemes", |all| {
            if all.has(&name) {
                return Ok(()); // keys and tokens may stand in one field
            }
            needed.push(serde_json::json!({"schemes": {(&*name): {"list": []}}}));
            all.add(Cow::Owned(name), Node::Obj(scheme.object()))
        })?;
    }
    if security.none {
        needed.push(serde_json::json!({"schemes": {}}));
    }
    if !open {
        let needed = Value::Array(needed).to_string();
        card.put("securityRequirements", Node::Made(needed));
    }
    Ok(())
}

fn requirements(card: &Obj<'_>) -> Vec<Value> {
    let mut text = vec![];
    if let Some(node) = card.get("securityRequirements") {
        node.write(&mut text);
    }
    serde_json::from_slice(&text).unwrap_or_default()
}

/// Every scheme to v1.0. One that has both shapes keeps that of v1.0.
pub(super) fn lift_schemes(schemes: &mut Obj<'_>, notes: &mut Notes<'_>) -> Result {
    schemes.each_member(|_, s| {
        if let Some((_, new)) = KINDS.into_iter().find(|k| s.has(k.1)) {
            let Some(inner) = s.take(new) else {
                return Ok(());
            };
            *s = Obj::default();
            s.put(new, inner);
            return Ok(());
        }
        let Some(kind) = s.string("type").map(std::borrow::Cow::into_owned) else {
            return Ok(());
        };
        let Some((_, new)) = KINDS.into_iter().find(|k| k.0 == kind) else {
            return Ok(());
        };
        s.take("type");
        s.rename("in", "location")?;
        if new == "oauth2SecurityScheme" {
            s.within("flows", |f| {
                one_flow(f, notes);
                Ok(())
            })?;
        }
        s.wrap(new);
        Ok(())
    })
}

fn one_flow(flows: &mut Obj<'_>, notes: &mut Notes<'_>) {
    let Some(first) = FLOWS.into_iter().find(|f| flows.has(f)) else {
        return;
    };
    flows.retain(|name, _| {
        if name != first {
            notes.lose("oauth2", "flows", "v1.0 holds one flow; the first is kept");
        }
        name == first
    });
}

/// Every scheme to v0.3, beside that of v1.0 where `merged`. Gives the names of those that v0.3 cannot say.
pub(super) fn lower_schemes(
    schemes: &mut Obj<'_>,
    merged: bool,
    notes: &mut Notes<'_>,
) -> Result<Vec<String>> {
    let mut gone = vec![];
    schemes.each_member(|name, s| {
        let Some((old, new)) = KINDS.into_iter().find(|k| s.has(k.1)) else {
            return Ok(());
        };
        if merged {
            let mut text = vec![];
            if let Some(inner) = s.get(new) {
                inner.write(&mut text);
            }
            let text = String::from_utf8(text).unwrap_or_default();
            s.put(new, Node::Made(text.clone()));
            if !flatten(s, old, &text, notes)? {
                gone.push(name.to_owned());
            }
            return Ok(());
        }
        let inner = s.take_obj(new)?.unwrap_or_default();
        *s = inner;
        s.rename("location", "in")?;
        s.put_first("type", Node::word(old));
        if !lower_flows(s, notes)? {
            gone.push(name.to_owned());
        }
        Ok(())
    })?;
    schemes.retain(|name, _| !gone.iter().any(|g| g == name));
    Ok(gone)
}

/// Puts the content of a v1.0 scheme beside it, as members of a v0.3 one. It is copied, since the text that is
/// opened here does not outlive this. False when nothing is left of an OAuth scheme.
fn flatten(s: &mut Obj<'_>, old: &'static str, text: &str, notes: &mut Notes<'_>) -> Result<bool> {
    let mut inner = Obj::open(text, &Form::FLAT, Limits::CHECKED)?;
    inner.rename("location", "in")?;
    if !lower_flows(&mut inner, notes)? {
        return Ok(false);
    }
    s.put("type", Node::word(old));
    for (key, node) in inner.members() {
        let mut value = vec![];
        node.write(&mut value);
        let value = String::from_utf8(value).unwrap_or_default();
        s.add(key.to_owned().into(), Node::Made(value))?;
    }
    Ok(true)
}

/// False when nothing is left of an OAuth scheme.
fn lower_flows(s: &mut Obj<'_>, notes: &mut Notes<'_>) -> Result<bool> {
    if !s.has("flows") {
        return Ok(true);
    }
    let mut left = true;
    s.within("flows", |f| {
        if f.take(NEW_FLOW).is_some() {
            notes.lose("oauth2", NEW_FLOW, "v0.3 does not have this flow");
        }
        f.within("authorizationCode", |c| {
            if c.take("pkceRequired").is_some() {
                notes.lose("oauth2", "pkceRequired", "v0.3 does not have it");
            }
            Ok(())
        })?;
        left = !f.is_empty();
        Ok(())
    })?;
    Ok(left)
}

/// `[{"name":["scope"]}]` to `securityRequirements`.
pub(super) fn lift_requirements(o: &mut Obj<'_>, list: &str, notes: &mut Notes<'_>) {
    let mut out = vec![];
    for requirement in
        serde_json::from_str::<Vec<std::collections::BTreeMap<String, Vec<String>>>>(list)
            .unwrap_or_else(|_| {
                notes.lose("card", "security", "it is no list of requirements");
                vec![]
            })
    {
        let schemes: serde_json::Map<_, _> = requirement
            .into_iter()
            .map(|(name, scopes)| (name, serde_json::json!({ "list": scopes })))
            .collect();
        out.push(serde_json::json!({ "schemes": schemes }));
    }
    o.put(
        "securityRequirements",
        Node::Made(Value::Array(out).to_string()),
    );
}

/// The other way, beside those of v1.0 where `keep`; requirements that name a scheme that is gone go with it.
pub(super) fn lower_requirements(o: &mut Obj<'_>, keep: bool, gone: &[String]) {
    let Some(node) = o.get("securityRequirements") else {
        return;
    };
    let mut text = vec![];
    node.write(&mut text);
    let mut all: Vec<Value> = serde_json::from_slice(&text).unwrap_or_default();
    all.retain(|requirement| {
        let schemes = requirement.get("schemes").and_then(Value::as_object);
        schemes.is_some_and(|s| !s.keys().any(|name| gone.contains(name)))
    });
    let old = all.iter().map(flat).collect();
    if !keep {
        o.take("securityRequirements");
    } else if !gone.is_empty() {
        let left = Value::Array(all).to_string();
        o.put("securityRequirements", Node::Made(left));
    }
    o.put("security", Node::Made(Value::Array(old).to_string()));
}

/// One requirement as v0.3 writes it.
fn flat(requirement: &Value) -> Value {
    let schemes = requirement.get("schemes").and_then(Value::as_object);
    let named = schemes.into_iter().flatten().map(|(name, scopes)| {
        let list = scopes.get("list").cloned();
        (name.clone(), list.unwrap_or_else(|| serde_json::json!([])))
    });
    Value::Object(named.collect())
}
