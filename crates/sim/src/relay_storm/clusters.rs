//! The clusters of the relay, as its configuration and as the storm expects them.

/// The clusters with their members. The name of a line begins with the name of its cluster.
pub(super) const CLUSTERS: &[(&str, Kind, &[&str])] = &[
    ("ch", Kind::Owners(1), &["10.0.0.1:1=a", "10.0.0.1:2=b", "10.0.0.1:3=c"]),
    ("any", Kind::Some(1), &["10.0.0.2:1", "10.0.0.2:2", "10.0.0.2:3"]),
    ("fo", Kind::Some(1), &["10.0.0.3:1", "10.0.0.3:2"]),
    ("fw", Kind::All, &["10.0.0.4:1", "10.0.0.4:2"]),
    ("dyn", Kind::Some(1), &["10.0.0.5:1", "10.0.0.5:2", "10.0.0.5:3"]),
    ("rep", Kind::Owners(2), &["10.0.0.6:1", "10.0.0.6:2", "10.0.0.6:3"]),
    ("two", Kind::Some(2), &["10.0.0.7:1=a", "10.0.0.7:2=b", "10.0.0.7:3=c", "10.0.0.7:4=d"]),
    ("three", Kind::Some(3), &["10.0.0.8:1=a", "10.0.0.8:2=b", "10.0.0.8:3=c", "10.0.0.8:4=d"]),
    ("lb", Kind::Some(1), &["10.0.0.9:1", "10.0.0.9:2", "10.0.0.9:3"]),
];

pub(super) const CONF: &str = "\
cluster ch carbon_ch 10.0.0.1:1=a 10.0.0.1:2=b 10.0.0.1:3=c;
cluster any any_of 10.0.0.2:1 10.0.0.2:2 10.0.0.2:3;
cluster fo failover 10.0.0.3:1 10.0.0.3:2;
cluster fw forward 10.0.0.4:1 10.0.0.4:2;
cluster dyn fnv1a_ch dynamic 10.0.0.5:1 10.0.0.5:2 10.0.0.5:3;
cluster rep jump_fnv1a_ch replication 2 10.0.0.6:1 10.0.0.6:2 10.0.0.6:3;
cluster two carbon_ch replication 2 dynamic 10.0.0.7:1=a 10.0.0.7:2=b 10.0.0.7:3=c 10.0.0.7:4=d;
cluster three fnv1a_ch replication 3 dynamic 10.0.0.8:1=a 10.0.0.8:2=b 10.0.0.8:3=c 10.0.0.8:4=d;
cluster lb lb 10.0.0.9:1 10.0.0.9:2 10.0.0.9:3;
rewrite ^old\\.(.*) into \\1;
match ^ch\\. send to ch stop;
match ^any\\. send to any stop;
match ^fo\\. send to fo stop;
match ^fw\\. send to fw stop;
match ^dyn\\. send to dyn stop;
match ^rep\\. send to rep stop;
match ^two\\. send to two stop;
match ^three\\. send to three stop;
match ^lb\\. send to lb stop;
listen type linemode 2003 proto tcp;
";

/// The members of a cluster that get a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// This many owners of its name, and no others.
    Owners(usize),
    /// This many members: failover members replace owners that are down.
    Some(usize),
    /// Every one.
    All,
}
