# Perl Net::Statsd: net_statsd.pl TRANSPORT ADDRESS PREFIX
use strict;
use warnings;
use Net::Statsd;

my ($transport, $address, $prefix) = @ARGV;
($Net::Statsd::HOST, $Net::Statsd::PORT) = split /:/, $address;

Net::Statsd::increment("$prefix.hits");
Net::Statsd::update_stats("$prefix.hits", 2);
Net::Statsd::decrement("$prefix.hits");
Net::Statsd::timing("$prefix.lat", $_) for (10, 20, 30);
Net::Statsd::gauge("$prefix.temp", 20);
Net::Statsd::gauge("$prefix.temp", 22);
Net::Statsd::update_stats("$prefix.packed", 9);
