//! Two owners and one store.
use std::time::Duration;

use super::*;
use crate::{
    a2a::{
        Facts,
        answer::{Named, Seen},
        request,
    },
    config,
    state::{
        memory::{self, Memory},
        owner,
        slot::Times,
    },
};

fn owners(settings: Ownership) -> Owners {
    let memory = Memory::new(memory::Settings {
        times: Times {
            lease: None,
            settle: Duration::from_secs(5),
            max_hold: Duration::from_hours(1),
        },
        slots: 10,
        tasks: 10,
        bindings: 10,
        binding_ttl: Duration::from_hours(1),
        messages: 10,
        message_ttl: Duration::from_hours(1),
        owners: owner::Settings::default(),
    });
    let store = Store::Memory(memory.into());
    Owners::new(
        settings,
        Conversations::new(config::Conversation::default(), store),
    )
}

fn by(by: OwnedBy) -> Owners {
    owners(Ownership {
        by,
        ..Ownership::default()
    })
}

fn caller(name: &str, tenant: Option<&str>) -> Caller {
    Caller {
        name: name.into(),
        tenant: tenant.map(Into::into),
        verified: true,
        ..Caller::default()
    }
}

fn of(owners: &Owners, name: &str, tenant: Option<&str>) -> Owner {
    owners.of(&caller(name, tenant), &"agent".into()).unwrap()
}

/// A message that names these.
fn message(task: Option<&str>, context: Option<&str>) -> Call {
    let mut call = request::ask_tasks("", None, None);
    call.op = Op::Send;
    call.facts = Facts {
        task: task.map(Into::into),
        context: context.map(Into::into),
        ..Facts::default()
    };
    call
}

fn answer(task: Option<&str>, context: Option<&str>) -> Seen {
    Seen {
        named: Named {
            task: task.map(Into::into),
            context: context.map(Into::into),
        },
        ..Seen::default()
    }
}

/// A message goes out and is answered so.
async fn sends(mut owner: Owner, named: (Option<&str>, Option<&str>), told: &Seen) -> Claims {
    let tasks: Vec<String> = named.0.into_iter().map(str::to_owned).collect();
    owner.may_name(&tasks, named.1).await.unwrap();
    owner.takes().await.unwrap();
    let call = message(named.0, named.1);
    let mut claims = owner.claims(Op::Send, &call).await.unwrap();
    claims.goes_out();
    claims.seen(told).done().await;
    claims
}

async fn may(mut owner: Owner, task: Option<&str>, context: Option<&str>) -> Option<Kind> {
    let tasks: Vec<String> = task.into_iter().map(str::to_owned).collect();
    owner
        .may_name(&tasks, context)
        .await
        .err()
        .map(|fault| fault.kind)
}

#[tokio::test]
async fn what_is_made_is_its_maker_s_alone() {
    let all = by(OwnedBy::Caller);
    let (ann, bob) = (of(&all, "key:ann", None), of(&all, "key:bob", None));
    let told = answer(Some("t1"), Some("c1"));
    let claims = sends(ann.clone(), (None, None), &told).await;
    assert!(claims.objection().is_none());
    assert_eq!(may(ann.clone(), Some("t1"), Some("c1")).await, None);
    let hidden = Some(Kind::TaskNotFound);
    assert_eq!(may(bob.clone(), Some("t1"), None).await, hidden);
    assert_eq!(may(bob.clone(), Some("t1"), Some("c1")).await, hidden);
    let foreign = may(bob.clone(), None, Some("c1")).await;
    assert_eq!(foreign, Some(Kind::InvalidParams));
    // What is not there looks the same.
    assert_eq!(may(bob, Some("none"), None).await, hidden);
    // Elsewhere the same names are others.
    let elsewhere = all.of(&caller("key:bob", None), &"other".into()).unwrap();
    assert_eq!(may(elsewhere, None, Some("c1")).await, None);
}

#[tokio::test]
async fn a_tenant_shares_what_its_callers_make() {
    for (setting, shared) in [(OwnedBy::Tenant, true), (OwnedBy::Caller, false)] {
        let all = by(setting);
        let ann = of(&all, "key:ann", Some("blue"));
        sends(ann, (None, None), &answer(Some("t1"), None)).await;
        let colleague = of(&all, "key:cid", Some("blue"));
        assert_eq!(may(colleague, Some("t1"), None).await.is_none(), shared);
        let other = of(&all, "key:bob", Some("red"));
        assert!(may(other, Some("t1"), None).await.is_some());
    }
}

