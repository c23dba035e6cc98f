//! Whether a call may go on: its conversation is taken, and where somebody else has it, the agent is asked.
use std::{
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use http::HeaderMap;

use super::{Inner, Peer, exchange::Exchange, greet::Met, routes::Matched};
use crate::{
    a2a::{
        Call, Fault, Kind, Op,
        answer::{self, Seen},
        reply::ReplyTo,
        request,
        shape::State,
    },
    policy::{
        auth::passing::CREDENTIALS,
        conversation::{Care, Evidence, LONGEST_CONTEXT, Question, Wanted},
        owner::Owner,
    },
    state::slot::Asker,
};

/// A context's tasks are looked through up to so many pages; a longer list proves nothing.
const PAGES: usize = 5;
/// How long the agent may take to say which context a task is of.
const PATIENCE: Duration = Duration::from_secs(2);

impl Inner {
    /// Who sends a message: its owner, else a caller who is known, else as the agent can tell. Everybody else is asked
    /// for by nobody, and is not told apart.
    pub(super) fn sender(
        &self,
        call: &Call,
        matched: &Matched<'_>,
        owner: Option<&Owner>,
        met: &Met,
        fields: &HeaderMap,
        peer: &Peer,
    ) -> Asker {
        let remembered = self.conversations.on() || self.retries.on() || matched.one.is_some();
        if !call.op.sends() || !remembered {
            return Asker::anonymous(0);
        }
        let known = owner.map(Owner::asker).or_else(|| met.asker());
        known.unwrap_or_else(|| asker(fields, peer))
    }

    /// What the call has to do with its conversation, once it may go on.
    pub(super) async fn take_slot(
        self: &Arc<Self>,
        call: &mut Call,
        matched: &Matched<'_>,
        scope: &Arc<str>,
        fields: &HeaderMap,
        asker: Asker,
        to: &mut ReplyTo,
    ) -> Result<Care, Fault> {
        if !self.conversations.on() && matched.one.is_none() {
            return Ok(Care::Nothing);
        }
        match call.op {
            Op::Send | Op::Stream => {
                let asking = Asking {
                    gateway: self,
                    matched,
                    fields,
                    tenant: call.facts.tenant.clone(),
                };
                self.admit_message(call, scope, asker, to, asking).await
            }
            Op::Get | Op::Cancel | Op::Subscribe if self.conversations.on() => {
                let task = call.facts.task.as_deref().unwrap_or_default();
                let replays = call.op == Op::Subscribe;
                let watch = self.conversations.watch(scope, task, replays);
                let watch = Box::pin(watch).await;
                Ok(watch.map_or(Care::Nothing, |watch| Care::Watch(Box::new(watch))))
            }
            Op::Get
            | Op::Cancel
            | Op::Subscribe
            | Op::List
            | Op::CreatePush
            | Op::GetPush
            | Op::ListPush
            | Op::DeletePush
            | Op::ExtendedCard => Ok(Care::Nothing),
        }
    }

    async fn admit_message(
        self: &Arc<Self>,
        call: &mut Call,
        scope: &Arc<str>,
        asker: Asker,
        to: &mut ReplyTo,
        asking: Asking<'_>,
    ) -> Result<Care, Fault> {
        let context = &call.facts.context;
        if context.as_ref().is_some_and(|c| c.len() > LONGEST_CONTEXT) {
            return Err(Fault::params("`contextId` is longer than 1024 bytes"));
        }
        if let Some(task) = call.facts.task.clone() {
            let of_task = self.context_of(scope, &task, context.is_none(), &asking);
            match (Box::pin(of_task).await?, context) {
                (Some(known), Some(given)) if *known != **given => {
                    return Err(Fault::params(
                        "`taskId` belongs to another context than `contextId`",
                    ));
                }
                (Some(known), None) if self.conversations.fills() => {
                    request::fill_context(call, &known, &self.options)?;
                    to.context = Some(known.into());
                }
                (Some(known), None) => call.facts.context = Some(known.into()),
                (Some(_) | None, _) => {}
            }
        }
        let wanted = Wanted {
            scope: scope.clone(),
            context: call.facts.context.clone(),
            task: call.facts.task.clone(),
            asker,
            agent: asking.matched.one.clone(),
            bytes: call.params.text().len(),
        };
        if wanted.agent.is_some() {
            Box::pin(self.conversations.bind(&wanted)).await?;
        }
        if !self.conversations.on() {
            return Ok(Care::Nothing);
        }
        let slot = self
            .conversations
            .admit(wanted, |question| asking.ask(question));
        Ok(Care::Slot(Box::new(slot.await?)))
    }

    /// The context of a task: as replies have shown it, else, if need be, as the agent says.
    async fn context_of(
        &self,
        scope: &str,
        task: &str,
        needed: bool,
        asking: &Asking<'_>,
    ) -> Result<Option<Box<str>>, Fault> {
        let known = self.conversations.context_of(scope, task).await;
        if known.is_some() || !needed {
            return Ok(known);
        }
        let seen = tokio::time::timeout(PATIENCE, asking.task(task)).await;
        let late = |_| {
            Fault::new(
                Kind::BackendTimeout,
                "the agent does not say which context the task is of",
            )
        };
        let seen = match seen.map_err(late)? {
            Ok(seen) => seen,
            // The message cannot resume what is not there, and the agent says best what is wrong with it.
            Err(fault) if fault.kind == Kind::TaskNotFound || lacks(&fault) => return Ok(None),
            Err(fault) => return Err(fault),
        };
        if let Some(context) = &seen.named.context {
            self.conversations.learn(scope, task, context);
        }
        Ok(seen.named.context)
    }

    /// Whether a stream goes on when its client has left.
    pub(super) fn follows_stream(&self, op: Op) -> bool {
        self.backend.follow_streams && op.sends()
    }
}

/// What is needed to ask the agent as the caller.
struct Asking<'a> {
    gateway: &'a Arc<Inner>,
    matched: &'a Matched<'a>,
    fields: &'a HeaderMap,
    tenant: Option<String>,
}

