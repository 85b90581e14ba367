//! Tests of the system calls, on loopback and within this process. Both packet modules (Linux and portable) run the
//! same tests.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixDatagram;
use std::time::Duration;

use model::limits::DATAGRAM_BYTES_MAX;
use model::{PacketBatch, Span};

use super::*;

/// A bound socket and one connected to it.
fn udp_pair() -> (UdpSocket, UdpSocket) {
    let server = UdpSocket::bind("127.0.0.1:0").unwrap();
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    client.connect(server.local_addr().unwrap()).unwrap();
    (server, client)
}

/// Tests of any reader and writer; a macro because the two implementations share no trait.
macro_rules! reader_and_writer_tests {
    ($name:ident, $module:ident) => {
        mod $name {
            use super::*;
            use crate::$module::{PacketReader, PacketWriter};

            /// The result of one call: owned packets, the truncated indexes and the `more` flag.
            fn take(reader: &mut PacketReader, socket: BorrowedFd<'_>) -> (Vec<Vec<u8>>, Vec<u16>, bool) {
                let packets = reader.receive(socket, Wait::No).unwrap();
                (packets.iter().map(<[u8]>::to_vec).collect(), packets.truncated.to_vec(), packets.more)
            }

            #[test]
            fn packets_arrive_whole_in_order_and_at_most_one_per_slot() {
                let (server, client) = udp_pair();
                let mut reader = PacketReader::new(4).unwrap();
                assert_eq!(take(&mut reader, server.as_fd()), (vec![], vec![], false), "nothing sent yet");
                let sent: Vec<Vec<u8>> = (0..7).map(|at| vec![b'a' + at; usize::from(at) * 30]).collect();
                for packet in &sent {
                    client.send(packet).unwrap();
                }
                let (first, _, more) = take(&mut reader, server.as_fd());
                assert_eq!((&first[..], more), (&sent[..4], true));
                let (second, _, more) = take(&mut reader, server.as_fd());
                assert_eq!((&second[..], more), (&sent[4..], false));
                assert!(take(&mut reader, server.as_fd()).0.is_empty(), "no old packet is seen twice");
            }

            #[test]
            fn a_call_receives_no_more_than_its_limit() {
                let (server, client) = udp_pair();
                let mut reader = PacketReader::new(4).unwrap();
                (0..9).for_each(|_| assert_eq!(client.send(b"x").unwrap(), 1));
                for (asked, got, more) in [(2, 2, true), (0, 1, true), (5, 4, true), (3, 2, false)] {
                    reader.take_at_most(asked);
                    let (packets, _, is_more) = take(&mut reader, server.as_fd());
                    assert_eq!((packets.len(), is_more), (got, more), "{asked}");
                }
            }

            #[test]
            fn a_short_packet_after_a_long_one_keeps_its_own_length() {
                let (server, client) = udp_pair();
                let mut reader = PacketReader::new(1).unwrap();
                for packet in [&[7u8; 1000][..], b"", b"ab"] {
                    client.send(packet).unwrap();
                    assert_eq!(take(&mut reader, server.as_fd()).0, [packet.to_vec()]);
                }
            }

            #[test]
            fn the_sender_of_a_packet_is_returned_on_request() {
                let server = UdpSocket::bind("[::]:0").unwrap();
                let port = server.local_addr().unwrap().port();
                let addresses: [std::net::IpAddr; 2] = ["127.0.0.1", "::1"].map(|text| text.parse().unwrap());
                let clients = addresses.map(|address| UdpSocket::bind((address, 0)).unwrap());
                let mut reader = PacketReader::new(8).unwrap();
                for _turn in 0..2 {
                    for (client, address) in clients.iter().zip(addresses) {
                        client.send_to(b"x", (address, port)).unwrap();
                    }
                    let packets = reader.receive_with_peers(server.as_fd(), Wait::No).unwrap();
                    // An IPv4 address at an IPv6 socket is reported as IPv4.
                    assert_eq!((packets.peers, packets.spans.len()), (&addresses.map(Some)[..], 2));
                    clients[0].send_to(b"nobody asks", (addresses[0], port)).unwrap();
                    let packets = reader.receive(server.as_fd(), Wait::No).unwrap();
                    assert!(packets.peers.is_empty() && packets.sender(0).is_none());
                    let from = &clients[1];
                    from.send_to(b"noted", (addresses[1], port)).unwrap();
                    let packets = reader.receive_named(server.as_fd(), Wait::No).unwrap();
                    assert!(packets.peers.is_empty(), "senders were not requested");
                    assert_eq!(packets.sender(0), Some(from.local_addr().unwrap()));
                    assert_eq!(packets.sender(1), None, "no such packet");
                }
                let (client, server) = UnixDatagram::pair().unwrap();
                client.send(b"unix").unwrap();
                let packets = reader.receive_with_peers(server.as_fd(), Wait::No).unwrap();
                assert_eq!((packets.peers, packets.sender(0)), (&[None][..], None));
            }

            #[test]
            fn only_a_packet_past_the_limit_is_truncated() {
                let (client, server) = UnixDatagram::pair().unwrap();
                let mut reader = PacketReader::new(3).unwrap();
                let long = vec![b'x'; DATAGRAM_BYTES_MAX + 1];
                client.send(&long[1..]).unwrap();
                client.send(&long).unwrap();
                client.send(b"after").unwrap();
                let (packets, truncated, more) = take(&mut reader, server.as_fd());
                let lens: Vec<usize> = packets.iter().map(Vec::len).collect();
                assert_eq!(lens, [DATAGRAM_BYTES_MAX, DATAGRAM_BYTES_MAX, 5]);
                assert_eq!((truncated, more), (vec![1], true));
                assert_eq!(packets[2], b"after");
            }

            #[test]
            fn waiting_ends_with_the_first_packet_or_the_timeout() {
                let (server, client) = udp_pair();
                let mut reader = PacketReader::new(8).unwrap();
                server.set_read_timeout(Some(Duration::from_millis(5))).unwrap();
                assert!(reader.receive(server.as_fd(), Wait::Yes).unwrap().is_empty());
                server.set_read_timeout(None).unwrap();
                let late = std::thread::spawn(move || {
                    std::thread::sleep(Duration::from_millis(5));
                    client.send(b"late").unwrap();
                });
                assert_eq!(
                    reader.receive(server.as_fd(), Wait::Yes).unwrap().iter().next(),
                    Some(&b"late"[..])
                );
                late.join().unwrap();
            }

            #[test]
            fn a_writer_sends_one_packet_per_slot_and_returns_the_count() {
                let (server, client) = udp_pair();
                let mut batch = PacketBatch::default();
                for packet in [&b"one"[..], b"two", b"", b"four"] {
                    batch.push(packet);
                }
                let mut writer = PacketWriter::new(3);
                let first = writer.send(client.as_fd(), &batch.bytes, &batch.packets, Wait::No).unwrap();
                let rest = &batch.packets[first..];
                assert_eq!(first, 3);
                assert_eq!(writer.send(client.as_fd(), &batch.bytes, rest, Wait::Yes).unwrap(), 1);
                assert_eq!(writer.send(client.as_fd(), &batch.bytes, &[], Wait::No).unwrap(), 0);
                let mut reader = PacketReader::new(8).unwrap();
                let want: Vec<Vec<u8>> = batch.iter().map(<[u8]>::to_vec).collect();
                assert_eq!(take(&mut reader, server.as_fd()).0, want);
            }

            #[test]
            fn a_writer_stops_before_the_packet_that_fails() {
                let (server, client) = udp_pair();
                let bytes = vec![b'x'; 70_000];
                let packets = [Span::new(0, 3), Span::new(0, 70_000), Span::new(3, 4)];
                let mut writer = PacketWriter::new(8);
                assert_eq!(writer.send(client.as_fd(), &bytes, &packets, Wait::No).unwrap(), 1);
                assert!(writer.send(client.as_fd(), &bytes, &packets[1..], Wait::No).is_err(), "too long");
                assert_eq!(writer.send(client.as_fd(), &bytes, &packets[2..], Wait::No).unwrap(), 1);
                let mut reader = PacketReader::new(8).unwrap();
                assert_eq!(take(&mut reader, server.as_fd()).0, [b"xxx".to_vec(), b"xxxx".to_vec()]);
            }

            #[test]
            fn a_full_socket_would_block() {
                let (client, _server) = UnixDatagram::pair().unwrap();
                let mut writer = PacketWriter::new(1);
                let error = (0..100_000)
                    .find_map(|_| writer.send(client.as_fd(), b"x", &[Span::new(0, 1)], Wait::No).err());
                assert_eq!(error.map(|error| error.kind()), Some(std::io::ErrorKind::WouldBlock));
            }
        }
    };
}

