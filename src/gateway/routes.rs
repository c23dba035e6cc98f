//! Which agent a path belongs to. A route's parameters are whole segments, carried over as they were written,
//! so that nothing in them can act as a separator, a step up, or the start of a query.
use std::{
    fmt::Write as _,
    sync::{Arc, atomic::AtomicBool},
};

use http::uri::PathAndQuery;

use crate::{
    a2a::{self, Fault, Kind, Op},
    agent::Agent,
    config::{Config, Face, Like, Segment, Verb},
    policy::metadata::Rules,
    telemetry::Series,
};

/// One way to an agent.
pub(super) struct Route {
    /// What settings and records call it: its path, or `/` for the only agent of a gateway without routes.
    pub(super) name: Arc<str>,
    /// Where clients find it; empty for the only agent of a gateway without routes.
    template: Vec<Segment>,
    /// Where it is.
    target: Vec<Segment>,
    /// The target as it was written, where it has no parameters.
    plain: Option<Plain>,
    /// Scheme and host of it.
    pub(super) origin: String,
    /// Whether subscribing by GET is its way, as settings say or as it proved.
    pub(super) subscribe_by_get: AtomicBool,
    /// The connection to it.
    pub(super) agent: Arc<Agent>,
    /// The parameter that names one agent among those at this address.
    agent_parameter: Option<String>,
    /// What is written into the metadata of messages.
    pub(super) metadata: Option<Rules>,
    /// What its clients are used to.
    pub(super) face: a2a::Face,
    /// Of v0.3 over REST they write nothing but `ProtoJSON`.
    pub(super) proto_only: bool,
    /// They speak the plain protocol.
    pub(super) plain_face: bool,
    /// What its calls count.
    pub(super) series: Option<Arc<Series>>,
}

/// What is told as settings say: those of a face, and those of all.
pub(super) fn of_settings(face: &Face, config: &Config) -> a2a::Face {
    a2a::Face {
        product_errors: face.product_errors,
        v03_flat_errors: face.v03_flat_errors,
        v03_rest_no_history: !face.v03_rest_default_history,
        v03_rest_no_timestamp: !face.v03_rest_timestamp,
        one_not_found: config.ownership.is_on(),
    }
}

/// An address without parameters.
struct Plain {
    base: Arc<str>,
    scope: Arc<str>,
    /// What most calls are sent to, made once.
    usual: Vec<(&'static str, PathAndQuery)>,
}

impl Plain {
    fn new(origin: &str, base: &str) -> Self {
        let [send, stream] = [Op::Send, Op::Stream].map(|op| op.row().v10.rest.path);
        let made = ["", send, stream]
            .into_iter()
            .filter_map(|path| Some((path, target(base, path).ok()?)));
        Self {
            base: base.into(),
            scope: format!("{origin}{}", base.trim_end_matches('/')).into(),
            usual: made.collect(),
        }
    }
}

impl Route {
    /// The scope of its conversations with these parameters, which `fill` has found harmless, and the agent
    /// that is left out of it.
    fn scope(&self, values: &[&str]) -> (String, Option<Box<str>>) {
        let known = named(&self.template, values);
        let mut scope = self.origin.clone();
        let mut one = None;
        for segment in &self.target {
            let name = match segment {
                Segment::Literal(text) => {
                    let _infallible = write!(scope, "/{text}");
                    continue;
                }
                Segment::Parameter(name) => name,
            };
            let value = known
                .iter()
                .find(|(n, _)| *n == name)
                .map_or("", |(_, v)| v);
            let value = percent_encoding::percent_decode_str(value).decode_utf8_lossy();
            if self.agent_parameter.as_ref() == Some(name) {
                one = Some(value.into());
                scope.push_str("/\u{1}"); // no value has a control character: see `harmless`
            } else {
                let _infallible = write!(scope, "/{value}");
            }
        }
        (scope, one)
    }