#[tokio::test]
async fn no_name_of_a_caller_is_one_of_a_tenant() {
    let all = by(OwnedBy::Tenant);
    sends(
        of(&all, "key:ann", Some("blue")),
        (None, None),
        &answer(Some("t1"), None),
    )
    .await;
    assert!(
        may(of(&all, "blue", None), Some("t1"), None)
            .await
            .is_some()
    );
    let alone = of(&all, "key:ann", None);
    assert!(may(alone, Some("t1"), None).await.is_some());
}

#[test]
fn who_is_only_believed_to_be_there_owns_nothing() {
    for setting in [OwnedBy::Tenant, OwnedBy::Caller] {
        let believed = Caller {
            verified: false,
            ..caller("peer:127.0.0.1", Some("blue"))
        };
        let refused = by(setting).of(&believed, &"agent".into());
        let kind = refused.err().map(|fault| fault.kind);
        assert_eq!(kind, Some(Kind::Unauthenticated));
    }
}

#[tokio::test]
async fn what_nobody_has_is_refused_or_everybody_s() {
    let all = owners(Ownership {
        by: OwnedBy::Caller,
        unknown: OfUnknown::Allow,
        ..Ownership::default()
    });
    let (ann, bob) = (of(&all, "key:ann", None), of(&all, "key:bob", None));
    assert_eq!(may(ann.clone(), Some("old"), None).await, None);
    // To resume one is not to have it.
    let told = answer(Some("old"), Some("c-old"));
    sends(ann.clone(), (Some("old"), None), &told).await;
    assert_eq!(may(bob.clone(), Some("old"), None).await, None);
    sends(ann, (None, None), &answer(Some("new"), None)).await;
    let hidden = Some(Kind::TaskNotFound);
    assert_eq!(may(bob, Some("new"), None).await, hidden);
}

#[tokio::test]
async fn a_context_is_whose_message_comes_first() {
    let all = by(OwnedBy::Caller);
    let (mut ann, mut bob) = (of(&all, "key:ann", None), of(&all, "key:bob", None));
    ann.may_name(&[], Some("c1")).await.unwrap();
    bob.may_name(&[], Some("c1")).await.unwrap();
    assert!(bob.takes().await.is_ok());
    // Before its message waits for anything, or anything is asked for it.
    let late = ann.takes().await.err().unwrap();
    assert_eq!(late.kind, Kind::InvalidParams);
    assert_ne!(ann.apart(), bob.apart(), "nobody waits for another's");
}

/// A message that names a new context goes so far.
async fn names(all: &Owners, context: &str) -> Owner {
    let mut owner = of(all, "key:ann", None);
    owner.may_name(&[], Some(context)).await.unwrap();
    owner.takes().await.unwrap();
    owner
}

#[tokio::test]
async fn a_context_is_nobody_s_again_if_its_message_never_began() {
    let all = by(OwnedBy::Caller);
    let bob = of(&all, "key:bob", None);
    let taken = Some(Kind::InvalidParams);
    let refused = Fault::params("the agent wants another");
    let lost = Fault::new(Kind::BackendBroken, "nobody knows");

    // It did not go out.
    let owner = names(&all, "c1").await;
    assert_eq!(may(bob.clone(), None, Some("c1")).await, taken);
    drop(owner);
    assert_eq!(may(bob.clone(), None, Some("c1")).await, None);
    for (n, (fault, began)) in [(None, true), (Some(refused), false), (Some(lost), true)]
        .into_iter()
        .enumerate()
    {
        let context = format!("c-{n}");
        let call = message(None, Some(&context));
        let owner = names(&all, &context).await;
        let claims = owner.claims(Op::Send, &call).await.unwrap();
        claims.goes_out();
        if let Some(fault) = fault {
            claims.failed(&fault, true);
        }
        drop(claims);
        let foreign = may(bob.clone(), None, Some(&context)).await;
        assert_eq!(foreign.is_some(), began, "{n}");
    }
}

