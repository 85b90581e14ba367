//! Locks the data directory of a plan, at a start and at a reload that needs it.
//!
//! Not here: what is stored in it (`kept`), the directory itself and its lock (`sys::data_dir`).

use std::net::SocketAddr;

use config::plan::Plan;

use super::kept;
use crate::daemon::hot_restart::Inheritance;
use sys::data_dir::{self, DataDir, DataDirError};

/// Locks the data directory, if it is needed. The lock may come from another process, which then never releases it.
pub(in crate::daemon) fn take_data_dir(
    plan: &Plan,
    http: Option<SocketAddr>,
    from: Option<&mut Inheritance>,
) -> anyhow::Result<Option<DataDir>> {
    let (needed, wanted) = (kept::is_needed(plan), kept::is_wanted(plan));
    if !needed && !wanted && !data_dir::has_state(&plan.data_dir) {
        return Ok(None);
    }
    if let Some(lock) = from.and_then(Inheritance::take_lock) {
        return Ok(Some(DataDir::inherit(&plan.data_dir, lock)));
    }
    match DataDir::lock(&plan.data_dir, http) {
        Ok(data_dir) => Ok(Some(data_dir)),
        // Without a config, two processes would also write the same files of results.
        Err(error) if needed || (plan.built_in && matches!(error, DataDirError::Held { .. })) => {
            Err(error.into())
        }
        Err(error) => {
            if wanted {
                let error = anyhow::Error::from(error);
                tracing::warn!("{error:#}\n  there are no checkpoints until the next start");
            }
            Ok(None)
        }
    }
}