    /// Where a call goes: the agent's base path, and a path below it.
    pub(super) fn place(&self, base: &str, path: &str) -> Result<PathAndQuery, Fault> {
        let usual = self.plain.iter().flat_map(|p| &p.usual);
        match usual.into_iter().find(|(known, _)| *known == path) {
            Some((_, made)) => Ok(made.clone()),
            None => target(base, path),
        }
    }
}

/// All ways to agents.
pub(super) struct Routes {
    /// The path of the public URL, without a slash at its end: taken off where a request has it.
    prefix: String,
    all: Vec<Arc<Route>>,
}

/// A path, matched.
pub(super) struct Matched<'p> {
    /// The route.
    pub(super) route: Arc<Route>,
    /// The agent's base path, filled in.
    pub(super) base: Arc<str>,
    /// The public path of the agent, filled in, below the public URL.
    pub(super) public: &'p str,
    /// What is left below that.
    pub(super) rest: &'p str,
    /// The agent's address, without what names one agent among others: conversations are held apart within it.
    pub(super) scope: Arc<str>,
    /// The one agent among those.
    pub(super) one: Option<Box<str>>,
}

impl Matched<'_> {
    /// What stands in the path for a parameter.
    pub(super) fn parameter(&self, name: &str) -> Option<String> {
        let template = &self.route.template;
        let (_, _, values) = fits(template, self.public)?;
        let all = named(template, &values);
        let (_, value) = all.into_iter().find(|(known, _)| *known == name)?;
        let value = percent_encoding::percent_decode_str(value).decode_utf8();
        value.ok().map(Into::into)
    }
}

impl Routes {
    /// `series` gives a route's numbers by its name, `agents` the connection for a scheme and authority.
    pub(super) fn new<E>(
        config: &Config,
        series: impl Fn(&str) -> Option<Arc<Series>>,
        mut agents: impl FnMut(&str) -> Result<Arc<Agent>, E>,
    ) -> Result<Self, E> {
        let mut all = vec![];
        let rules = |said: &[_], face: &Face| {
            Rules::with(said, &face.require_metadata, &config.backend.metadata)
        };
        let by_get = config.backend.subscribe_verb == Verb::Get;
        for r in &config.routes {
            let origin = format!("{}://{}", r.backend.scheme, r.backend.authority);
            let name: Arc<str> = r.path.to_string().into();
            all.push(Arc::new(Route {
                series: series(&name),
                name,
                template: r.path.segments().to_vec(),
                target: r.backend.path.segments().to_vec(),
                plain: None,
                agent: agents(&origin)?,
                agent_parameter: r.agent_parameter.clone(),
                metadata: rules(&r.metadata, &r.face),
                face: of_settings(&r.face, config),
                proto_only: r.face.v03_rest_proto_only,
                plain_face: r.face.like == Like::A2a,
                origin,
                subscribe_by_get: AtomicBool::new(by_get),
            }));
        }
        // Literal segments before parameters: the most particular route wins.
        all.sort_by_key(|r| {
            let literal = |s: &Segment| matches!(s, Segment::Literal(_));
            std::cmp::Reverse((
                r.template.len(),
                r.template.iter().filter(|s| literal(s)).count(),
            ))
        });
        if let Some(url) = &config.backend.url {
            let origin = format!("{}://{}", url.scheme(), url.authority());
            all.push(Arc::new(Route {
                series: series("/"),
                name: "/".into(),
                template: vec![],
                target: vec![],
                plain: Some(Plain::new(&origin, url.path())),
                agent: agents(&origin)?,
                agent_parameter: None,
                metadata: rules(&config.metadata, &config.face),
                face: of_settings(&config.face, config),
                proto_only: config.face.v03_rest_proto_only,
                plain_face: config.face.like == Like::A2a,
                origin,
                subscribe_by_get: AtomicBool::new(by_get),
            }));
        }
        let prefix = config.public_url.as_ref().map_or("", |u| u.path());
        Ok(Self {
            prefix: prefix.trim_end_matches('/').to_owned(),
            all,
        })
    }

