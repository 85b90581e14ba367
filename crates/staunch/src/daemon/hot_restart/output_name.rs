//! Which output of the old process an output of the new one continues.

use config::plan::{Link, OutputPlan, StreamLink};

use super::message::OutputName;
use crate::admin::accounts::output_word;

/// The properties that an output must share with one of another process for its queue to continue there. A queue on
/// disk belongs to the output's name.
pub fn name_of(output: &OutputPlan) -> OutputName {
    let facts = output.kind.facts();
    let place = match &facts.link {
        Link::Stream(StreamLink { to, .. }) | Link::Datagrams { to, .. } | Link::Requests { to, .. } => {
            Some(to.to_string())
        }
        Link::File { path, .. } => Some(path.display().to_string()),
        Link::Store(store) => Some(store.path.display().to_string()),
        Link::Stdout | Link::Stderr => None,
    };
    let what = match output.queue_kind.is_disk() {
        true => "queue on disk".to_owned(),
        false => {
            let word = Some(output_word(&output.kind));
            let parts = [word, place.as_deref(), facts.encoding];
            parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
        }
    };
    OutputName { name: output.name.clone(), what }
}
