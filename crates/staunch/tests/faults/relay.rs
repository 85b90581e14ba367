//! What the cases of the relay share: a relay in front of endpoints, a client of it, and who owns which record.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use process::sharding::{Cluster, Sharding};

use crate::endpoint::Endpoint;
use crate::oracle::{Form, write_point};
use crate::support::{Builder, Daemon};

/// A relay whose cluster places by `carbon_ch`, with queues on disk.
#[derive(Debug)]
pub(crate) struct Relay {
    pub(crate) daemon: Daemon,
    pub(crate) endpoints: Vec<Endpoint>,
    owners: Cluster,
}

impl Relay {
    /// In front of so many endpoints.
    pub(crate) fn start(endpoints: usize) -> Relay {
        let endpoints: Vec<_> = (0..endpoints).map(|_| Endpoint::new(Form::Graphite)).collect();
        let builder = Builder::relay("").args(&["--queue-dir", "queues"]);
        let members: Vec<String> = endpoints
            .iter()
            .enumerate()
            .map(|(at, endpoint)| format!("{}=m{at}", endpoint.place()))
            .collect();
        // The relay's own lines are not on the oracle's list: none come within the hour.
        let conf = format!(
            "cluster c carbon_ch {};\nmatch * send to c stop;\nstatistics submit every 3600 seconds;\n\
             listen type linemode {} proto unix;\n",
            members.join(" "),
            builder.folder().join("in.sock").display()
        );
        std::fs::write(builder.folder().join("relay.conf"), conf).expect("the config can be written");
        let owners = Cluster::new(&Sharding::CarbonCh, &members).expect("a good cluster");
        Relay { daemon: builder.start(), endpoints, owners }
    }

    /// The endpoint that the record with this id belongs to.
    pub(crate) fn owner(&self, id: u64) -> usize {
        self.owners.owner(format!("id_{id}").as_bytes()).expect("there are endpoints")
    }

    /// Name of an endpoint's output.
    pub(crate) fn output(&self, endpoint: usize) -> String {
        format!("c/{}", self.endpoints[endpoint].place())
    }

    /// A connection to it.
    pub(crate) fn connect(&self) -> UnixStream {
        let socket: PathBuf = self.daemon.folder.path().join("in.sock");
        UnixStream::connect(socket).expect("it listens")
    }

    /// True when nothing waits for any endpoint.
    pub(crate) fn is_drained(&self) -> bool {
        let waiting = |at| Daemon::number(&self.daemon.output(&self.output(at)), "queued");
        (0..self.endpoints.len()).all(|at| waiting(at) == 0)
    }
}

/// Sends the records with these ids.
///
/// # Errors
/// When nobody reads any more.
pub(crate) fn send(to: &mut UnixStream, ids: std::ops::Range<u64>) -> std::io::Result<()> {
    let mut lines = Vec::new();
    ids.for_each(|id| write_point(&mut lines, id));
    to.write_all(&lines)
}
