# A handler of Apache's: sorts by what takes time.
package My::Shop;
use strict;
use warnings;
use Apache2::RequestRec ();
use Apache2::RequestIO  ();
use Apache2::Const -compile => 'OK';

sub price {
    my ($n) = @_;
    my $x = 0;
    for (my $i = 0; $i < 20_000; $i++) {
        $x += $i * $n & 0xff;
    }
    return $x;
}

sub handler {
    my ($request) = @_;
    $request->content_type('text/plain');
    my @sorted = sort { price($a) <=> price($b) } 1 .. 8;
    $request->print(join(',', @sorted), "\n");
    return Apache2::Const::OK;
}

1;
