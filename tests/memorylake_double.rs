//! The double of MemoryLake does what the three pages say: each rule, asked of it directly.
//!
//! # The current English page
//!
//! | Where | Rule | Test |
//! |---|---|---|
//! | Base URL | the permission `workspace_agent:a2a` | `errors::a_missing_permission_is_403` |
//! | Base URL | paths below workspace and agent; versions by `/v1/` or by the method | `routes::every_operation_has_its_path_in_all_four_families` |
//! | Protocol Versions | `content` and `parts` are refused by the other version's routes | `routes::the_list_of_the_other_version_is_refused` |
//! | Protocol Versions | `kind` and lowercase roles on v0.3 JSON-RPC alone | `routes::kinds_and_lowercase_roles_are_of_v03_json_rpc_alone` |
//! | Protocol Versions | the method's name tells the version, the header need not be there | `routes::the_name_of_the_method_tells_the_version` |
//! | Protocol Versions | methods that are not listed | `routes::what_no_page_lists_is_not_there` |
//! | Protocol Versions | `returnImmediately`, false when absent; `blocking` ignored | `waiting::v10_knows_return_immediately_and_ignores_blocking` |
//! | Protocol Versions | `blocking` | `waiting::v03_knows_blocking` |
//! | Protocol Versions | absent `blocking`: v0.3 REST returns at once, JSON-RPC waits | `waiting::only_v03_rest_returns_at_once_when_nothing_is_said` |
//! | Protocol Versions | `historyLength`: the last N, 0 leaves it out | `waiting::the_history_is_cut_to_its_end` |
//! | Protocol Versions | absent `historyLength`: all, but none over v0.3 REST | `waiting::only_v03_rest_leaves_the_history_out_when_nothing_is_said` |
//! | Protocol Versions | `acceptedOutputModes` | `waiting::output_modes_are_accepted` |
//! | Protocol Versions | the card says no push | `routes::the_card_tells_whether_there_are_push_notifications` |
//! | Protocol Versions | push configs cause no callbacks | `waiting::push_configs_are_taken_and_nothing_is_called` |
//! | Protocol Versions | one message at a time, also with a task that nobody waits for | `conversations::a_conversation_takes_one_message_at_a_time` |
//! | Protocol Versions | the same while a stream is open | `conversations::a_stream_keeps_its_conversation_busy` |
//! | Protocol Versions | the same when the client has left | `conversations::a_client_that_leaves_does_not_end_its_task` |
//! | Protocol Versions | one agent for a conversation | `conversations::a_conversation_is_of_the_agent_that_it_began_with` |
//! | MemoryLake Extension | `metadata.memorylake` is required | `extension::a_message_without_the_extension_is_refused` |
//! | MemoryLake Extension | `{}` means the defaults | `extension::an_empty_extension_means_the_own_actor_and_memory` |
//! | MemoryLake Extension | `message.metadata` is not read | `extension::the_extension_of_the_message_itself_is_not_read` |
//! | MemoryLake Extension | unknown fields and other keys are ignored | `extension::unknown_names_are_ignored` |
//! | Memory and identity | no actor of one's own: `STATE_NOT_READY` | `extension::a_user_without_an_actor_has_to_name_one` |
//! | Memory and identity | an actor of the workspace; a deleted one: `ACTOR_INACTIVE` | `extension::an_actor_has_to_be_of_the_workspace_and_active` |
//! | Memory and identity | permissions on the actor, at the start and for a new one | `extension::permissions_on_an_actor_are_checked_when_it_comes_in` |
//! | Memory and identity | the first message binds the project | `conversations::the_first_message_binds_the_project` |
//! | Memory and identity | another workspace's project: 404 | `extension::a_project_of_another_workspace_is_not_found` |
//! | Memory and identity | permissions on the project, at the start | `extension::permissions_on_a_project_are_checked_when_a_conversation_starts` |
//! | Memory and identity | files need a project of their own message | `extension::files_need_a_project_named_by_their_own_message` |
//! | Memory and identity | read-only projects: of this message, unknown ones skipped | `extension::projects_to_read_are_of_one_message` |
//! | Memory and identity | read-only projects: 403 without a permission | `extension::every_project_to_read_needs_its_permissions` |
//! | Memory and identity | `skipMemory` | `extension::memory_can_be_skipped_for_a_message` |
//! | Run configuration | an unknown model fails the task, with status 200 | `extension::a_model_that_nobody_knows_fails_the_task` |
//! | Turn on capabilities | the four capabilities of the example | `examples::the_capabilities_of_the_page_are_all_known` |
//! | Turn on capabilities | of this message only | `capabilities::a_capability_is_of_one_message` |
//! | Turn on capabilities | camelCase is accepted | `capabilities::names_may_be_in_camel_case` |
//! | Turn on capabilities | it replaces the agent's own | `capabilities::what_is_asked_for_replaces_what_the_agent_has` |
//! | Turn on capabilities | on, not off: absent, `null`, `enabled: false` | `capabilities::a_capability_cannot_be_turned_off` |
//! | Turn on capabilities | mistakes drop the capability | `capabilities::mistakes_drop_the_capability_and_nothing_else` |
//! | Turn on capabilities | unknown collections are skipped | `capabilities::collections_that_nobody_knows_are_skipped` |
//! | Turn on capabilities | no object: 400 | `capabilities::an_override_that_is_no_object_is_refused` |
//! | Turn on capabilities | `pii` masks for the model, the record keeps the text | `capabilities::personal_information_is_masked_for_the_model_alone` |
//! | Turn on capabilities | no `dataset` | `capabilities::only_the_chinese_page_has_databases` |
//! | Examples | the eight requests | `examples::every_request_of_a_page_is_let_in_as_what_it_is` |
//! | Examples | REST messages without `messageId` | `routes::a_message_needs_no_id_of_its_own` |
//! | Responses | envelopes of sends and events | `routes::every_operation_has_its_path_in_all_four_families` |
//! | Send | the answer that the page shows | `examples::what_is_sent_is_answered_as_the_page_shows` |
//! | Send | always a task | `answers::a_send_is_always_answered_with_a_task` |
//! | Send | a new `contextId` where there was none | `conversations::a_context_of_its_own_is_made_where_none_is_named` |
//! | Send | a failed task tells why | `answers::a_task_that_fails_tells_why_with_status_200` |
//! | Send | at most one artifact, `result` | `answers::the_answer_is_one_artifact` |
//! | Send | none without an answer | `answers::there_is_no_artifact_without_an_answer` |
//! | Send | history: the message, then the agent's in order | `answers::the_history_is_what_was_said_in_order` |
//! | Send | consecutive text is one message | `answers::text_that_follows_text_is_one_message` |
//! | Send | not waited for: submitted, the message alone, no artifact; it goes on | `waiting::a_task_that_is_not_waited_for_goes_on` |
//! | Stream | the stream that the page shows | `examples::what_is_streamed_is_answered_as_the_page_shows` |
//! | Stream | the order of events | `streams::a_stream_has_its_order` |
//! | Stream | its first event has the history, as far as it is asked for | `streams::the_first_event_has_as_much_history_as_was_asked_for_or_always_the_message` |
//! | Stream | one part for each step, ids of their own, thinking, tools | `streams::each_step_is_a_message_of_one_part` |
//! | Stream | chunks are increments | `streams::chunks_are_to_be_appended` |
//! | Stream | a file that the agent made | `streams::a_file_that_the_agent_makes_is_a_step` |
//! | Stream | the end of a failed task has the error | `streams::a_stream_of_a_task_that_fails_ends_with_the_error` |
//! | Stream | the end of a canceled task | `streams::a_stream_of_a_task_that_is_canceled_ends_so` |
//! | Stream | comments keep it alive | `streams::a_silent_stream_has_comments` |
//! | The answer | attachments and questions | `answers::an_answer_may_have_attachments_and_questions` |
//! | The answer | other data parts | `answers::other_data_may_stand_in_an_answer` |
//! | The answer | numbers as floats | `answers::numbers_in_data_come_back_as_floats` |
//! | Tool calls | `adk_type`, results, failures, the signature | `answers::tool_calls_are_marked_as_in_adk` |
//! | Follow a task | a task without answer, history and error | `streams::a_question_about_a_task_gets_neither_answer_nor_history` |
//! | Follow a task | subscribing replays all but the task | `streams::a_subscription_replays_all_but_the_task` |
//! | Follow a task | and follows live | `streams::a_subscription_follows_until_the_end` |
//! | Follow a task | not of a failed or canceled task | `streams::what_failed_or_was_canceled_cannot_be_subscribed_to` |
//! | Errors | `INVALID_ARGUMENT` | `routes::the_list_of_the_other_version_is_refused` |
//! | Errors | `QUOTA_EXCEEDED`, on both transports | `errors::a_quota_that_is_used_up_is_402` |
//! | Errors | `ACCESS_DENIED`, on both transports | `errors::a_missing_permission_is_403` |
//! | Errors | `NOT_FOUND` of the agent, on both transports | `routes::an_agent_that_is_not_there_is_not_found` |
//! | Errors | `NOT_FOUND` of the task | `errors::a_task_that_is_not_there_is_404` |
//! | Errors | errors of the agent, and -32603 for all on v0.3 | `errors::v03_methods_report_all_errors_of_the_agent_with_one_code` |
//! | v0.3 differences | JSON-RPC: `kind`s, lowercase states and roles | `answers::v03_json_rpc_marks_everything_with_a_kind` |
//! | v0.3 differences | JSON-RPC: `final` on the last update | `streams::v03_json_rpc_marks_the_last_update_as_final` |
//! | v0.3 differences | REST: `content`, data in data | `answers::v03_rest_puts_parts_under_content_and_data_in_data` |
//! | v0.3 differences | REST: `TASK_STATE_CANCELLED` | `streams::a_stream_of_a_task_that_is_canceled_ends_so` |
//! | v0.3 differences | REST: no time in the task of a GET | `streams::a_question_about_a_task_gets_neither_answer_nor_history` |
//!
//! # The current Chinese page
//!
//! | Where | Rule | Test |
//! |---|---|---|
//! | Base URL | the permission `workspace_agent:a2a` | `errors::a_missing_permission_is_403` |
//! | Base URL | paths below workspace and agent; versions by `/v1/` or by the method | `routes::every_operation_has_its_path_in_all_four_families` |
//! | 协议版本 | `content` and `parts` are refused by the other version's routes | `routes::the_list_of_the_other_version_is_refused` |
//! | 协议版本 | `kind` and lowercase roles on v0.3 JSON-RPC alone | `routes::kinds_and_lowercase_roles_are_of_v03_json_rpc_alone` |
//! | 协议版本 | the method's name tells the version, the header need not be there | `routes::the_name_of_the_method_tells_the_version` |
//! | 协议版本 | methods that are not listed | `routes::what_no_page_lists_is_not_there` |
//! | 协议版本 | `returnImmediately`, false when absent; `blocking` ignored | `waiting::v10_knows_return_immediately_and_ignores_blocking` |
//! | 协议版本 | `blocking` | `waiting::v03_knows_blocking` |
//! | 协议版本 | absent `blocking`: v0.3 REST returns at once, JSON-RPC waits | `waiting::only_v03_rest_returns_at_once_when_nothing_is_said` |
//! | 协议版本 | `historyLength`: the last N, 0 leaves it out | `waiting::the_history_is_cut_to_its_end` |
//! | 协议版本 | absent `historyLength`: all, but none over v0.3 REST | `waiting::only_v03_rest_leaves_the_history_out_when_nothing_is_said` |
//! | 协议版本 | `acceptedOutputModes` | `waiting::output_modes_are_accepted` |
//! | 协议版本 | the card says no push | `routes::the_card_tells_whether_there_are_push_notifications` |
//! | 协议版本 | push configs cause no callbacks | `waiting::push_configs_are_taken_and_nothing_is_called` |
//! | 协议版本 | one message at a time, also with a task that nobody waits for | `conversations::a_conversation_takes_one_message_at_a_time` |
//! | 协议版本 | the same while a stream is open | `conversations::a_stream_keeps_its_conversation_busy` |
//! | 协议版本 | the same when the client has left | `conversations::a_client_that_leaves_does_not_end_its_task` |
//! | 协议版本 | one agent for a conversation | `conversations::a_conversation_is_of_the_agent_that_it_began_with` |
//! | MemoryLake 扩展 | `metadata.memorylake` is required | `extension::a_message_without_the_extension_is_refused` |
//! | MemoryLake 扩展 | `{}` means the defaults | `extension::an_empty_extension_means_the_own_actor_and_memory` |
//! | MemoryLake 扩展 | `message.metadata` is not read | `extension::the_extension_of_the_message_itself_is_not_read` |
//! | MemoryLake 扩展 | unknown fields and other keys are ignored | `extension::unknown_names_are_ignored` |
//! | 记忆与身份 | no actor of one's own: `STATE_NOT_READY` | `extension::a_user_without_an_actor_has_to_name_one` |
//! | 记忆与身份 | an actor of the workspace; a deleted one: `ACTOR_INACTIVE` | `extension::an_actor_has_to_be_of_the_workspace_and_active` |
//! | 记忆与身份 | permissions on the actor, at the start and for a new one | `extension::permissions_on_an_actor_are_checked_when_it_comes_in` |
//! | 记忆与身份 | the first message binds the project | `conversations::the_first_message_binds_the_project` |
//! | 记忆与身份 | another workspace's project: 404 | `extension::a_project_of_another_workspace_is_not_found` |
//! | 记忆与身份 | permissions on the project, at the start | `extension::permissions_on_a_project_are_checked_when_a_conversation_starts` |
//! | 记忆与身份 | files need a project of their own message | `extension::files_need_a_project_named_by_their_own_message` |
//! | 记忆与身份 | read-only projects: of this message, unknown ones skipped | `extension::projects_to_read_are_of_one_message` |
//! | 记忆与身份 | read-only projects: 403 without a permission | `extension::every_project_to_read_needs_its_permissions` |
//! | 记忆与身份 | `skipMemory` | `extension::memory_can_be_skipped_for_a_message` |
//! | 运行配置 | an unknown model fails the task, with status 200 | `extension::a_model_that_nobody_knows_fails_the_task` |
//! | 按消息开启能力 | the four capabilities of the example | `examples::the_capabilities_of_the_page_are_all_known` |
//! | 按消息开启能力 | of this message only | `capabilities::a_capability_is_of_one_message` |
//! | 按消息开启能力 | camelCase is accepted | `capabilities::names_may_be_in_camel_case` |
//! | 按消息开启能力 | it replaces the agent's own | `capabilities::what_is_asked_for_replaces_what_the_agent_has` |
//! | 按消息开启能力 | on, not off: absent, `null`, `enabled: false` | `capabilities::a_capability_cannot_be_turned_off` |
//! | 按消息开启能力 | mistakes drop the capability | `capabilities::mistakes_drop_the_capability_and_nothing_else` |
//! | 按消息开启能力 | unknown collections are skipped | `capabilities::collections_that_nobody_knows_are_skipped` |
//! | 按消息开启能力 | no object: 400 | `capabilities::an_override_that_is_no_object_is_refused` |
//! | 按消息开启能力 | `pii` masks for the model, the record keeps the text | `capabilities::personal_information_is_masked_for_the_model_alone` |
//! | 按消息开启能力 | `dataset`, with `nl2sql` alone | `capabilities::only_the_chinese_page_has_databases` |
//! | 示例 | the eight requests | `examples::every_request_of_a_page_is_let_in_as_what_it_is` |
//! | 示例 | REST messages without `messageId` | `routes::a_message_needs_no_id_of_its_own` |
//! | 响应 | envelopes of sends and events | `routes::every_operation_has_its_path_in_all_four_families` |
//! | 非流式发送 | the answer that the page shows | `examples::what_is_sent_is_answered_as_the_page_shows` |
//! | 非流式发送 | always a task | `answers::a_send_is_always_answered_with_a_task` |
//! | 非流式发送 | a new `contextId` where there was none | `conversations::a_context_of_its_own_is_made_where_none_is_named` |
//! | 非流式发送 | a failed task tells why | `answers::a_task_that_fails_tells_why_with_status_200` |
//! | 非流式发送 | at most one artifact, `result` | `answers::the_answer_is_one_artifact` |
//! | 非流式发送 | none without an answer | `answers::there_is_no_artifact_without_an_answer` |
//! | 非流式发送 | history: the message, then the agent's in order | `answers::the_history_is_what_was_said_in_order` |
//! | 非流式发送 | consecutive text is one message | `answers::text_that_follows_text_is_one_message` |
//! | 非流式发送 | not waited for: submitted, the message alone, no artifact; it goes on | `waiting::a_task_that_is_not_waited_for_goes_on` |
//! | 流式发送 | the stream that the page shows | `examples::what_is_streamed_is_answered_as_the_page_shows` |
//! | 流式发送 | the order of events | `streams::a_stream_has_its_order` |
//! | 流式发送 | its first event has the history, as far as it is asked for | `streams::the_first_event_has_as_much_history_as_was_asked_for_or_always_the_message` |
//! | 流式发送 | one part for each step, ids of their own, thinking, tools | `streams::each_step_is_a_message_of_one_part` |
//! | 流式发送 | chunks are increments | `streams::chunks_are_to_be_appended` |
//! | 流式发送 | a file that the agent made | `streams::a_file_that_the_agent_makes_is_a_step` |
//! | 流式发送 | the end of a failed task has the error | `streams::a_stream_of_a_task_that_fails_ends_with_the_error` |
//! | 流式发送 | the end of a canceled task | `streams::a_stream_of_a_task_that_is_canceled_ends_so` |
//! | 流式发送 | comments keep it alive | `streams::a_silent_stream_has_comments` |
//! | 回答内容 | attachments and questions | `answers::an_answer_may_have_attachments_and_questions` |
//! | 回答内容 | other data parts | `answers::other_data_may_stand_in_an_answer` |
//! | 回答内容 | numbers as floats | `answers::numbers_in_data_come_back_as_floats` |
//! | 工具调用 | `adk_type`, results, failures, the signature | `answers::tool_calls_are_marked_as_in_adk` |
//! | 跟踪任务 | a task without answer, history and error | `streams::a_question_about_a_task_gets_neither_answer_nor_history` |
//! | 跟踪任务 | subscribing replays all but the task | `streams::a_subscription_replays_all_but_the_task` |
//! | 跟踪任务 | and follows live | `streams::a_subscription_follows_until_the_end` |
//! | 跟踪任务 | not of a failed or canceled task | `streams::what_failed_or_was_canceled_cannot_be_subscribed_to` |
//! | 错误 | `INVALID_ARGUMENT` | `routes::the_list_of_the_other_version_is_refused` |
//! | 错误 | `QUOTA_EXCEEDED`, on both transports | `errors::a_quota_that_is_used_up_is_402` |
//! | 错误 | `ACCESS_DENIED`, on both transports | `errors::a_missing_permission_is_403` |
//! | 错误 | `NOT_FOUND` of the agent, on both transports | `routes::an_agent_that_is_not_there_is_not_found` |
//! | 错误 | `NOT_FOUND` of the task | `errors::a_task_that_is_not_there_is_404` |
//! | 错误 | errors of the agent, and -32603 for all on v0.3 | `errors::v03_methods_report_all_errors_of_the_agent_with_one_code` |
//! | v0.3 的差异 | JSON-RPC: `kind`s, lowercase states and roles | `answers::v03_json_rpc_marks_everything_with_a_kind` |
//! | v0.3 的差异 | JSON-RPC: `final` on the last update | `streams::v03_json_rpc_marks_the_last_update_as_final` |
//! | v0.3 的差异 | REST: `content`, data in data | `answers::v03_rest_puts_parts_under_content_and_data_in_data` |
//! | v0.3 的差异 | REST: `TASK_STATE_CANCELLED` | `streams::a_stream_of_a_task_that_is_canceled_ends_so` |
//! | v0.3 的差异 | REST: no time in the task of a GET | `streams::a_question_about_a_task_gets_neither_answer_nor_history` |
//!
//! # The older page
//!
//! It says nothing of answers, errors and waiting by default; there the double does as by the others.
//!
//! | Where | Rule | Test |
//! |---|---|---|
//! | Base URL | the permission `workspace:a2a` | `errors::the_older_page_names_another_permission` |
//! | 协议版本 | paths, and the methods' names | `routes::every_operation_has_its_path_in_all_four_families` |
//! | 协议版本 | `content` and `parts` are refused by the other version's routes | `routes::the_list_of_the_other_version_is_refused` |
//! | 协议版本 | `blocking` on both versions | `waiting::the_older_page_says_blocking_for_both_versions` |
//! | 协议版本 | `historyLength`: the last N | `waiting::the_history_is_cut_to_its_end` |
//! | 协议版本 | `acceptedOutputModes` | `waiting::output_modes_are_accepted` |
//! | 协议版本 | `pushNotificationConfig` is called | `waiting::the_older_page_calls_back` |
//! | MemoryLake 扩展 | without `metadata.memorylake`: no memory | `extension::the_older_page_lets_it_in_without_memory` |
//! | MemoryLake 扩展 | `overrides` without `capabilitiesOverride` | `capabilities::the_older_page_knows_no_such_override` |
//! | 示例 | the eight requests, with its ids and `maxTurns` | `examples::every_request_of_a_page_is_let_in_as_what_it_is` |
//! | (not there) | conversations, projects and agents are not bound | `conversations::the_older_page_has_none_of_these_rules` |
//!
//! Not proved, since the pages as text have no names for them: the fields of instructions, sampling parameters and
//! the language. They pass, as all that is not read, into what the agent [heard](memorylake::Heard).
#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on may panic anywhere"
)]
#[path = "memorylake/ask.rs"]
mod ask;
#[path = "support/memorylake.rs"]
mod memorylake;
#[path = "memorylake/page.rs"]
mod page;
#[path = "support/parts.rs"]
mod support;