#[cfg(target_os = "linux")]
reader_and_writer_tests!(linux, packets);
reader_and_writer_tests!(elsewhere, portable);

/// Sends all packets in order, as the outputs do, and returns those that `server` received.
#[cfg(target_os = "linux")]
fn through(
    writer: &mut PacketWriter,
    client: &UdpSocket,
    server: &UdpSocket,
    packets: &[Vec<u8>],
) -> Vec<Vec<u8>> {
    let mut batch = PacketBatch::default();
    packets.iter().for_each(|packet| batch.push(packet));
    let mut reader = PacketReader::new(PACKETS_MAX).unwrap();
    let (mut done, mut got) = (0, Vec::new());
    while done < packets.len() {
        let sent = writer.send(client.as_fd(), &batch.bytes, &batch.packets[done..], Wait::Yes).unwrap();
        assert!(sent > 0 && done + sent <= packets.len());
        done += sent;
        // Loopback delivers before the call returns: all packets have arrived.
        got.extend(reader.receive(server.as_fd(), Wait::No).unwrap().iter().map(<[u8]>::to_vec));
    }
    got
}

/// A bound socket with a buffer for all packets that a test sends in one call, and one connected to it.
#[cfg(target_os = "linux")]
fn roomy_pair(address: &str) -> (UdpSocket, UdpSocket) {
    let server = UdpSocket::bind(address).unwrap();
    set_receive_buffer(server.as_fd(), 16 << 20).unwrap();
    let client = UdpSocket::bind(address).unwrap();
    client.connect(server.local_addr().unwrap()).unwrap();
    (server, client)
}

