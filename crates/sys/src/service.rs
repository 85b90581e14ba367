//! Runs the daemon as a Windows service: control requests and status reports. Windows only; never built by our tests.
//!
//! The service manager starts the process, calls `called_by_manager` on a thread of its own, and calls the control
//! handler to stop the service. Not here: the daemon itself, which is passed to [`run`] as a closure.

use std::ffi::OsString;
use std::io;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use windows_service::service::{
    ServiceControl, ServiceControlAccept, ServiceExitCode, ServiceState, ServiceStatus, ServiceType,
};
use windows_service::service_control_handler::{self, ServiceControlHandlerResult, ServiceStatusHandle};
use windows_service::{define_windows_service, service_dispatcher};

/// The manager ignores the name of a process with one service, but the dispatcher requires one.
const NAME: &str = "staunch";

/// The wait hint of pending starts and stops. `stop_timeout` must be shorter.
const WAIT_HINT: Duration = Duration::from_secs(30);

struct Job {
    /// The daemon; true when it succeeded.
    main: Box<dyn FnOnce() -> bool + Send>,
    /// Asks the daemon to stop, from any thread.
    stop: fn(),
}

/// The manager's callback has no context argument, so the job is stored here.
static JOB: Mutex<Option<Job>> = Mutex::new(None);

static MANAGER: OnceLock<ServiceStatusHandle> = OnceLock::new();

define_windows_service!(entry, called_by_manager);

/// Gives this thread to the service manager, which calls `main`, and returns when the service has ended.
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
    // Without a handler no status can be reported; the manager sees the process end.
    let Ok(manager) = service_control_handler::register(NAME, controls) else { return };
    let manager = MANAGER.get_or_init(|| manager);
    report(ServiceState::StartPending);
    let ended_well = main();
    let exit_code = if ended_well { ServiceExitCode::NO_ERROR } else { ServiceExitCode::ServiceSpecific(1) };
    // If the manager rejects the last status, the process ends all the same.
    let _rejected = manager.set_service_status(ServiceStatus { exit_code, ..status(ServiceState::Stopped) });
}

/// Reports that the daemon accepts records.
pub fn running() {
    report(ServiceState::Running);
}

/// Reports that the daemon is stopping.
pub fn stopping() {
    report(ServiceState::StopPending);
}

/// Reports a state to the manager, if this process is a service.
fn report(state: ServiceState) {
    let Some(manager) = MANAGER.get() else { return };
    if let Err(error) = manager.set_service_status(status(state)) {
        tracing::debug!("cannot report {state:?} to the service manager: {error}");
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
