//! What depends on who asks: whose tasks and contexts a call may name, what is written into its metadata, and the list
//! of the tasks that are the caller's.
use std::sync::Arc;

use http::{HeaderMap, Response, StatusCode};

use super::{Inner, again::Admitted, at_once, exchange::Exchange, routes::Matched};
use crate::{
    a2a::{
        Dialect, Fault, Op,
        answer::{self, Public, TaskPage},
        reply::{Framing, ReplyTo},
        request::{self, Paging, Read},
    },
    policy::{
        caller::Caller,
        owner::{Owner, page::Place},
    },
    reply::Reply,
    state::slot::Asker,
};

/// So many pages of the agent are looked through for one of the caller's.
const PAGES: usize = 10;
/// What a page holds where nobody says how much (v1.0 3.1.4), and the least that the agent is asked for: most of it may
/// be others'.
const USUAL: u64 = 50;
/// What a page may hold.
const MOST: u64 = 100;

impl Inner {
    /// The owner that the call is for, where anything belongs to anybody; refused if it names what is another's, or
    /// its metadata is not as the rules want it.
    pub(super) async fn mind(
        &self,
        read: &mut Read,
        matched: &Matched<'_>,
        caller: &Caller,
    ) -> Result<Option<Box<Owner>>, Fault> {
        let card = read.call.op == Op::ExtendedCard;
        if card && self.owners.on() {
            let known = self.owners.of(caller, &matched.scope);
            known.map_err(|fault| self.auth.challenges(fault))?; // it belongs to nobody, but is not for strangers
        }
        let keeps = self.owners.on() && !card;
        let owner = if keeps {
            let owner = self.owner(read, matched, caller);
            let owner = if self.owners.wait() {
                Box::pin(owner).await?
            } else {
                at_once(owner)?
            };
            Some(Box::new(owner)) // most calls have none
        } else {
            None
        };
        match read.unedited.take() {
            Some(fault) => Err(*fault),
            None => Ok(owner),
        }
    }

    async fn owner(
        &self,
        read: &Read,
        matched: &Matched<'_>,
        caller: &Caller,
    ) -> Result<Owner, Fault> {
        let owner = self.owners.of(caller, &matched.scope);
        let mut owner = owner.map_err(|fault| self.auth.challenges(fault))?;
        let call = &read.call;
        let (tasks, context) = match call.op {
            Op::Send | Op::Stream => (
                request::tasks_named(call, &self.options)?,
                call.facts.context.as_deref(),
            ),
            Op::Get
            | Op::Cancel
            | Op::Subscribe
            | Op::CreatePush
            | Op::GetPush
            | Op::ListPush
            | Op::DeletePush => (call.facts.task.iter().cloned().collect(), None),
            Op::List | Op::ExtendedCard => (vec![], None), // what it shows is looked at
        };
        owner.may_name(&tasks, context).await?;
        Ok(owner)
    }

    /// What the call owes, once it may go on; what its answer tells of will be its owner's. The context that a message
    /// names is so before anybody waits, or asks the agent, for it.
    pub(super) async fn admit_for(
        self: &Arc<Self>,
        mut owner: Option<Box<Owner>>,
        read: &mut Read,
        matched: &Matched<'_>,
        fields: &HeaderMap,
        asker: Asker,
        to: &mut ReplyTo,
    ) -> Result<Admitted, Fault> {
        let op = read.call.op;
        if let Some(owner) = &mut owner
            && op.sends()
        {
            if self.owners.wait() {
                Box::pin(owner.takes()).await?;
            } else {
                at_once(owner.takes())?;
            }
        }
        let scope = match &owner {
            Some(owner) => owner.apart(),
            None => &matched.scope,
        };
        let mut admitted = self.admit(read, matched, scope, fields, asker, to).await?;
        let Some(owner) = owner else {
            return Ok(admitted);
        };
        let claims = owner.claims(op, &read.call);
        let claims = if self.owners.wait() {
            Box::pin(claims).await
        } else {
            at_once(claims)
        };
        match claims {
            Ok(claims) => {
                admitted.permit.owner = Some(Box::new(claims));
                Ok(admitted)
            }
            Err(fault) => {
                admitted.permit.failed(&fault, false).done().await;
                Err(fault)
            }
        }
    }
}