/// Runs of one size, with shorter, longer, empty and the longest packets between them.
#[cfg(target_os = "linux")]
fn runs(seed: u64, packets: usize) -> Vec<Vec<u8>> {
    let mut state = seed;
    let mut below = |bound: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % bound
    };
    let mut made = Vec::new();
    while made.len() < packets {
        let len = match below(12) {
            0 => 0,
            1 if below(8) == 0 => 65_507,
            2 => 1 + below(3),
            3 => 1_400 + below(200),
            _ => 1 + below(300),
        } as usize;
        let longest = if len > 1_000 { 3 } else { 150 };
        for _ in 0..=below(longest) {
            made.push((0..len).map(|at| (made.len() + at) as u8).collect());
        }
    }
    made.truncate(packets);
    made
}

#[test]
#[cfg(target_os = "linux")]
fn packets_of_a_segmented_message_arrive_unchanged() {
    for address in ["127.0.0.1:0", "[::1]:0"] {
        if UdpSocket::bind(address).is_err() {
            // Past the test runner, for the summary of `make test`.
            let _unread = writeln!(std::io::stderr(), "SKIPPED sys: no {address} here");
            continue;
        }
        for seed in 1..=20 {
            let (server, client) = roomy_pair(address);
            let mut writer = PacketWriter::new(64);
            writer.begin(client.as_fd());
            assert!(writer.segments());
            let packets = runs(seed, 700);
            let got = through(&mut writer, &client, &server, &packets);
            assert!(got == packets, "seed {seed} on {address}: {} packets of {}", got.len(), packets.len());
            assert!(writer.segments(), "loopback cuts messages apart");
        }
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_rejected_segmented_message_is_not_tried_again() {
    use std::os::fd::AsRawFd;
    let (server, client) = roomy_pair("127.0.0.1:0");
    let mut writer = PacketWriter::new(64);
    writer.begin(client.as_fd());
    let packets = runs(5, 300);
    assert!(through(&mut writer, &client, &server, &packets) == packets);
    assert!(writer.segments());
    // A socket without checksums sends single packets only: the kernel answers EINVAL to segmented messages.
    let on: libc::c_int = 1;
    // SAFETY: the value is a c_int, borrowed for the call, and its size is passed.
    let set = unsafe {
        libc::setsockopt(client.as_raw_fd(), libc::SOL_SOCKET, libc::SO_NO_CHECK, (&raw const on).cast(), 4)
    };
    assert_eq!(set, 0);
    assert!(through(&mut writer, &client, &server, &packets) == packets, "none lost, none twice");
    assert!(!writer.segments());
    // Another socket is tried again.
    let (server, client) = roomy_pair("127.0.0.1:0");
    writer.begin(client.as_fd());
    assert!(writer.segments());
    assert!(through(&mut writer, &client, &server, &packets) == packets);
    let (unix, _peer) = UnixDatagram::pair().unwrap();
    writer.begin(unix.as_fd());
    assert!(!writer.segments(), "unix sockets have no such thing");
}

#[test]
#[cfg(target_os = "linux")]
fn sending_stops_before_a_failing_packet_with_segmentation() {
    let (server, client) = roomy_pair("127.0.0.1:0");
    let mut writer = PacketWriter::new(64);
    writer.begin(client.as_fd());
    let bytes = vec![b'x'; 70_000];
    let mut packets = vec![Span::new(0, 100); 10];
    packets.push(Span::new(0, 70_000));
    packets.extend(vec![Span::new(0, 50); 10]);
    let mut send = |from: usize| writer.send(client.as_fd(), &bytes, &packets[from..], Wait::No);
    assert_eq!(send(0).unwrap(), 10);
    assert_eq!(send(10).unwrap_err().raw_os_error(), Some(libc::EMSGSIZE));
    assert_eq!(send(11).unwrap(), 10);
    assert!(writer.segments(), "the long packet went alone: its error says nothing about the others");
    let mut reader = PacketReader::new(64).unwrap();
    let lens: Vec<usize> =
        reader.receive(server.as_fd(), Wait::No).unwrap().iter().map(<[u8]>::len).collect();
    assert_eq!(lens, [vec![100; 10], vec![50; 10]].concat());
}

#[test]
#[cfg(target_os = "linux")]
fn the_receive_buffer_is_granted_up_to_the_limit() {
    let (server, _client) = udp_pair();
    let granted = set_receive_buffer(server.as_fd(), 100_000).unwrap();
    assert_eq!(granted, 100_000);
    let memory = socket_memory(server.as_fd()).unwrap();
    assert_eq!(u64::from(memory.receive_bytes_max), 2 * granted);
    let granted = set_receive_buffer(server.as_fd(), u64::MAX).unwrap();
    assert!(granted <= RECEIVE_BUFFER_BYTES_MAX && granted > 100_000, "granted {granted}");
}

#[test]
#[cfg(target_os = "linux")]
fn drops_of_a_full_socket_are_counted_exactly() {
    let (server, client) = udp_pair();
    set_receive_buffer(server.as_fd(), 4096).unwrap();
    let before = socket_memory(server.as_fd()).unwrap();
    let sent = 100u64;
    for _ in 0..sent {
        client.send(b"hits:1|c").unwrap();
    }
    let full = socket_memory(server.as_fd()).unwrap();
    assert!(full.receive_bytes > 0);
    let mut reader = PacketReader::new(PACKETS_MAX).unwrap();
    let received = reader.receive(server.as_fd(), Wait::No).unwrap().spans.len() as u64;
    assert!(received > 0 && received < sent);
    assert_eq!(received + new_drops(before.drops, full.drops), sent);
    assert_eq!(new_drops(u32::MAX, 2), 3, "a wrap is no loss");
}

#[test]
#[cfg(target_os = "linux")]
fn a_shut_socket_returns_buffered_packets_and_senders_get_an_error() {
    let mut reader = PacketReader::new(PACKETS_MAX).unwrap();
    let folder = tempfile::tempdir().unwrap();
    for address in ["127.0.0.1:0", "0.0.0.0:0", "[::1]:0", "[::]:0"] {
        let server = UdpSocket::bind(address).unwrap();
        let at = server.local_addr().unwrap();
        let host = if at.is_ipv6() { "::1" } else { "127.0.0.1" };
        let client = UdpSocket::bind((host, 0)).unwrap();
        client.connect((host, at.port())).unwrap();
        client.send(b"before").unwrap();
        refuse_more(server.as_fd()).unwrap();
        // The first packet is rejected, and the second send reports it.
        client.send(b"behind").unwrap();
        let error = client.send(b"behind").unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionRefused, "{address}");
        assert_eq!(reader.receive(server.as_fd(), Wait::No).unwrap().spans.len(), 1, "{address}");
        assert_eq!(reader.receive(server.as_fd(), Wait::No).unwrap().spans.len(), 0, "{address}");
    }
    let server = UnixDatagram::bind(folder.path().join("in")).unwrap();
    let client = UnixDatagram::unbound().unwrap();
    client.connect(folder.path().join("in")).unwrap();
    client.send(b"before").unwrap();
    refuse_more(server.as_fd()).unwrap();
    assert_eq!(client.send(b"behind").unwrap_err().kind(), std::io::ErrorKind::BrokenPipe);
    assert_eq!(reader.receive(server.as_fd(), Wait::No).unwrap().spans.len(), 1);
}

#[test]
#[cfg(target_os = "linux")]
fn unacked_bytes_of_a_stream_are_those_not_received() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (mut server, _) = listener.accept().unwrap();
    assert_eq!(unacked(client.as_fd()).unwrap(), 0);
    client.set_nonblocking(true).unwrap();
    // More than the peer's buffer accepts: the rest stays in ours.
    let mut written = 0;
    while let Ok(len) = client.write(&[0; 65_536]) {
        written += len;
    }
    let held = unacked(client.as_fd()).unwrap();
    assert!(held > 0 && held <= written as u64, "{held} of {written}");
    let mut sink = vec![0; 1 << 20];
    let mut taken = 0;
    while taken < written {
        taken += server.read(&mut sink).unwrap();
    }
    let empty = (0..500).any(|_| {
        std::thread::sleep(Duration::from_millis(1));
        unacked(client.as_fd()).unwrap() == 0
    });
    assert!(empty, "all was read, so all is acknowledged");
    let (udp, _) = udp_pair();
    assert!(unacked(udp.as_fd()).is_ok(), "a datagram socket reports its unsent bytes");
}

