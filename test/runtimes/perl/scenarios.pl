# Runs a scenario by its name: prints its own stack as Perl sees it, leaf first, each frame [name, file, line], and burns CPU
# time there for as long as it lives. The line of the leaf changes, so it is 0.
use strict;
use warnings;

our ($x, %scenarios);
my ($here, $folder);

BEGIN {
    $here = __FILE__;
    ($folder = $here) =~ s{[^/]*$}{};
}

sub frames {
    my @frames;
    my @place = ('', 0);
    for (my $i = 1; my ($package, $file, $line, $name, undef, undef, $text, $is_file) = caller $i; $i++) {
        if ($name eq '(eval)') {
            # a block is not a function
            next if !defined $text && !$is_file;
            $name = '(required)' if $is_file;
        }
        push @frames, [$name, @place];
        @place = ($file, $line);
    }
    # a thread begins with its function
    return $INC{'threads.pm'} && threads->tid ? @frames : (@frames, ['(main)', @place]);
}

sub burn {
    my @frames = frames();
    $frames[0][1] = $here;
    $| = 1;
    print '[', join(',', map { qq(["$$_[0]","$$_[1]",$$_[2]]) } @frames), "]\n";
    while (1) {
        for (my $i = 0; $i < 1000; $i++) {
            $x = $i * 31 & 0xffff;
        }
    }
}

sub recursion {
    my ($n) = @_;
    burn() if $n == 0;
    return recursion($n - 1) + 1;
}

sub compare {
    burn();
    return 0;
}

package Shape;

sub new { return bless {}, shift }

sub run {
    my ($self) = @_;
    $self->inside(sub { $self->draw });
}

sub inside {
    my ($self, $what) = @_;
    $what->();
}

sub draw { main::burn() }

sub jump { goto &draw }

our $AUTOLOAD;

sub AUTOLOAD {
    return if $AUTOLOAD =~ /DESTROY/;
    main::burn();
}

package Tied;

sub TIESCALAR { return bless [$_[1]], $_[0] }

sub FETCH {
    my ($self) = @_;
    $self->[0]->();
    return 1;
}

package Number;

use overload '+' => sub { main::burn() }, '""' => sub { return text() }, 'bool' => sub { return 1 };

sub text {
    main::burn();
}

package Dying;

sub DESTROY {
    main::burn() if $ARGV[0] eq 'destructor';
}

package main;

sub fetched {
    my ($what) = @_;
    tie my $tied, 'Tied', $what;
    my $value = $tied;
}

%scenarios = (
    recursion => sub { no warnings 'recursion'; recursion(50) },
    deep => sub { no warnings 'recursion'; recursion(400) },
    methods => sub { Shape->new->run },
    jump => sub { Shape->new->jump },
    autoload => sub { Shape->new->missing },
    map => sub { my @list = map { compare($_) } 1, 2 },
    grep => sub { my @list = grep { compare($_) + 1 } 1, 2 },
    loops => sub { for my $i (1) { while (1) { do { compare($i) } until 0 } } },
    sort => sub { my @list = sort { compare($a, $b) } 3, 1, 2 },
    sort_inside => sub { my @list = sort { 1 + compare($a, $b) } 3, 1, 2 },
    sort_named => sub { my @list = sort compare 3, 1, 2 },
    sort_closure => sub { my $by = sub { compare() }; my @list = sort $by 3, 1, 2 },
    sort_sort => sub {
        my @list = sort { my @inner = sort { compare() } 1, 2; 0 } 3, 1, 2;
    },
    first => sub { require List::Util; List::Util::first(sub { compare() }, 1, 2) },
    first_sort => sub {
        require List::Util;
        List::Util::first(sub { my @list = sort { compare() } 1, 2 }, 1, 2);
    },
    called_back => sub { require List::Util; List::Util::pairmap(sub { compare() }, 1, 2) },
    tied => sub { fetched(sub { burn() }) },
    tied_twice => sub { fetched(sub { fetched(\&compare) }) },
    add => sub { my $sum = bless({}, 'Number') + 1 },
    stringify => sub { my $text = 'x' . bless({}, 'Number') },
    destructor => sub { my $dying = bless {}, 'Dying'; undef $dying },
    warning => sub { local $SIG{__WARN__} = sub { burn() }; warn 'x' },
    warning_tied => sub { local $SIG{__WARN__} = sub { burn() }; fetched(sub { warn 'x' }) },
    dying => sub { local $SIG{__DIE__} = sub { compare() }; die 'x' },
    signal => sub { local $SIG{USR1} = sub { burn() }; kill 'USR1', $$; 1 while 1 },
    eval_block => sub { eval { compare() } },
    eval_text => sub { eval "1;\n\ncompare();\n" },
    eval_begin => sub { eval "1;\nBEGIN { compare() }\n" },
    eval_caught => sub { fetched(sub { eval { eval { compare() } } }) },
    eval_caught_text => sub { fetched(sub { eval 'eval { compare() }' }) },
    sort_caught => sub { my @list = sort { eval { compare() } } 3, 1, 2 },
    required => sub { require "${folder}loaded.pl" },
    required_inside => sub { fetched(sub { require "${folder}loaded.pl" }) },
    done => sub { do "${folder}loaded.pl" },
    expression => sub { 'abc' =~ /b(?{ compare() })/ },
    expression_inside => sub { 'abc' =~ /b(?{ 1 + compare() })/ },
    expression_closure => sub { my $n = 1; my $inner = qr/b(?{ $n + compare() })/; 'abc' =~ /a$inner/ },
    substitute => sub { (my $text = 'abc') =~ s/b/compare()/e },
    lexical => sub { use feature 'lexical_subs'; no warnings; my sub inner { compare() } inner() },
    renamed => sub { no warnings 'once'; *Other::name = \&compare; Other::name() },
    thread => sub { require threads; threads->create(sub { compare() })->join },
);
if ($] >= 5.034) {
    eval q[
        use feature 'try';
        no warnings;
        $scenarios{try} = sub { fetched(sub { try { compare() } catch ($e) { } }) };
        1
    ] or die $@;
}
if ($] >= 5.036) {
    eval q[
        use feature 'defer';
        no warnings;
        $scenarios{defer} = sub { { defer { compare() } $x = 1 } };
        1
    ] or die $@;
}
BEGIN { burn() if $ARGV[0] eq 'compiling' }

if ($ARGV[0] eq 'list') {
    delete $scenarios{thread} if !eval { require threads };
    print join ',', sort keys %scenarios, 'compiling';
} else {
    $scenarios{$ARGV[0]}->();
}
