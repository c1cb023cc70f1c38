# Its busy() is called by the program that it is in.
sub spend {
    my $x = 0;
    for (my $i = 0; $i < 1000; $i++) {
        $x += $i & 7;
    }
}

sub busy { spend() while 1 }

1;