#[test]
#[cfg(target_os = "linux")]
fn unread_bytes_of_a_unix_stream_are_unknown_once_the_peer_closed_without_reading_them() {
    use std::os::unix::net::UnixStream;

    const RESET: Result<Option<u64>, std::io::ErrorKind> = Err(std::io::ErrorKind::ConnectionReset);
    // (bytes of 8 in two writes that the peer reads, bytes that it sends, result after it has closed)
    for (reads, sends, want) in
        [(0, 0, RESET), (4, 0, RESET), (6, 0, RESET), (8, 0, Ok(Some(0))), (8, 1, Ok(None))]
    {
        let (mut client, mut server) = UnixStream::pair().unwrap();
        client.set_nonblocking(true).unwrap();
        assert_eq!(unread(client.as_fd()).unwrap(), Some(0), "nothing was written");
        client.write_all(b"1234").unwrap();
        client.write_all(b"5678").unwrap();
        assert!(unread(client.as_fd()).unwrap().is_some_and(|unread| unread >= 8));
        server.read_exact(&mut [0; 8][..reads]).unwrap();
        server.write_all(&b"!"[..sends]).unwrap();
        let open = unread(client.as_fd()).unwrap();
        assert_eq!(open == Some(0), reads == 8, "{reads}: exactly the bytes that were read");
        drop(server);
        assert_eq!(unread(client.as_fd()).map_err(|error| error.kind()), want, "{reads} {sends}");
        if sends > 0 {
            client.read_exact(&mut [0; 1]).unwrap();
            assert_eq!(unread(client.as_fd()).unwrap(), Some(0), "its data has been read");
        }
    }
    // A peer that has shut down its sending side may still read.
    let (mut client, server) = UnixStream::pair().unwrap();
    client.set_nonblocking(true).unwrap();
    client.write_all(b"1234").unwrap();
    server.shutdown(std::net::Shutdown::Write).unwrap();
    assert!(unread(client.as_fd()).unwrap().is_some_and(|unread| unread >= 4));
}