/// A page that is being filled.
struct Filling {
    /// The tasks, as canonical text.
    tasks: Vec<Vec<u8>>,
    bytes: usize,
    wanted: usize,
    /// It may hold so many bytes.
    room: usize,
}

impl Filling {
    /// Takes the owner's tasks of a page, from `skip` on. Gives the place of the first that does not fit.
    fn fill(&mut self, page: &mut TaskPage, seen: &[bool], skip: usize) -> Option<usize> {
        for (at, task) in page.tasks.iter_mut().enumerate().skip(skip) {
            if !seen[at] {
                continue;
            }
            let none = self.tasks.is_empty();
            if self.tasks.len() >= self.wanted || !none && self.bytes + task.text.len() > self.room
            {
                return Some(at);
            }
            self.bytes += task.text.len();
            self.tasks.push(std::mem::take(&mut task.text));
        }
        None
    }
}

impl Exchange {
    /// The tasks of the caller: pages of the agent without what is others'. `totalSize` counts what has been found of
    /// them so far, and is exact on the last page; to count all, all that the agent has would have to be read.
    pub(super) async fn owned_list(&mut self, owner: Owner) -> Result<Response<Reply>, Fault> {
        let options = self.gateway.options.clone();
        let asked = request::paging(&self.call, &options)?;
        let tokens = owner.tokens().await?;
        let mut place = match &asked.token {
            Some(token) => {
                let place = tokens.open(token);
                place.ok_or_else(|| Fault::params("`pageToken` is not one of yours"))?
            }
            None => Place::default(),
        };
        let told = place.told;
        let (page, wanted) = self.fill_page(&owner, &asked, &mut place).await?;
        let found = u32::try_from(page.len()).unwrap_or(u32::MAX);
        let told = told.saturating_add(found);
        let next = if place == Place::default() {
            String::new()
        } else {
            place.told = told;
            tokens.seal(&place)?
        };
        let text = answer::task_page(&page, &next, wanted, told.into());
        drop(page);
        let document =
            answer::document(&self.to, Dialect::R10, Op::List, &text, &NO_CARD, &options);
        let mut document = document?;
        self.lost.append(&mut document.lost);
        let (head, ()) = Response::new(()).into_parts();
        Ok(self.respond(head, Framing::Json, StatusCode::OK, document.body))
    }

    /// The owner's tasks from `place` on, which becomes where the rest is: the default where there is none.
    async fn fill_page(
        &mut self,
        owner: &Owner,
        asked: &Paging,
        place: &mut Place,
    ) -> Result<(Vec<Vec<u8>>, u64), Fault> {
        let (gateway, call) = (self.gateway.clone(), self.call.clone());
        let fits = asked.size.filter(|size| (1..=MOST).contains(size)); // else the agent says what it thinks of it
        let size = fits.map(|size| size.max(USUAL));
        let wanted = fits.unwrap_or(USUAL);
        let mut filling = Filling {
            tasks: vec![],
            bytes: 0,
            wanted: usize::try_from(wanted).unwrap_or(usize::MAX),
            room: gateway.limits.response,
        };
        for _ in 0..PAGES {
            let token = place.token.as_deref();
            self.call.params = request::list_page(&call, token, size, &gateway.options)?;
            let text = self.ask_only().await?;
            let mut page = answer::tasks_listed(gateway.dialect, &text, &gateway.options)?;
            let seen = owner.sees_which(page.tasks.iter().map(|t| &*t.id)).await?;
            let skip = usize::try_from(place.skip).unwrap_or(usize::MAX);
            if let Some(at) = filling.fill(&mut page, &seen, skip) {
                place.skip = u32::try_from(at).unwrap_or(u32::MAX);
                return Ok((filling.tasks, wanted));
            }
            *place = Place {
                token: page.next,
                ..Place::default()
            };
            self.hold.resize(filling.bytes);
            if place.token.is_none() {
                break;
            }
            if filling.tasks.len() >= filling.wanted {
                break;
            }
        }
        Ok((filling.tasks, wanted))
    }
}

/// A list has no card in it.
const NO_CARD: Public = Public {
    interfaces: vec![],
    push: false,
    security: None,
};