impl Asking<'_> {
    /// Puts a question to the agent. What it does not answer proves nothing.
    async fn ask(&self, question: Question) -> Evidence {
        let answered = match &question {
            Question::Task(task) => self.state_of(task).await,
            Question::Tasks(context) => self.running(context).await,
        };
        tracing::debug!(?question, ?answered, "asked the agent about a conversation");
        answered.unwrap_or_else(|fault| {
            if fault.kind == Kind::TaskNotFound {
                Evidence::NotFound
            } else if lacks(&fault) {
                Evidence::Unsupported
            } else {
                Evidence::Nothing
            }
        })
    }

    async fn state_of(&self, task: &str) -> Result<Evidence, Fault> {
        let seen = self.task(task).await?;
        Ok(match seen.state {
            Some(State::Terminal) => Evidence::Terminal,
            Some(State::Interrupted) => Evidence::Interrupted,
            Some(State::Running) => Evidence::Running(task.into()),
            None => Evidence::Nothing,
        })
    }

    async fn task(&self, task: &str) -> Result<Seen, Fault> {
        let text = self
            .answer(request::ask_task(task, self.tenant.as_deref()))
            .await?;
        answer::task_seen(self.gateway.dialect, &text, &self.gateway.options)
    }

    async fn running(&self, context: &str) -> Result<Evidence, Fault> {
        let mut page = None;
        for _ in 0..PAGES {
            let call = request::ask_tasks(context, self.tenant.as_deref(), page.as_deref());
            let text = self.answer(call).await?;
            let found = answer::running_task(self.gateway.dialect, &text, &self.gateway.options)?;
            match found {
                (Some(task), _) => return Ok(Evidence::Running(task)),
                (None, None) => return Ok(Evidence::NoTask),
                (None, next) => page = next,
            }
        }
        Ok(Evidence::Nothing)
    }

    async fn answer(&self, call: Call) -> Result<Bytes, Fault> {
        let Matched { route, base, .. } = self.matched;
        let mut exchange = Exchange::ours(self.gateway, route, base, self.fields, call);
        exchange.ask_only().await
    }
}

/// Whether the agent has no such operation.
fn lacks(fault: &Fault) -> bool {
    matches!(
        fault.kind,
        Kind::UnsupportedOperation | Kind::MethodNotFound | Kind::NoRoute | Kind::WrongVerb
    ) || matches!(
        fault.kind,
        Kind::Foreign {
            status: 404 | 405 | 501,
            ..
        }
    )
}

/// Who sends a message, as far as the agent can tell: by a credential, else by where it comes from.
fn asker(fields: &HeaderMap, peer: &Peer) -> Asker {
    let mut hash = DefaultHasher::new(); // without a key of its own: replicas must agree
    let mut known = false;
    for name in CREDENTIALS {
        for value in fields.get_all(&name) {
            known = true;
            name.hash(&mut hash);
            value.as_bytes().hash(&mut hash);
        }
    }
    if known {
        return Asker::known(hash.finish());
    }
    peer.addr.ip().hash(&mut hash);
    Asker::anonymous(hash.finish())
}
