//! Rust cadence: clients TRANSPORT ADDRESS PREFIX

use std::error::Error;
use std::net::UdpSocket;
use std::os::unix::net::UnixDatagram;

use cadence::{
    BufferedUdpMetricSink, Counted, CountedExt, Distributed, Gauged, Histogrammed, Setted, StatsdClient,
    Timed, UnixMetricSink,
};

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [transport, address, prefix] = args.as_slice() else { return Err("TRANSPORT ADDRESS PREFIX".into()) };
    let builder = if transport == "udp" {
        StatsdClient::builder(
            prefix,
            BufferedUdpMetricSink::from(address.as_str(), UdpSocket::bind("127.0.0.1:0")?)?,
        )
    } else {
        StatsdClient::builder(prefix, UnixMetricSink::from(address, UnixDatagram::unbound()?))
    };
    let client = builder.with_error_handler(|error| panic!("{error}")).build();

    client.incr("hits")?;
    client.count("hits", 2)?;
    client.decr("hits")?;
    client.time("lat", vec![10, 20, 30])?;
    client.gauge("temp", 20)?;
    client.gauge("temp", 22)?;
    for member in [1, 2, 1] {
        client.set("uid", member)?;
    }
    client.count_with_tags("tagged", 1).with_tag("env", "prod").with_tag("dc", "x").try_send()?;
    for value in [1, 2, 3] {
        client.histogram_with_tags("size", value).with_tag("env", "prod").try_send()?;
        client.distribution("spread", value)?;
    }
    client.flush()?;
    Ok(())
}