#[test]
fn waiting_returns_which_sockets_are_readable() {
    let (quiet, _keeps_it_open) = udp_pair();
    let (server, client) = udp_pair();
    let mut watches = [Watch::new(&quiet), Watch::new(&server)];
    assert_eq!(wait_readable(&mut watches, Some(0)).unwrap(), 0);
    assert_eq!(wait_readable(&mut watches, Some(1)).unwrap(), 0, "rounded up to a millisecond");
    client.send(b"x").unwrap();
    assert_eq!(wait_readable(&mut watches, None).unwrap(), 1);
    assert_eq!(watches.map(|watch| watch.readable), [false, true]);
}

#[test]
fn a_waker_wakes_once_for_any_number_of_calls() {
    let waker = Waker::new().unwrap();
    let ready = |timeout| wait_readable(&mut [Watch::new(&waker)], timeout).unwrap();
    assert_eq!(ready(Some(0)), 0);
    waker.wake();
    waker.wake();
    assert_eq!(ready(None), 1);
    waker.drain();
    waker.drain();
    assert_eq!(ready(Some(0)), 0);
    std::thread::scope(|threads| {
        threads.spawn(|| waker.wake());
        assert_eq!(ready(None), 1);
    });
}

#[test]
#[cfg(target_os = "linux")]
fn a_pinned_thread_runs_on_its_core_and_its_time_is_counted() {
    std::thread::spawn(|| {
        let core = core_now().unwrap();
        pin_to_core(core).unwrap();
        assert_eq!(core_now(), Some(core));
        assert!(pin_to_core(libc::CPU_SETSIZE as usize).is_err());
        let process = process_cpu_ns(std::process::id()).unwrap();
        let thread = thread_cpu_ns();
        while thread_cpu_ns() < thread + 1_000_000 {}
        assert!(process_cpu_ns(std::process::id()).unwrap() >= process + 1_000_000);
        let clock = CpuClock::of_this_thread().unwrap();
        let seen_from_elsewhere = std::thread::spawn(move || clock.read_ns().unwrap()).join().unwrap();
        assert!(seen_from_elsewhere >= thread + 1_000_000);
    })
    .join()
    .unwrap();
    assert!(cores() >= 1);
    let memory = memory_of(std::process::id()).unwrap();
    assert!(memory.resident > 0 && memory.resident <= memory.resident_high);
}

