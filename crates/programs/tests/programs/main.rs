//! The static programs as other processes see them: output, exit codes, namespaces, groups.
#[path = "../../../probe/src/trial/attempts.rs"]
mod attempts;
mod enter;
mod serve;
mod sys_truth;
mod wrapped_server;