#[tokio::test]
async fn a_context_that_two_messages_name_lasts_if_one_of_them_goes_out() {
    let all = by(OwnedBy::Caller);
    let (first, second) = (names(&all, "c1").await, names(&all, "c1").await);
    let call = message(None, Some("c1"));
    second.claims(Op::Send, &call).await.unwrap().goes_out();
    drop(first);
    let taken = Some(Kind::InvalidParams);
    assert_eq!(
        may(of(&all, "key:bob", None), None, Some("c1")).await,
        taken
    );
}

#[tokio::test]
async fn who_makes_many_takes_nothing_from_others() {
    let all = by(OwnedBy::Caller);
    let (ann, bob) = (of(&all, "key:ann", None), of(&all, "key:bob", None));
    sends(
        ann.clone(),
        (None, Some("c-ann")),
        &answer(Some("t-ann"), Some("c-ann")),
    )
    .await;
    for n in 0..2000 {
        let (task, context) = (format!("t{n}"), format!("c{n}"));
        let told = answer(Some(&task), Some(&context));
        sends(bob.clone(), (None, Some(&context)), &told).await;
    }
    assert_eq!(may(ann.clone(), Some("t-ann"), Some("c-ann")).await, None);
    let taken = Some(Kind::InvalidParams);
    assert_eq!(may(bob, None, Some("c-ann")).await, taken);
}

#[tokio::test]
async fn where_there_is_no_room_the_newcomer_is_told_so() {
    let all = by(OwnedBy::Caller);
    for n in 0..10 {
        let owner = of(&all, &format!("key:{n}"), None);
        for task in 0..100 {
            let told = answer(Some(&format!("{n}-{task}")), None);
            sends(owner.clone(), (None, None), &told).await;
        }
    }
    for context in [None, Some("new")] {
        let mut late = of(&all, "key:late", None);
        late.may_name(&[], context).await.unwrap();
        let fault = late.takes().await.err().unwrap();
        assert_eq!(
            (fault.kind, fault.retry_after),
            (Kind::Overloaded, Some(60))
        );
    }
    for n in 0..10 {
        let owner = of(&all, &format!("key:{n}"), None);
        assert_eq!(may(owner, Some(&format!("{n}-99")), None).await, None);
    }
}

#[tokio::test]
async fn new_contexts_may_be_the_agent_s_alone() {
    let all = owners(Ownership {
        by: OwnedBy::Caller,
        new_contexts: NewContexts::Refuse,
        ..Ownership::default()
    });
    let ann = of(&all, "key:ann", None);
    let refused = Some(Kind::InvalidParams);
    assert_eq!(may(ann.clone(), None, Some("mine")).await, refused);
    sends(ann.clone(), (None, None), &answer(None, Some("c1"))).await;
    assert_eq!(may(ann, None, Some("c1")).await, None);
}

#[tokio::test]
async fn an_answer_with_another_s_task_is_not_told() {
    let all = by(OwnedBy::Caller);
    let (ann, bob) = (of(&all, "key:ann", None), of(&all, "key:bob", None));
    sends(ann, (None, None), &answer(Some("t1"), Some("c1"))).await;
    let told = sends(bob.clone(), (None, None), &answer(Some("t1"), Some("c1"))).await;
    let fault = told.objection().unwrap();
    assert_eq!(fault.kind, Kind::InvalidAgentResponse);
    assert!(!fault.message.contains("t1"), "{fault}");
    // An agent may have one context for all.
    let told = sends(bob, (None, None), &answer(Some("t2"), Some("c1"))).await;
    assert!(told.objection().is_none());
}

#[tokio::test]
async fn an_answer_in_another_s_context_is_not_told_to_who_named_its_own() {
    let all = by(OwnedBy::Caller);
    let (ann, bob) = (of(&all, "key:ann", None), of(&all, "key:bob", None));
    sends(ann, (None, None), &answer(Some("t1"), Some("c-ann"))).await;
    let told = answer(None, Some("c-ann"));
    let claims = sends(bob.clone(), (None, Some("c-bob")), &told).await;
    let fault = claims.objection().unwrap();
    assert_eq!(fault.kind, Kind::InvalidAgentResponse);
    // Another of its own is fine.
    let claims = sends(bob, (None, Some("c-bob")), &answer(None, Some("c-bob-2"))).await;
    assert!(claims.objection().is_none());
}