    /// The agent that a path belongs to.
    pub(super) fn find<'p>(&self, path: &'p str) -> Result<Matched<'p>, Fault> {
        let path = below(path, &self.prefix).unwrap_or(path);
        for route in &self.all {
            if let Some((public, rest, values)) = fits(&route.template, path) {
                let (base, scope, one) = if let Some(plain) = &route.plain {
                    (plain.base.clone(), plain.scope.clone(), None)
                } else {
                    let base = fill(&route.target, &route.template, &values)?.into();
                    let (scope, one) = route.scope(&values);
                    (base, scope.into(), one)
                };
                return Ok(Matched {
                    route: route.clone(),
                    base,
                    public,
                    rest,
                    scope,
                    one,
                });
            }
        }
        Err(Fault::new(Kind::NoRoute, "there is no agent at this path"))
    }

    /// Every agent that is connected to.
    pub(super) fn agents(&self) -> impl Iterator<Item = &Arc<Agent>> {
        self.all.iter().map(|r| &r.agent)
    }
}

/// What follows a prefix of whole segments.
fn below<'p>(path: &'p str, prefix: &str) -> Option<&'p str> {
    let rest = path.strip_prefix(prefix)?;
    (rest.is_empty() || rest.starts_with('/')).then_some(rest)
}

/// The public path, what is below it, and the parameters' values, if the path begins as the template says.
fn fits<'p>(template: &[Segment], path: &'p str) -> Option<(&'p str, &'p str, Vec<&'p str>)> {
    let mut rest = path;
    let mut values = vec![];
    for segment in template {
        let after = rest.strip_prefix('/')?;
        let end = after.find('/').unwrap_or(after.len());
        let given = &after[..end];
        match segment {
            Segment::Literal(text) if text != given => return None,
            Segment::Literal(_) => {}
            Segment::Parameter(_) if given.is_empty() => return None,
            Segment::Parameter(_) => values.push(given),
        }
        rest = &after[end..];
    }
    let public = &path[..path.len() - rest.len()];
    Some((public, rest, values))
}

/// The target with the parameters' values. They stay percent-encoded as they came; what a server could take
/// for more than one plain segment is refused.
fn fill(target: &[Segment], template: &[Segment], values: &[&str]) -> Result<String, Fault> {
    let known = named(template, values);
    let mut path = String::new();
    for segment in target {
        match segment {
            Segment::Literal(text) => {
                let _infallible = write!(path, "/{text}");
            }
            Segment::Parameter(name) => {
                let value = known.iter().find(|(n, _)| *n == name);
                let value = value.map_or("", |(_, v)| v);
                if !harmless(value) {
                    return Err(Fault::new(
                        Kind::NoRoute,
                        "a parameter of the path is not one plain segment",
                    ));
                }
                let _infallible = write!(path, "/{value}");
            }
        }
    }
    Ok(path)
}

/// The parameters of a template, with their values.
fn named<'a>(template: &'a [Segment], values: &[&'a str]) -> Vec<(&'a String, &'a str)> {
    let names = template.iter().filter_map(|s| match s {
        Segment::Parameter(name) => Some(name),
        Segment::Literal(_) => None,
    });
    names.zip(values.iter().copied()).collect()
}

fn harmless(value: &str) -> bool {
    let Ok(text) = percent_encoding::percent_decode_str(value).decode_utf8() else {
        return false;
    };
    let dots = !text.is_empty() && text.bytes().all(|c| c == b'.');
    let control = text.bytes().any(|c| c < 0x20 || c == 0x7f);
    !dots && !control && !text.contains(['/', '\\', '?', '#', '%', ';'])
}