#[test]
#[cfg(unix)]
fn signals_before_handlers_are_installed_are_not_lost() {
    block_signals();
    // SAFETY: no pointer is passed. Both go to this thread, which holds them.
    assert_eq!(
        unsafe { (libc::raise(libc::SIGHUP), libc::raise(libc::SIGUSR1)) },
        (0, 0),
        "we are still here"
    );
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        use tokio::signal::unix::{SignalKind, signal};
        let mut hangup = signal(SignalKind::hangup()).unwrap();
        let mut user = signal(SignalKind::user_defined1()).unwrap();
        unblock_signals();
        assert_eq!((hangup.recv().await, user.recv().await), (Some(()), Some(())));
    });
}

#[test]
#[cfg(target_os = "linux")]
fn a_child_runs_on_its_core_and_ends_when_asked() {
    let mut command = std::process::Command::new("sleep");
    let mut child = on_core(command.arg("60"), 0).spawn().unwrap();
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    assert!(status.contains("Cpus_allowed_list:\t0\n"), "{status}");
    assert!(process_cpu_ns(child.id()).is_ok());
    terminate(child.id()).unwrap();
    assert!(!child.wait().unwrap().success());
    terminate(child.id()).unwrap();
    assert!(process_cpu_ns(child.id()).is_err());
    for never in [0, 1, u32::MAX] {
        assert!(terminate(never).is_err(), "{never} is no process of ours");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn the_open_file_limit_is_raised_to_the_hard_limit() {
    let max = raise_open_file_limit().unwrap();
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap();
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files")).unwrap();
    let words: Vec<&str> = line.split_whitespace().take(2).collect();
    assert_eq!(words, [max.to_string(), max.to_string()]);
}