#[tokio::test]
async fn a_look_at_one_s_task_shows_no_other_s() {
    let all = by(OwnedBy::Caller);
    let (ann, bob) = (of(&all, "key:ann", None), of(&all, "key:bob", None));
    sends(ann, (None, None), &answer(Some("t-ann"), Some("c-ann"))).await;
    for task in ["t-bob", "t-bob-2"] {
        sends(bob.clone(), (None, None), &answer(Some(task), None)).await;
    }
    let mut look = request::ask_task("t-bob", None);
    for op in [Op::Get, Op::Cancel, Op::Subscribe] {
        look.op = op;
        for (told, good) in [
            ("t-bob", true),
            ("t-bob-2", true),
            ("t-ann", false),
            ("none", false),
        ] {
            let mut claims = bob.clone().claims(op, &look).await.unwrap();
            assert!(claims.learns());
            claims.seen(&answer(Some(told), None)).done().await;
            assert_eq!(claims.objection().is_none(), good, "{op:?} {told}");
        }
    }
}

#[tokio::test]
async fn every_task_of_a_stream_is_claimed_and_only_of_a_message() {
    let all = by(OwnedBy::Caller);
    let (ann, bob) = (of(&all, "key:ann", None), of(&all, "key:bob", None));
    let mut claims = sends(ann.clone(), (None, None), &answer(Some("t1"), Some("c1"))).await;
    assert!(claims.learns());
    for task in ["t2", "t1", "t3"] {
        claims.seen(&answer(Some(task), Some("c1"))).done().await;
    }
    for task in ["t1", "t2", "t3"] {
        assert_eq!(may(ann.clone(), Some(task), None).await, None, "{task}");
    }
    let get = request::ask_task("t9", None);
    let mut looks = bob.clone().claims(Op::Get, &get).await.unwrap();
    assert!(looks.can_be_left_at_once());
    looks.seen(&answer(Some("t9"), Some("c9"))).done().await;
    let hidden = Some(Kind::TaskNotFound);
    assert_eq!(may(bob, Some("t9"), None).await, hidden);
}

#[tokio::test]
async fn a_message_that_became_a_question_is_not_for_another_s_task() {
    let all = by(OwnedBy::Caller);
    let (ann, bob) = (of(&all, "key:ann", None), of(&all, "key:bob", None));
    sends(ann.clone(), (None, None), &answer(Some("t1"), None)).await;
    let question = request::ask_task("t1", None);
    assert!(ann.claims(Op::Send, &question).await.is_ok());
    let refused = bob.clone().claims(Op::Send, &question).await.err();
    assert_eq!(refused.map(|f| f.kind), Some(Kind::TaskNotFound));
    // Its own answer has shown the task, whether or not the store has heard of it.
    let new = request::ask_task("t2", None);
    assert!(bob.claims(Op::Send, &new).await.is_ok());
}

#[tokio::test]
async fn a_message_can_be_left_once_its_task_has_an_owner() {
    let all = by(OwnedBy::Caller);
    let ann = of(&all, "key:ann", None);
    let call = message(None, None);
    let mut claims = ann.clone().claims(Op::Stream, &call).await.unwrap();
    assert!(!claims.can_be_left_at_once() && !claims.can_be_left());
    claims.seen(&answer(Some("t1"), None)).done().await;
    assert!(claims.can_be_left());
    let resumes = message(Some("t1"), None);
    let claims = ann.claims(Op::Send, &resumes).await.unwrap();
    assert!(claims.can_be_left_at_once());
}

#[tokio::test]
async fn owners_see_their_part_of_a_list() {
    let all = by(OwnedBy::Caller);
    let (ann, bob) = (of(&all, "key:ann", None), of(&all, "key:bob", None));
    sends(ann.clone(), (None, None), &answer(Some("a"), None)).await;
    sends(bob.clone(), (None, None), &answer(Some("b"), None)).await;
    let list = || ["a", "b", "nobody's"].into_iter();
    assert_eq!(ann.sees_which(list()).await.unwrap(), [true, false, false]);
    assert_eq!(bob.sees_which(list()).await.unwrap(), [false, true, false]);
    let tokens = ann.tokens().await.unwrap();
    let sealed = tokens.seal(&page::Place::default()).unwrap();
    let again = ann.tokens().await.unwrap();
    assert!(again.open(&sealed).is_some(), "the key is kept");
    assert!(bob.tokens().await.unwrap().open(&sealed).is_none());
}