/// A path for the agent. What the parts were made from was checked, so that this does not fail.
pub(super) fn target(base: &str, path: &str) -> Result<PathAndQuery, Fault> {
    let whole = match (base, path) {
        ("", "") => "/".to_owned(),
        (base, "") => base.to_owned(),
        (base, path) => format!("{}{path}", base.trim_end_matches('/')),
    };
    PathAndQuery::try_from(whole).map_err(|e| {
        Fault::new(Kind::Internal, "the agent's address is not usable").because(e.to_string())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        agent::{Origin, Room, Settings},
        config::Overrides,
    };

    fn routes(yaml: &str) -> Routes {
        let config = Config::parse(yaml, Overrides::default()).unwrap();
        Routes::new(
            &config,
            |_| None,
            |origin| {
                let settings = Settings::new(Origin::parse(origin)?.0);
                Agent::new(&settings, Room::new(&settings)).map(Arc::new)
            },
        )
        .unwrap()
    }

    const YAML: &str = "
public_url: https://agents.example.com/pub
backend: {url: 'http://one.test/base'}
routes:
  - {path: '/ws/{w}/agents/{a}/a2a', backend: 'http://two.test/x/{a}/of/{w}/a2a'}
  - {path: '/ws/main/agents/{a}/a2a', backend: 'http://two.test/main/{a}'}
";

    fn at(routes: &Routes, path: &str) -> Option<(String, String, String)> {
        let m = routes.find(path).ok()?;
        Some((m.base.to_string(), m.public.to_owned(), m.rest.to_owned()))
    }

    #[test]
    fn a_path_finds_its_agent() {
        let routes = routes(YAML);
        let found = |path, base: &str, public: &str, rest: &str| {
            let said = Some((base.to_owned(), public.to_owned(), rest.to_owned()));
            assert_eq!(at(&routes, path), said, "{path}");
        };
        found(
            "/ws/w1/agents/a%201/a2a/v1/message:send",
            "/x/a%201/of/w1/a2a",
            "/ws/w1/agents/a%201/a2a",
            "/v1/message:send",
        );
        found(
            "/pub/ws/w1/agents/a1/a2a",
            "/x/a1/of/w1/a2a",
            "/ws/w1/agents/a1/a2a",
            "",
        );
        found(
            "/ws/main/agents/a1/a2a/",
            "/main/a1",
            "/ws/main/agents/a1/a2a",
            "/",
        );
        found("/pub/tasks/t", "/base", "", "/tasks/t");
        found("/public", "/base", "", "/public");
    }

    #[test]
    fn no_parameter_leaves_its_place() {
        let routes = routes(YAML);
        for bad in [
            "..", ".", "%2e%2E", "a%2Fb", "a%5Cb", "a%3Fb", "a%23b", "a%252Fb", "%00", "a;b",
        ] {
            let path = format!("/ws/{bad}/agents/a1/a2a");
            assert_eq!(at(&routes, &path), None, "{bad}");
        }
    }

    #[test]
    fn no_parameter_can_stand_for_all_agents() {
        let routes = routes(
            "
routes:
  - {path: '/one/{w}/{a}', backend: 'http://two.test/{w}/{a}', agent_parameter: a}
  - {path: '/any/{w}/{a}', backend: 'http://two.test/{w}/{a}'}
",
        );
        let scope = |path: &str| {
            let found = routes.find(path).ok()?;
            Some((found.scope.to_string(), found.one))
        };
        let (all, one) = scope("/one/w/red").unwrap();
        assert_eq!(one.as_deref(), Some("red"));
        assert_eq!(scope("/one/w/blue").unwrap().0, all);
        for value in ["red", "%7B%7D", "{}", "*"] {
            let (alone, none) = scope(&format!("/any/w/{value}")).unwrap();
            assert_ne!(alone, all, "{value}");
            assert_eq!(none, None);
        }
        assert!(scope("/any/w/%01").is_none());
    }

    #[test]
    fn the_agent_s_path_is_joined_once() {
        for (base, path, whole) in [
            ("", "", "/"),
            ("/", "", "/"),
            ("/rpc/", "", "/rpc/"),
            ("/base/", "/message:send", "/base/message:send"),
            ("", "/tasks/t?historyLength=1", "/tasks/t?historyLength=1"),
        ] {
            assert_eq!(target(base, path).unwrap(), whole);
        }
    }
}
