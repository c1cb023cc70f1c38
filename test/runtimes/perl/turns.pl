# Calls back and forth between C and Perl, by turns for ever: a sample meets each moment between two calls.
use strict;
use warnings;
use List::Util ();

our $n = 0;

sub compare { return $a <=> $b }

sub is_last { return $_ == 300 }

sub sorts {
    my @list = map { $_ * 7919 % 300 } 1 .. 300;
    my @block = sort { $a <=> $b || 0 } @list;
    my @function = sort { compare() } @list;
    my @named = sort compare @list;
}

sub firsts {
    List::Util::first(sub { is_last() }, 1 .. 300) for 1 .. 3;
}

sub expressions {
    my $text = 'ab' x 100;
    $text =~ /(?:a(?{ $n++ })b)*c/;
    $text =~ /(?:a(?{ is_last() for 1 })b){90}/;
}

sub turns {
    while (1) {
        sorts();
        firsts();
        expressions();
    }
}

turns();