#[path = "memorylake/double/answers.rs"]
mod answers;
#[path = "memorylake/double/capabilities.rs"]
mod capabilities;
#[path = "memorylake/double/conversations.rs"]
mod conversations;
#[path = "memorylake/double/errors.rs"]
mod errors;
#[path = "memorylake/double/examples.rs"]
mod examples;
#[path = "memorylake/double/extension.rs"]
mod extension;
#[path = "memorylake/double/routes.rs"]
mod routes;
#[path = "memorylake/double/streams.rs"]
mod streams;
#[path = "memorylake/double/waiting.rs"]
mod waiting;

use memorylake::Page;

/// The pages that say how things are now.
const CURRENT: [Page; 2] = [Page::En, Page::Cn];

#[test]
fn every_row_of_the_tables_names_a_test() {
    let rows = include_str!("memorylake_double.rs").lines();
    let rows = rows.filter_map(|line| line.strip_prefix("//! | ")?.strip_suffix("` |"));
    let mut count = 0;
    for row in rows {
        let (_, name) = row.rsplit_once('`').unwrap();
        let (module, test) = name.split_once("::").unwrap();
        let root = env!("CARGO_MANIFEST_DIR");
        let file = format!("{root}/tests/memorylake/double/{module}.rs");
        let source = std::fs::read_to_string(&file).unwrap();
        assert!(source.contains(&format!("#[test]\nfn {test}()")), "{name}");
        count += 1;
    }
    assert!(count > 150, "{count}");
}
