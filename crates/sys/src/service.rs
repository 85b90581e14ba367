//! The daemon under Windows' service manager: who it calls, and what it is told. Windows only; never built by our tests.
//!
//! The manager starts the process, calls `called_by_manager` on a thread of its own, and calls the control handler when the
//! service is to stop. Not here: the daemon itself, which [`run`] is given as a closure.

use std::ffi::OsString;
use std::io;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use windows_service::service::{
    ServiceControl, ServiceControlAccept, ServiceExitCode, ServiceState, ServiceStatus, ServiceType,
};
use windows_service::service_control_handler::{self, ServiceControlHandlerResult, ServiceStatusHandle};
use windows_service::{define_windows_service, service_dispatcher};

/// For a process with one service the manager ignores it, and the dispatcher wants one.
const NAME: &str = "staunch";

/// How long the manager is told that a start or a stop may take. `stop_timeout` must be shorter.
const WAIT_HINT: Duration = Duration::from_secs(30);

struct Job {
    /// The daemon; true when it ended well.
    main: Box<dyn FnOnce() -> bool + Send>,
    /// Asks the daemon to stop, from any thread.
    stop: fn(),
}

/// The manager's call carries no context, so what is to be run waits here for it.
static JOB: Mutex<Option<Job>> = Mutex::new(None);

static MANAGER: OnceLock<ServiceStatusHandle> = OnceLock::new();

define_windows_service!(entry, called_by_manager);

/// Hands this thread to the service manager, which has `main` run, and returns when the service has ended.
///
/// # Errors
/// When this process was not started by the service manager.
pub fn run(main: impl FnOnce() -> bool + Send + 'static, stop: fn()) -> io::Result<()> {
    *JOB.lock().unwrap_or_else(PoisonError::into_inner) = Some(Job { main: Box::new(main), stop });
    service_dispatcher::start(NAME, entry).map_err(io::Error::other)
}

fn called_by_manager(_arguments: Vec<OsString>) {
    let Some(Job { main, stop }) = JOB.lock().unwrap_or_else(PoisonError::into_inner).take() else { return };
    let controls = move |control| match control {
        ServiceControl::Stop | ServiceControl::Shutdown => {
            stop();
            ServiceControlHandlerResult::NoError
        }
        ServiceControl::Interrogate => ServiceControlHandlerResult::NoError,
        _ => ServiceControlHandlerResult::NotImplemented,
    };
    // Without a handler nobody can be told anything; the manager sees the process end.
    let Ok(manager) = service_control_handler::register(NAME, controls) else { return };
    let manager = MANAGER.get_or_init(|| manager);
    tell(ServiceState::StartPending);
    let ended_well = main();
    let exit_code = if ended_well { ServiceExitCode::NO_ERROR } else { ServiceExitCode::ServiceSpecific(1) };
    // Nothing is left to be done when the manager does not take it: the process ends.
    let _told = manager.set_service_status(ServiceStatus { exit_code, ..status(ServiceState::Stopped) });
}

/// The daemon takes records now.
pub fn running() {
    tell(ServiceState::Running);
}

/// The daemon has begun to stop.
pub fn stopping() {
    tell(ServiceState::StopPending);
}

/// Tells the manager, if this process is a service.
fn tell(state: ServiceState) {
    let Some(manager) = MANAGER.get() else { return };
    if let Err(error) = manager.set_service_status(status(state)) {
        tracing::debug!("cannot tell the service manager {state:?}: {error}");
    }
}

fn status(state: ServiceState) -> ServiceStatus {
    let (controls_accepted, wait_hint) = match state {
        ServiceState::Running => {
            (ServiceControlAccept::STOP | ServiceControlAccept::SHUTDOWN, Duration::default())
        }
        ServiceState::Stopped => (ServiceControlAccept::empty(), Duration::default()),
        _ => (ServiceControlAccept::empty(), WAIT_HINT),
    };
    ServiceStatus {
        service_type: ServiceType::OWN_PROCESS,
        current_state: state,
        controls_accepted,
        exit_code: ServiceExitCode::NO_ERROR,
        checkpoint: 0,
        wait_hint,
        process_id: None,
    }
}
