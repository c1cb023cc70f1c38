# split.pl SHAPE: spends 30 % of its CPU time in a() and 70 % in b(), by its own clock, for ever.
use strict;
use warnings;
no warnings 'recursion';
use Time::HiRes ();

sub now { return Time::HiRes::clock_gettime(Time::HiRes::CLOCK_PROCESS_CPUTIME_ID()) }

# The same native leaf below both.
sub spend {
    my ($seconds) = @_;
    my $end = now() + $seconds;
    while (now() < $end) {
        my $sum = 0;
        $sum += $_ for 1 .. 500;
    }
    return;
}

sub spend_deep {
    my ($seconds, $depth) = @_;
    $depth //= 30;
    $depth == 0 ? spend($seconds) : spend_deep($seconds, $depth - 1);
    return;
}

# In an eval of what C calls back.
sub spend_sorting {
    my ($seconds) = @_;
    my @sorted = sort { eval { spend($seconds) }; 0 } 1, 2;
    return;
}

sub a {
    work(@_);
    return;
}

sub b {
    work(@_);
    return;
}

# For 1 to 9 ms: what repeats every 10 ms is in step with 97 samples a second.
sub work {
    my ($spender) = @_;
    $spender->(0.001 + rand 0.008);
    return;
}

my %turns = (a => \&a, b => \&b);
my %spenders = (leaf => \&spend, recursive => \&spend_deep, sort => \&spend_sorting);

sub both {
    my ($spender) = @_;
    my %spent = (a => 0, b => 0);
    my $before = now();
    while (1) {
        my $turn = $spent{a} * 7 <= $spent{b} * 3 ? 'a' : 'b';
        $turns{$turn}->($spender);
        my $now = now();
        $spent{$turn} += $now - $before;
        $before = $now;
    }
}

both($spenders{$ARGV[0]});
